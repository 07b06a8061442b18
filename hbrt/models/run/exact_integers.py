"""Products of 8-bit integers that are exact on every CPU, as a BPU's are. Pure.

On x86 CPUs without VNNI, onnxruntime adds two products of uint8 by int8 in 16 bits, and the sum saturates. Products of
uint8 by uint8 are exact. Products of int8 by int8 are exact too, but several times slower. So int8 never meets uint8:

- Between QuantizeLinear and DequantizeLinear, onnxruntime itself changes int8 to uint8. It does so for pairs alone. A
  node at the edge of the graph, whose partner is the caller's, gets a pair of uint8 beside it here.
- A constant of int8 that several nodes read has a copy for each: onnxruntime changes it once for each of them.
- An operator on integers, such as QLinearConv, gets its second operand as uint8 here.
- An operator of int8 by int8 stays. onnxruntime then cannot load the model with its option for exact weights. It runs
  without the option, and what lies between QuantizeLinear and DequantizeLinear runs in float.
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
"""An int8 and the uint8 that is larger by it stand for the same number when their zero points differ by it too."""


class _Operands(NamedTuple):
    """Where an operator on integers has its operands: places of inputs. None: what it is does not matter."""

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
    """A model as onnxruntime computes it exactly.

    Args:
        model: Is not changed.
        saturates: Whether the CPU's sums of two products of uint8 by int8 do: one without VNNI. The option for exact
            weights doubles the time of convolutions on one with it.

    Returns:
        The model, or an edited copy, and the entries of the session's configuration that go with it.

    Source: onnxruntime documentation, Quantize ONNX Models, Data type selection,
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    if saturates:
        model = _unshared(model)
    graph = Graph(model)
    products = [node for node in graph.nodes if node.op_type in _PRODUCTS and node.domain in _DOMAINS]
    edges: set[str] = set()
    if any(_first_type(graph, node) == np.int8 for node in products):
        config = {"session.disable_quant_qdq": "1"}
    else:
        # int8 is not kept on any host: then all compute the same graph.
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
    """The model where no two nodes read one dequantized constant: onnxruntime's option changes each for each reader.

    It gives what it changes a name that it makes of the constant's, and refuses to make it twice.
    """
    given = {value.name for value in model.graph.input}  # a constant that a program may set is none
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
    """Type of an operator's first operand, where its zero point has to be there and tells it."""
    at = _PRODUCTS[node.op_type].first_zero_point
    return None if at is None else graph.value(_input(node, at)).dtype


def _is_mixed(graph: Graph, node: NodeProto) -> bool:
    """Whether an operator may multiply uint8 by int8."""
    operands = _PRODUCTS[node.op_type]
    is_first_fit = operands.first_zero_point is None or _first_type(graph, node) == np.uint8
    return is_first_fit and graph.value(_input(node, operands.second)).dtype == np.int8


def _is_int8_edge(graph: Graph, node: NodeProto) -> bool:
    """Whether a node dequantizes an input of the graph, or quantizes an output, of int8, by a zero point it holds."""
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
    """Makes the nodes of an edited graph, in an order to run in."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self.nodes: list[NodeProto] = []
        self._unsigned: dict[str, str] = {}

    def second_as_uint8(self, node: NodeProto) -> None:
        """Give an operator its second operand as uint8. What is a constant onnxruntime computes once."""
        operands = _PRODUCTS[node.op_type]
        changed = NodeProto()
        changed.CopyFrom(node)
        changed.input.extend([""] * (operands.second_zero_point + 1 - len(node.input)))
        zero = changed.input[operands.second_zero_point]
        changed.input[operands.second] = self._as_uint8(changed.input[operands.second])
        changed.input[operands.second_zero_point] = self._as_uint8(zero) if zero else self._constant(np.uint8(_HALF))
        self.nodes.append(changed)

    def complete(self, node: NodeProto, zero: NDArray[Any] | None) -> None:
        """Set a pair of uint8 beside a node at the edge, on the graph's side."""
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
