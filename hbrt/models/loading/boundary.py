"""The boundary between a model's real numbers and its integers: Quantize and Dequantize there become tensor types.

An input that only feeds a QuantizeLinear is passed quantized, as on the board, and an output that only comes from a
DequantizeLinear is returned quantized. Both nodes are removed from the graph and become the tensor's Quantization.
A graph whose own inputs or outputs are integers next to such a node keeps it; the API also reports its quantization.

If the node's scale is not constant, or the number is also used elsewhere, the graph is unchanged and the tensor has
real numbers, as in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from hbrt.models.spec.graph import bodies
from hbrt.models.spec.graph_edits import rename_reads
from hbrt.models.spec.spec import Quantization, QuantizationKind

QUANTIZE = "QuantizeLinear"
DEQUANTIZE = "DequantizeLinear"
DOMAINS = frozenset({"", "ai.onnx", "com.microsoft"})
"""onnxruntime's quantizer uses its own domain for 16-bit types in old opsets; the meaning is the same."""

INTEGERS = {
    TensorProto.INT4: "int4",
    TensorProto.UINT4: "uint4",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
    TensorProto.INT16: "int16",
    TensorProto.UINT16: "uint16",
    TensorProto.INT32: "int32",
}
"""Element types of the quantized side that the API supports; with float8 a graph is unchanged."""

_WIDE = frozenset({TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32})


Held = tuple[int, int] | None
"""Minimum and maximum zero point that an API's structures can hold; None for no limit."""


@dataclass(frozen=True)
class Boundary:
    """A model with quantized inputs and outputs, and how each of them represents real numbers.

    Attributes:
        model: The original model, or a copy without the nodes at the boundary.
        quantization: By tensor name, for the inputs and outputs that are quantized.
        removed: Names of the removed nodes, or of their outputs if unnamed.
        notes: Quantizations that the API does not report because it cannot hold a zero point: a clause for each.
    """

    model: ModelProto
    quantization: dict[str, Quantization] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rule:
    """The parameters of one QuantizeLinear or DequantizeLinear node."""

    quantization: Quantization
    element_type: int

    @property
    def type_name(self) -> str:
        """Numpy type of the integers."""
        return {int(key): name for key, name in INTEGERS.items()}[self.element_type]

    def untold_zero_point(self, held: Held) -> int | None:
        """Return the first zero point that an API with limits would misreport; None if it can hold all.

        The low 8 bits identify an 8-bit type's zero point, but not a wider type's.
        """
        if held is None or self.element_type not in _WIDE:
            return None
        zero = self.quantization.zero_point
        beyond = zero[(zero < held[0]) | (zero > held[1])]
        return int(beyond[0]) if beyond.size else None


def quantized_boundary(model: ModelProto, keep: Collection[str] = (), held: Held = None) -> Boundary:
    """Make the integers at the boundary the model's tensors.

    Args:
        model: A checked model; it is not modified.
        keep: Names of inputs that stay real, since something else creates them: images.
        held: Supported zero points; a tensor of 16 bits or more with another one keeps real numbers.

    Returns:
        The model and the quantization of its tensors. Names and order of inputs and outputs are unchanged.

    Source: ONNX operators, QuantizeLinear and DequantizeLinear, https://onnx.ai/onnx/operators/;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType,
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    """
    # Choose the nodes to remove in the caller's model, so that weights are only copied if necessary.
    if not _moves(model.graph, keep, held):
        return Boundary(model, _told(model.graph, {}, held), notes=_notes(model.graph, keep, held))
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    removed: list[str] = []
    found: dict[str, Quantization] = {}
    # One at a time: a move may leave the next node without readers.
    while moves := _moves(graph, keep, held):
        name, node, rule = moves[0]
        (_take_input if node.op_type == QUANTIZE else _take_output)(graph, name, node, rule)
        found[name] = rule.quantization
        removed.append(node.name or node.output[0])
    _discard_unused_constants(graph, removed_from=model.graph)
    return Boundary(copy, _told(graph, found, held), tuple(removed), _notes(graph, keep, held))


def _moves(graph: GraphProto, keep: Collection[str], held: Held) -> list[tuple[str, NodeProto, _Rule]]:
    """Return the removable nodes: (tensor name, node, its parameters), inputs first."""
    return [move for move in _at_boundary(graph, keep) if move[2].untold_zero_point(held) is None]


