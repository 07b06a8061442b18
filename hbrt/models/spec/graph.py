"""A model's graph for layers and partitioning: producers, readers and known facts of values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from hbrt.borders.interrupts import let_out
from hbrt.models.errors import incompatible
from hbrt.models.spec.spec import DYNAMIC

ONNX_DOMAINS = ("", "ai.onnx")
_MAX_INFERENCE_BYTES = 64 << 10  # shape inference only reads small tensors; large ones need not be copied for it


@dataclass(frozen=True)
class Value:
    """What is known about a value before the model runs.

    Attributes:
        name: As in the graph.
        dtype: None if unknown, or if it is not a numeric tensor.
        shape: DYNAMIC where a size is open; None if even the rank is unknown.
        constant: Its elements, if the model contains them.
    """

    name: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] | None = None
    constant: NDArray[Any] | None = None


@dataclass(frozen=True)
class NodeInfo:
    """A node that a layer may take over.

    Attributes:
        name: The node's name, or its first output's if unnamed.
        op_type: Op type, such as "Softmax".
        domain: "" for ONNX's own operators.
        opset: The model's opset version for the domain.
        attributes: The node's attributes: int, float, str, lists of these, numpy arrays for tensors.
        inputs: Inputs; None for a missing optional one.
        outputs: Outputs; None for a missing optional one.
        is_nested: Whether it is in the body of an If, Loop or Scan, where layers cannot run.
        graph: The graph, to find its neighbors.
    """

    name: str
    op_type: str
    domain: str
    opset: int
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value | None, ...]
    is_nested: bool = False
    graph: Graph | None = field(default=None, repr=False, compare=False)

    def producer(self, index: int) -> NodeInfo | None:
        """Return the node that produces an input; None for a model input, a constant, or a missing input."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if self.graph is None or value is None or (at := self.graph.producers.get(value.name)) is None:
            return None
        return self.graph.info(at)

    def consumers(self, index: int) -> list[NodeInfo]:
        """Return the nodes that read an output, in graph order."""
        value = self.outputs[index] if index < len(self.outputs) else None
        if self.graph is None or value is None:
            return []
        return [self.graph.info(at) for at in self.graph.consumers.get(value.name, ())]

    def is_output(self, index: int) -> bool:
        """Whether an output is a model output."""
        value = self.outputs[index] if index < len(self.outputs) else None
        return self.graph is not None and value is not None and value.name in self.graph.outputs


class Graph:
    """The main graph of a model."""

    def __init__(self, model: ModelProto) -> None:
        """``model`` is not modified, and must not be while this object exists."""
        self.model = model
        self.nodes: list[NodeProto] = list(model.graph.node)
        self.opsets = {_domain(entry.domain): entry.version for entry in model.opset_import}
        self.tensors: dict[str, TensorProto] = {tensor.name: tensor for tensor in model.graph.initializer}
        self.sparse = {tensor.values.name: tensor for tensor in model.graph.sparse_initializer}
        self.inputs = {entry.name: entry for entry in model.graph.input if entry.name not in self.tensors}
        self.outputs = {entry.name: entry for entry in model.graph.output}
        self.producers: dict[str, int] = {}
        self.consumers: dict[str, list[int]] = {}
        for at, node in enumerate(self.nodes):
            self.producers.update((name, at) for name in node.output if name)
            for name in dict.fromkeys(reads(node)):
                self.consumers.setdefault(name, []).append(at)
        self._infos: dict[int, NodeInfo] = {}
        self._known: dict[str, ValueInfoProto] | None = None

    def info(self, at: int) -> NodeInfo:
        """Return a layer's description of the node at an index."""
        if at not in self._infos:
            self._infos[at] = self._describe(self.nodes[at], is_nested=False)
        return self._infos[at]

    def nested(self) -> Iterator[NodeInfo]:
        """Yield every node in control-flow bodies, at any depth."""
        return (self._describe(node, is_nested=True) for top in self.nodes for node in _inside(top))

    def constant(self, name: str) -> NDArray[Any] | None:
        """Return the elements of an initializer or Constant node; None if the model does not contain them."""
        if (tensor := self.tensors.get(name)) is not None:
            return numpy_helper.to_array(tensor)
        at = self.producers.get(name)
        return None if at is None else constant_of(self.nodes[at])

    def value(self, name: str) -> Value:
        """Return what is known about a value."""
        constant = self.constant(name)
        if constant is not None:
            return Value(name, constant.dtype, constant.shape, constant)
        entry = self.known.get(name)
        return Value(name) if entry is None else Value(name, *described(entry))

    @property
    def known(self) -> dict[str, ValueInfoProto]:
        """Types of values by name: declared, or found by ONNX shape inference."""
        if self._known is None:
            self._known = _inferred(self.model)
        return self._known

    def _describe(self, node: NodeProto, *, is_nested: bool) -> NodeInfo:
        def values(names: Any) -> tuple[Value | None, ...]:
            return tuple((Value(name) if is_nested else self.value(name)) if name else None for name in names)

        domain = _domain(node.domain)
        return NodeInfo(
            name=name_of(node),
            op_type=node.op_type,
            domain=domain,
            opset=self.opsets.get(domain, 1),
            attributes={attribute.name: attribute_value(attribute) for attribute in node.attribute},
            inputs=values(node.input),
            outputs=values(node.output),
            is_nested=is_nested,
            graph=None if is_nested else self,
        )


