"""Products of 8-bit integers that are exact on every CPU, as on a BPU. Pure.

On x86 CPUs without VNNI, onnxruntime adds two uint8 x int8 products in 16 bits, and the sum saturates. uint8 x uint8
products are exact. So are int8 x int8 products, but they are several times slower. So int8 is never multiplied by
uint8:

- Between QuantizeLinear and DequantizeLinear, onnxruntime itself changes int8 to uint8. It does so only for pairs. A
  node at the edge of the graph, whose partner is the caller, gets an adjacent uint8 pair here.
- An int8 constant that several nodes read gets a copy for each, since onnxruntime changes it once per reader.
- An operator on integers, such as QLinearConv, gets its second operand as uint8 here.
- An int8 x int8 operator is kept. onnxruntime then cannot load the model with its option for exact weights. The model
  runs without the option, and the parts between QuantizeLinear and DequantizeLinear run in float.
- So do those parts of a model that quantizes values, not only constants, with a scale for each channel: onnxruntime's
  operators on integers take one scale, and fail with several or use the first for all channels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from hbrt.models.spec.graph import Graph, reads
from hbrt.models.spec.graph_edits import free_name

_DOMAINS = frozenset({"", "ai.onnx", "com.microsoft"})
_HALF = 128
"""An int8 and the uint8 larger by this represent the same number if their zero points also differ by it."""


class _Operands(NamedTuple):
    """Operand positions among the inputs of integer operators. None: irrelevant."""

    first_zero_point: int | None
    second: int
    second_zero_point: int


_PRODUCTS = {
    "QLinearConv": _Operands(2, 3, 5),
    "QLinearMatMul": _Operands(2, 3, 5),
    "QGemm": _Operands(2, 3, 5),
    "MatMulInteger": _Operands(None, 1, 3),
    "MatMulIntegerToFloat": _Operands(None, 1, 5),
    "DynamicQuantizeMatMul": _Operands(None, 1, 3),
}


def exact_integers(model: ModelProto, *, saturates: bool = True) -> tuple[ModelProto, dict[str, str]]:
    """Return a model that onnxruntime computes exactly.

    Args:
        model: Not modified.
        saturates: Whether the CPU's sums of two uint8 x int8 products saturate (no VNNI). On a CPU with VNNI, the
            option for exact weights would double the time of convolutions.

    Returns:
        The model, or an edited copy, and the session configuration entries to use with it.

    Source: onnxruntime documentation, Quantize ONNX Models, Data type selection,
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    if saturates:
        model = _unshared(model)
    graph = Graph(model)
    products = [node for node in graph.nodes if node.op_type in _PRODUCTS and node.domain in _DOMAINS]
    edges: set[str] = set()
    is_kept = any(_first_type(graph, node) == np.int8 for node in products)
    if is_kept or any(_has_channel_scales(graph, node) for node in graph.nodes):
        config = {"session.disable_quant_qdq": "1"}
    else:
        # int8 is replaced on every host, so that all compute the same graph.
        config = {"session.qdqisint8allowed": "0"}
        if saturates:
            config["session.x64quantprecision"] = "1"
        edges = {node.output[0] for node in graph.nodes if _is_int8_edge(graph, node)}
    mixed = {node.output[0] for node in products if _is_mixed(graph, node)}
    if not mixed and not edges:
        return model, config
    copy = ModelProto()
    copy.CopyFrom(model)
    edit = _Edit(copy.graph)
    for node in graph.nodes:
        output = node.output[0] if node.output else ""
        if output in mixed:
            edit.second_as_uint8(node)
        elif output in edges:
            edit.complete(node, _constant_zero(graph, node))
        else:
            edit.nodes.append(node)
    del copy.graph.node[:]
    copy.graph.node.extend(edit.nodes)
    return copy, config


def _unshared(model: ModelProto) -> ModelProto:
    """Return the model with no dequantized constant read by two nodes: onnxruntime's option changes it per reader.

    It derives the changed constant's name from the original's, and refuses to create it twice.
    """
    given = {value.name for value in model.graph.input}  # not constant if a program may set it
    held = {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.INT8} - given
    makers = {
        node.output[0]: at
        for at, node in enumerate(model.graph.node)
        if node.op_type == "DequantizeLinear" and node.domain in _DOMAINS and node.input[0] in held
    }
    nodes = model.graph.node
    uses = [(at, place) for at, node in enumerate(nodes) for place, name in enumerate(node.input) if name in makers]
    taken: set[str] = set()
    twice = []
    for at, place in uses:
        parts = set(nodes[makers[nodes[at].input[place]]].input) & held
        if parts & taken:
            twice.append((at, place))
        taken |= parts
    if not twice:
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    pairs = []
    for number, (at, place) in enumerate(twice):
        pair = NodeProto()
        pair.CopyFrom(nodes[makers[nodes[at].input[place]]])
        for which in (one for one in (0, 2) if _input(pair, one) in held):
            tensor = graph.initializer.add()
            tensor.CopyFrom(tensors[pair.input[which]])
            tensor.name = pair.input[which] = free_name(graph, f"{tensor.name}_{number}")
        pair.name, pair.output[0] = f"{pair.name}_{number}", free_name(graph, f"{pair.output[0]}_{number}")
        graph.node[at].input[place] = pair.output[0]
        pairs.append(pair)
    read = {name for node in graph.node for name in reads(node)} | {value.name for value in graph.output}
    pairs += [node for node in graph.node if not makers.keys() & set(node.output) - read]
    del graph.node[:]
    graph.node.extend(pairs)
    return copy