def _notes(graph: GraphProto, keep: Collection[str], held: Held) -> tuple[str, ...]:
    """Return what the API does not report only because of its zero point."""
    inputs = {value.name for value in graph.input}
    notes = []
    for found, what in (
        (_at_boundary(graph, keep), "keeps real numbers"),
        (_tellers(graph), "reports no quantization"),
    ):
        for name, node, rule in found:
            if held is not None and (untold := rule.untold_zero_point(held)) is not None:
                side = "input" if name in inputs else "output"
                notes.append(
                    f"The {side} {name!r} {what}: the zero point {untold} of its {node.op_type} "
                    f"({rule.type_name}) is outside {held[0]}..{held[1]}, the range that the API can hold; quantize "
                    "the model with a zero point of 0 there"
                )
    return tuple(notes)


def _at_boundary(graph: GraphProto, keep: Collection[str]) -> list[tuple[str, NodeProto, _Rule]]:
    """Yield the nodes between real tensors and their integers: (tensor, node, its parameters), inputs first."""
    view = _View(graph)
    found = []
    for value in graph.input:
        node = view.only_reader(value.name)
        if value.name in keep or value.name in view.constants or node is None or not _is(node, QUANTIZE):
            continue
        if node.input[0] != value.name or node.output[0] in view.outputs or value.name in view.outputs:
            continue
        rule = view.rule(node, _rank(value))
        if rule is not None:
            found.append((value.name, node, rule))
    for value in graph.output:
        node = view.maker.get(value.name)
        if node is None or not _is(node, DEQUANTIZE) or view.readers[value.name]:
            continue
        source = node.input[0]
        # A node must compute the integers, and they must not already be an output.
        if source not in view.maker or source in view.outputs:
            continue
        rule = view.rule(node, _rank(value))
        if rule is not None:
            found.append((value.name, node, rule))
    return found


