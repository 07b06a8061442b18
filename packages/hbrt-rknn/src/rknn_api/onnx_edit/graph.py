"""Apply formulas to a model's inputs and outputs: nodes at its edges, and the new dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from rknn_api.errors import invalid_parameter
from rknn_api.onnx_edit.formula import Edit, Formula, Size

if TYPE_CHECKING:
    from onnx import TensorProto


def edited(
    model: ModelProto, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> tuple[ModelProto, dict[str, Edit]]:
    """Return a model whose inputs and outputs have the dimensions from formulas.

    Args:
        model: Not changed.
        inputs: Formulas by input.
        outputs: Formulas by output.

    Returns:
        The model, and the change made to each input.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: a name or a formula does not fit; the message says why.

    Source: RKNN SDK advanced guide (chapter 5), 5.13
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    constants = {tensor.name for tensor in graph.initializer}
    given = {value.name: value for value in graph.input if value.name not in constants}
    made = {value.name: value for value in graph.output}
    first: list[NodeProto] = []
    last: list[NodeProto] = []
    edits: dict[str, Edit] = {}
    for name, text in inputs.items():
        edits[name] = edit = Formula.parse(text).of(_shape(given, name, "input"))
        inner = _free(graph, f"{name}_original")
        _rename(graph, name, inner, reads_alone=True)
        first += _Steps(graph, name, inner).between(edit.new, edit.turned, edit.back, edit.split, edit.original)
        _set_shape(given[name], edit.new)
    for name, text in outputs.items():
        edit = Formula.parse(text).of(_shape(made, name, "output"))
        inner = _free(graph, f"{name}_original")
        _rename(graph, name, inner, reads_alone=False)
        last += _Steps(graph, inner, name).between(edit.original, edit.split, edit.order, edit.turned, edit.new)
        _set_shape(made[name], edit.new)
    nodes = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(nodes)
    return copy, edits


class _Steps:
    """Creates the nodes between two names."""

    def __init__(self, graph: GraphProto, source: str, target: str) -> None:
        self._graph = graph
        self._source = source
        self._target = target

    def between(
        self,
        begin: Sequence[Size],
        split: Sequence[Size],
        order: Sequence[int],
        turned: Sequence[Size],
        end: Sequence[Size],
    ) -> list[NodeProto]:
        """Reshape, Transpose, Reshape; no-ops are omitted."""
        steps: list[tuple[str, Sequence[Size], Sequence[Size]]] = []
        is_turned = [at for at in order if split[at] != 1] != sorted(at for at in order if split[at] != 1)
        if is_turned:
            if list(begin) != list(split):
                steps.append(("Reshape", begin, split))
            steps.append(("Transpose", split, turned))
            if list(turned) != list(end):
                steps.append(("Reshape", turned, end))
        elif list(begin) != list(end):
            steps.append(("Reshape", begin, end))
        else:
            steps.append(("Identity", begin, end))
        nodes = []
        name = self._source
        for at, (op_type, before, after) in enumerate(steps):
            result = self._target if at == len(steps) - 1 else _free(self._graph, f"{self._target}_step{at}")
            read: list[str] = [name]
            attributes: dict[str, Any] = {}
            if op_type == "Reshape":
                read.append(self._sizes(before, after, f"{result}_shape"))
            elif op_type == "Transpose":
                attributes["perm"] = list(order)
            nodes.append(helper.make_node(op_type, read, [result], f"{op_type}_{result}", **attributes))
            name = result
        return nodes

    def _sizes(self, before: Sequence[Size], after: Sequence[Size], name: str) -> str:
        """A constant of sizes: 0 for a size that is kept, -1 for the one that depends on the data."""
        sizes = []
        for at, size in enumerate(after):
            stays = at < len(before) and before[at] == size
            sizes.append(size if isinstance(size, int) else 0 if stays else -1)
        if sizes.count(-1) > 1:
            raise invalid_parameter(
                f"More than one size of {self._source!r} is open where it is reshaped; give the model fixed sizes, or "
                "assign letters."
            )
        tensor: TensorProto = numpy_helper.from_array(np.array(sizes, np.int64), _free(self._graph, name))
        self._graph.initializer.append(tensor)
        return tensor.name


def _shape(values: Mapping[str, ValueInfoProto], name: str, what: str) -> list[int | None]:
    if name not in values:
        raise invalid_parameter(f"The model has no {what} {name!r}; it has {', '.join(map(repr, values)) or 'none'}.")
    kind = values[name].type.tensor_type
    if not kind.HasField("shape"):
        raise invalid_parameter(f"The model does not specify the dimensions of its {what} {name!r}.")
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]


def _set_shape(value: ValueInfoProto, shape: Sequence[Size]) -> None:
    dims = value.type.tensor_type.shape.dim
    del dims[:]
    for at, size in enumerate(shape):
        dim = dims.add()
        if isinstance(size, str):
            dim.dim_param = f"{value.name}_{at}"
        else:
            dim.dim_value = size


def _free(graph: GraphProto, name: str) -> str:
    taken = {one for node in graph.node for one in (*node.input, *node.output)}
    taken |= {one.name for one in (*graph.initializer, *graph.input, *graph.output)}
    while name in taken:
        name += "_"
    return name


def _rename(graph: GraphProto, name: str, new: str, *, reads_alone: bool) -> None:
    """Rename a value in the nodes, including graphs inside nodes."""
    for node in graph.node:
        node.input[:] = [new if one == name else one for one in node.input]
        if not reads_alone:
            node.output[:] = [new if one == name else one for one in node.output]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, name, new, reads_alone=reads_alone)