def _input(node: NodeProto, at: int) -> str:
    return node.input[at] if at < len(node.input) else ""


def _first_type(graph: Graph, node: NodeProto) -> np.dtype[Any] | None:
    """Return the type of an operator's first operand, from its mandatory zero point."""
    at = _PRODUCTS[node.op_type].first_zero_point
    return None if at is None else graph.value(_input(node, at)).dtype


def _has_channel_scales(graph: Graph, node: NodeProto) -> bool:
    """Whether a node dequantizes an input of the graph, or quantizes a value, with several scales."""
    if node.domain not in _DOMAINS:
        return False
    if node.op_type == "DequantizeLinear":
        is_value = node.input[0] in graph.inputs
    else:
        is_value = node.op_type == "QuantizeLinear" and graph.constant(node.input[0]) is None
    scale = graph.constant(node.input[1]) if is_value else None
    return scale is not None and scale.size > 1


def _is_mixed(graph: Graph, node: NodeProto) -> bool:
    """Whether an operator may multiply uint8 by int8."""
    operands = _PRODUCTS[node.op_type]
    is_first_fit = operands.first_zero_point is None or _first_type(graph, node) == np.uint8
    return is_first_fit and graph.value(_input(node, operands.second)).dtype == np.int8


def _is_int8_edge(graph: Graph, node: NodeProto) -> bool:
    """Whether a node dequantizes an int8 input of the graph, or quantizes an int8 output, with its own zero point."""
    if node.domain not in _DOMAINS or any(attribute.name == "block_size" for attribute in node.attribute):
        return False
    if node.op_type == "DequantizeLinear":
        tensor = graph.inputs.get(node.input[0])
    elif node.op_type == "QuantizeLinear":
        tensor = graph.outputs.get(node.output[0])
    else:
        return False
    is_int8 = tensor is not None and tensor.type.tensor_type.elem_type == TensorProto.INT8
    return is_int8 and _constant_zero(graph, node) is not None


def _constant_zero(graph: Graph, node: NodeProto) -> NDArray[Any] | None:
    name = _input(node, 2)
    return graph.constant(name) if name else np.array(0, np.int8)


class _Edit:
    """Creates the nodes of an edited graph, in execution order."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self.nodes: list[NodeProto] = []
        self._unsigned: dict[str, str] = {}

    def second_as_uint8(self, node: NodeProto) -> None:
        """Convert an operator's second operand to uint8. onnxruntime folds constants once."""
        operands = _PRODUCTS[node.op_type]
        changed = NodeProto()
        changed.CopyFrom(node)
        changed.input.extend([""] * (operands.second_zero_point + 1 - len(node.input)))
        zero = changed.input[operands.second_zero_point]
        changed.input[operands.second] = self._as_uint8(changed.input[operands.second])
        changed.input[operands.second_zero_point] = self._as_uint8(zero) if zero else self._constant(np.uint8(_HALF))
        self.nodes.append(changed)

    def complete(self, node: NodeProto, zero: NDArray[Any] | None) -> None:
        """Insert a uint8 pair next to a node at the edge, on the graph's side."""
        assert zero is not None  # noqa: S101 - edges without are left as they are
        unsigned = self._constant((zero.astype(np.int16) + _HALF).astype(np.uint8))
        changed = NodeProto()
        changed.CopyFrom(node)
        real, stored = (free_name(self._graph, f"{node.output[0]}_{what}") for what in ("real", "uint8"))
        axis = {attribute.name: attribute.i for attribute in node.attribute if attribute.name == "axis"}
        pair = []
        is_input = node.op_type == "DequantizeLinear"
        source, result = (real, node.output[0]) if is_input else (node.input[0], real)
        for op_type, read, made in (("QuantizeLinear", source, stored), ("DequantizeLinear", stored, result)):
            names = [read, node.input[1], unsigned]
            pair.append(helper.make_node(op_type, names, [made], domain=node.domain, **axis))
        if is_input:
            changed.output[0] = real
            self.nodes += [changed, *pair]
        else:
            changed.input[0] = real
            self.nodes += [*pair, changed]

    def _as_uint8(self, name: str) -> str:
        if name not in self._unsigned:
            wide, moved, result = (free_name(self._graph, f"{name}_{what}") for what in ("wide", "moved", "uint8"))
            self.nodes += [
                helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
                helper.make_node("Add", [wide, self._constant(np.int32(_HALF))], [moved]),
                helper.make_node("Cast", [moved], [result], to=TensorProto.UINT8),
            ]
            self._unsigned[name] = result
        return self._unsigned[name]

    def _constant(self, value: NDArray[Any] | np.generic) -> str:
        name = free_name(self._graph, f"half_{len(self._graph.initializer)}")
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name