def name_of(node: NodeProto) -> str:
    """Return a node's name, or its first output's if unnamed."""
    return node.name or next((name for name in node.output if name), node.op_type)


def reads(node: NodeProto) -> list[str]:
    """Yield the names of values that a node reads, including those captured by its control-flow bodies."""
    names = [name for name in node.input if name]
    for body in bodies(node):
        names += _free(body)
    return names


def bodies(node: NodeProto) -> list[GraphProto]:
    """Yield the graphs in a node's attributes: branches, loop bodies."""
    found: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            found.append(attribute.g)
        elif attribute.type == AttributeProto.GRAPHS:
            found.extend(attribute.graphs)
    return found


def constant_of(node: NodeProto) -> NDArray[Any] | None:
    """Return the value of a Constant node, if it is a numeric tensor."""
    if node.op_type != "Constant" or _domain(node.domain) or not node.attribute:
        return None
    attribute = node.attribute[0]
    if attribute.name == "value":
        return numpy_helper.to_array(attribute.t)
    numbers = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if attribute.name in numbers:
        return np.asarray(helper.get_attribute_value(attribute), numbers[attribute.name])
    return None


def attribute_value(attribute: AttributeProto) -> Any:
    """Convert an attribute to a Python value; graphs and types stay ONNX objects."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if attribute.type == AttributeProto.STRINGS:
        return [entry.decode("utf-8", "replace") for entry in value]
    if attribute.type == AttributeProto.TENSORS:
        return [numpy_helper.to_array(entry) for entry in value]
    return value if isinstance(value, (int, float, str)) or not hasattr(value, "__iter__") else list(value)


def described(entry: ValueInfoProto) -> tuple[np.dtype[Any] | None, tuple[int, ...] | None]:
    """Return the type and shape that an entry declares; None for undeclared ones."""
    kind = entry.type.tensor_type
    if entry.type.WhichOneof("value") != "tensor_type" or not kind.elem_type or kind.elem_type == TensorProto.STRING:
        return None, None
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if not kind.HasField("shape"):
        return dtype, None
    return dtype, tuple(dim.dim_value if dim.HasField("dim_value") else DYNAMIC for dim in kind.shape.dim)


def shape_of(value: ValueInfoProto) -> tuple[int, ...]:
    """Return a graph tensor's shape, with DYNAMIC for open sizes.

    Raises:
        GraphError: INCOMPATIBLE: not a tensor, or the number of dimensions is unknown.
    """
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise incompatible(
            f"{value.name!r} is a {(kind or 'value without a type').removesuffix('_type')}; the API only has tensors."
        )
    if not value.type.tensor_type.HasField("shape"):
        raise incompatible(
            f"The file does not specify the number of dimensions of the tensor {value.name!r}; give it a shape, or run "
            f"onnx.shape_inference on the model."
        )
    return tuple(
        dim.dim_value if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0 else DYNAMIC
        for dim in value.type.tensor_type.shape.dim
    )


def _domain(name: str) -> str:
    return "" if name in ONNX_DOMAINS else name


def _inside(node: NodeProto) -> Iterator[NodeProto]:
    for body in bodies(node):
        for inner in body.node:
            yield inner
            yield from _inside(inner)


def _free(body: GraphProto) -> list[str]:
    """Yield names that a body captures from outside."""
    bound = {entry.name for entry in (*body.input, *body.initializer)}
    bound |= {tensor.values.name for tensor in body.sparse_initializer}
    bound |= {name for node in body.node for name in node.output}
    wanted = [name for node in body.node for name in reads(node)]
    wanted += [entry.name for entry in body.output]
    return [name for name in wanted if name not in bound]


def _inferred(model: ModelProto) -> dict[str, ValueInfoProto]:
    """Return declared types, completed by shape inference on the model without its large tensors."""
    light = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    light.graph.name = model.graph.name
    for name in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(light.graph, name).extend(getattr(model.graph, name))
    declared = {entry.name for entry in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.ByteSize() <= _MAX_INFERENCE_BYTES:
            light.graph.initializer.append(tensor)
        elif tensor.name not in declared:
            light.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    try:
        light = onnx.shape_inference.infer_shapes(light, data_prop=True)
    except Exception as error:  # noqa: BLE001 - it raises many kinds; what is declared is still known, and onnxruntime judges
        let_out(error)
        light = model
    graph = light.graph
    return {entry.name: entry for entry in (*graph.value_info, *graph.output, *graph.input)}
