"""Changes to a graph: outputs, sizes, batch, layout. In place, if the caller made a copy."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto, helper

from hbrt.borders.interrupts import let_out
from hbrt.models.errors import incompatible, one_line
from hbrt.models.spec.graph import bodies, shape_of
from hbrt.models.spec.spec import DYNAMIC

TO_NCHW = (0, 3, 1, 2)
TO_NHWC = (0, 2, 3, 1)


def graph_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs that a caller must provide: those without a default."""
    defaults = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in defaults]


def with_outputs(model: ModelProto, names: Iterable[str]) -> ModelProto:
    """Copy the model with these values as its outputs, except inputs."""
    copy = ModelProto()
    copy.CopyFrom(model)
    given = {value.name for value in graph_inputs(copy.graph)}
    known = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
    del copy.graph.output[:]
    copy.graph.output.extend(known.get(name, ValueInfoProto(name=name)) for name in names if name not in given)
    return copy


def fix_shape(value: ValueInfoProto, shape: tuple[int, ...]) -> None:
    """Set an input's open sizes.

    Raises:
        GraphError: INCOMPATIBLE if the graph has different sizes.
    """
    known = shape_of(value)
    fits = len(known) == len(shape) and all(size in {given, DYNAMIC} for size, given in zip(known, shape, strict=True))
    if not fits:
        raise incompatible(
            f"input_shape of {value.name!r} is {'x'.join(map(str, shape))}; the graph has {list(known)}, where -1 is "
            "open."
        )
    for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
        dim.dim_value = size


def set_batch(model: ModelProto, batch: int) -> None:
    """Set the first size of every input and output to the batch, like the compiler's input_batch.

    Raises:
        GraphError: INCOMPATIBLE if an input's batch is not 1, or the graph only computes batch 1.
    """
    graph = model.graph
    for value in graph_inputs(graph):
        shape = shape_of(value)
        if not shape or shape[0] not in {1, batch, DYNAMIC}:
            raise incompatible(
                f"input_batch is {batch}, but the input {value.name!r} has the shape {list(shape)}; only a first size "
                "of 1 can become a batch."
            )
        value.type.tensor_type.shape.dim[0].dim_value = batch
    before = {value.name: shape_of(value) for value in graph.output}
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    inferred = {value.name: value for value in _inferred(model, f"input_batch {batch}").graph.output}
    for value in graph.output:
        known, found = before[value.name], inferred[value.name]
        # If inference finds nothing, trust the first size; onnxruntime reports it if wrong.
        is_known = found.type.tensor_type.HasField("shape")
        shape = shape_of(found) if is_known else (DYNAMIC, *known[1:])
        if not known or known[0] not in {1, batch, DYNAMIC} or shape[:1] not in {(batch,), (DYNAMIC,)}:
            raise incompatible(
                f"input_batch is {batch}, but the output {value.name!r} then has the shape {list(shape)}: the "
                "graph fixes its own batch, perhaps by a Reshape to fixed sizes. Remove input_batch."
            )
        sizes = [size if size != DYNAMIC or at >= len(known) else known[at] for at, size in enumerate(shape)]
        _write_shape(value, (batch, *sizes[1:]))


def infer_missing_shapes(model: ModelProto) -> None:
    """Add inferred shapes to outputs without one in the file, where onnx can infer them."""
    missing = [value for value in model.graph.output if not value.type.tensor_type.HasField("shape")]
    if not missing:
        return
    found = {value.name: value for value in _inferred(model, "inferring shapes").graph.output}
    for value in missing:
        if found[value.name].type.tensor_type.HasField("shape"):
            value.CopyFrom(found[value.name])


def transpose_input(graph: GraphProto, value: ValueInfoProto, *, is_nhwc: bool) -> None:
    """Accept a 4-D input as NHWC, or as NCHW: a Transpose converts it to the layout that the graph reads.

    Raises:
        GraphError: INCOMPATIBLE if it is also an output.
    """
    shape = shape_of(value)
    inner = free_name(graph, f"{value.name}_as_trained")
    rename_reads(graph, value.name, inner)
    for output in graph.output:
        if output.name == value.name:
            raise incompatible(f"{value.name!r} is an input and an output; it cannot have input_layout_rt.")
    graph.node.insert(0, helper.make_node("Transpose", [value.name], [inner], perm=TO_NCHW if is_nhwc else TO_NHWC))
    _write_shape(value, tuple(shape[axis] for axis in (TO_NHWC if is_nhwc else TO_NCHW)))


def rename_reads(graph: GraphProto, old: str, new: str) -> None:
    """Make every node that reads a value read another one, including nodes in control-flow bodies."""
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new
        for body in bodies(node):
            rename_reads(body, old, new)


def free_name(graph: GraphProto, wanted: str) -> str:
    """Return an unused value name: the desired one, or that with trailing underscores."""
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    taken |= {value.name for value in (*graph.input, *graph.output, *graph.initializer)}
    while wanted in taken:
        wanted += "_"
    return wanted


def _write_shape(value: ValueInfoProto, shape: tuple[int, ...]) -> None:
    target = value.type.tensor_type.shape
    del target.dim[:]
    for size in shape:
        dim = target.dim.add()
        if size != DYNAMIC:
            dim.dim_value = size


def _inferred(model: ModelProto, what: str) -> ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
    except Exception as error:  # noqa: BLE001 - its exceptions share no base; each says that the sizes do not fit
        let_out(error)
        raise incompatible(f"onnx rejects the model at {what}: {one_line(error)}") from None