class _View:
    """A graph's connections, by name."""

    def __init__(self, graph: GraphProto) -> None:
        self.outputs = {value.name for value in graph.output}
        self.maker = {name: node for node in graph.node for name in node.output if name}
        self.readers: Counter[str] = Counter(_names_read(graph))
        self._first_reader: dict[str, NodeProto] = {}
        for node in graph.node:
            for name in node.input:
                self._first_reader.setdefault(name, node)
        given = {value.name for value in graph.input}
        self.constants = {tensor.name for tensor in graph.initializer}
        # An initializer that is also an input is only a default: the caller may override it.
        self._tensors = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in given}

    def only_reader(self, name: str) -> NodeProto | None:
        """Return the node that reads a value, if it is the only one, reads it once, and is in this graph."""
        return self._first_reader.get(name) if self.readers[name] == 1 else None

    def tensor(self, name: str) -> TensorProto | None:
        """Return a constant's tensor, from an initializer or a Constant node; None if it is not constant."""
        if name in self._tensors:
            tensor = self._tensors[name]
            return None if tensor.data_location == TensorProto.EXTERNAL else tensor
        node = self.maker.get(name)
        if node is None or node.op_type != "Constant" or node.domain not in {"", "ai.onnx"}:
            return None
        attribute = node.attribute[0] if len(node.attribute) == 1 else None
        if attribute is None:
            return None
        if attribute.name == "value":
            found: TensorProto = attribute.t
            return found
        if attribute.name == "value_float":
            return helper.make_tensor(name, TensorProto.FLOAT, [], [attribute.f])
        return None

    def rule(self, node: NodeProto, rank: int | None, stored: int | None = None) -> _Rule | None:
        """Return a Quantize or Dequantize node's parameters; None if they are not constant or not supported by the API.

        ``stored`` is the integer type, for a Dequantize without a zero point, which does not specify it.
        """
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if "block_size" in attributes and attributes["block_size"].i:
            return None  # a scale per block, which the API does not support
        scale_tensor = self.tensor(node.input[1])
        zero_tensor = self.tensor(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        has_zero = len(node.input) > 2 and bool(node.input[2])
        if scale_tensor is None or (has_zero and zero_tensor is None):
            return None
        element = self._element_type(node, zero_tensor, attributes) or stored
        if element not in INTEGERS:
            return None
        scale = np.asarray(numpy_helper.to_array(scale_tensor), np.float32)
        zero = np.zeros(scale.shape, np.int32)
        if zero_tensor is not None:
            zero = np.asarray(numpy_helper.to_array(zero_tensor)).astype(np.int32)
        return _checked(scale, zero, element, attributes, rank)

    def _element_type(
        self, node: NodeProto, zero: TensorProto | None, attributes: dict[str, AttributeProto]
    ) -> int | None:
        if zero is not None:
            return zero.data_type
        if node.op_type == QUANTIZE:
            return (attributes["output_dtype"].i if "output_dtype" in attributes else 0) or TensorProto.UINT8
        # A DequantizeLinear without a zero point does not specify its input type, but the input's producer may.
        maker = self.maker.get(node.input[0])
        return self._element_type(maker, *self._zero_of(maker)) if maker is not None and _is(maker, QUANTIZE) else None

    def _zero_of(self, node: NodeProto) -> tuple[TensorProto | None, dict[str, AttributeProto]]:
        zero = self.tensor(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        return zero, {attribute.name: attribute for attribute in node.attribute}


def _checked(
    scale: NDArray[np.float32],
    zero: NDArray[np.int32],
    element: int,
    attributes: dict[str, AttributeProto],
    rank: int | None,
) -> _Rule | None:
    """Return a rule with one scale, or one per index of an axis; None for numbers that do not quantize."""
    if scale.ndim > 1 or scale.size == 0 or scale.size != zero.size:
        return None
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return None
    axis = attributes["axis"].i if "axis" in attributes else 1
    if scale.size == 1:
        axis = 0
    elif rank is None or not -rank <= axis < rank:
        return None
    quantization = Quantization(
        QuantizationKind.SCALE, scale.reshape(-1), zero.reshape(-1), axis=axis % rank if rank else 0
    )
    return _Rule(quantization, element)


def _take_input(graph: GraphProto, name: str, node: NodeProto, rule: _Rule) -> None:
    """Remove the QuantizeLinear after an input: its readers read the input, which now has its type."""
    rename_reads(graph, node.output[0], name)
    _discard(graph, node.output[0])
    graph.node.remove(node)
    value = next(value for value in graph.input if value.name == name)
    value.type.tensor_type.elem_type = rule.element_type


def _take_output(graph: GraphProto, name: str, node: NodeProto, rule: _Rule) -> None:
    """Remove the DequantizeLinear before an output: its input becomes the output, under the output's name."""
    source = node.input[0]
    graph.node.remove(node)
    rename_reads(graph, source, name)
    _discard(graph, source)
    for maker in graph.node:
        for index, made in enumerate(maker.output):
            if made == source:
                maker.output[index] = name
    value = next(value for value in graph.output if value.name == name)
    value.type.tensor_type.elem_type = rule.element_type


def _told(graph: GraphProto, found: dict[str, Quantization], held: Held) -> dict[str, Quantization]:
    """Return `found`, plus the parameters of remaining nodes next to the graph's integer inputs and outputs."""
    reported = {name: rule.quantization for name, _, rule in _tellers(graph) if rule.untold_zero_point(held) is None}
    return reported | found


def _tellers(graph: GraphProto) -> list[tuple[str, NodeProto, _Rule]]:
    """Yield the nodes next to the graph's integer inputs and outputs: (tensor name, node, its parameters)."""
    view = _View(graph)
    tellers = []
    for value in graph.input:
        node = view.only_reader(value.name)
        if node is not None and _is(node, DEQUANTIZE) and node.input[0] == value.name:
            rule = view.rule(node, _rank(value), value.type.tensor_type.elem_type)
            if rule is not None:
                tellers.append((value.name, node, rule))
    for value in graph.output:
        maker = view.maker.get(value.name)
        if maker is not None and _is(maker, QUANTIZE):
            rule = view.rule(maker, _rank(value))
            if rule is not None:
                tellers.append((value.name, maker, rule))
    return tellers


def _is(node: NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and node.domain in DOMAINS and len(node.input) >= 2


def _rank(value: ValueInfoProto) -> int | None:
    tensor = value.type.tensor_type
    return len(tensor.shape.dim) if tensor.HasField("shape") else None


def _names_read(graph: GraphProto) -> Iterator[str]:
    """Yield every name that the graph's nodes read, and those that bodies of its nodes may capture."""
    for node in graph.node:
        yield from (name for name in node.input if name)
        for body in bodies(node):
            yield from _names_read(body)


def _discard(graph: GraphProto, name: str) -> None:
    """Drop the graph's type information for a removed value."""
    for infos in (graph.value_info, graph.quantization_annotation):
        for index in range(len(infos) - 1, -1, -1):
            info = infos[index]
            if (info.name if isinstance(info, ValueInfoProto) else info.tensor_name) == name:
                del infos[index]


def _discard_unused_constants(graph: GraphProto, removed_from: GraphProto) -> None:
    """Drop scales and zero points read only by the removed nodes: onnxruntime warns about unused ones."""
    read = set(_names_read(graph)) | {value.name for value in graph.output} | {value.name for value in graph.input}
    was_read = set(_names_read(removed_from))
    for index in range(len(graph.initializer) - 1, -1, -1):
        name = graph.initializer[index].name
        if name not in read and name in was_read:
            del graph.initializer[index]
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        if node.op_type == "Constant" and node.output[0] not in read and node.output[0] in was_read:
            del graph.node[index]
