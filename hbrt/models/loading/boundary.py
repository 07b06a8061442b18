"""Where a model's real numbers meet its integers: Quantize and Dequantize at the boundary become the tensors' own type.

An input that only goes into a QuantizeLinear is given quantized, as on the board, and an output that only comes from a
DequantizeLinear is handed out quantized. Both nodes leave the graph; what they knew becomes the tensor's Quantization.
A graph whose own inputs or outputs are integers beside such a node keeps it; the API reports its quantization as well.

Where the node's scale is not a constant, or the number is used elsewhere too, the graph stays as it is: then the tensor
is what the file says, real numbers.
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
"""onnxruntime's quantizer writes 16-bit types into its own domain for old op sets; the meaning is the same."""

INTEGERS = {
    TensorProto.INT4: "int4",
    TensorProto.UINT4: "uint4",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
    TensorProto.INT16: "int16",
    TensorProto.UINT16: "uint16",
    TensorProto.INT32: "int32",
}
"""Element types of the quantized side that the API can tell of; with float8 a graph stays as it is."""

_WIDE = frozenset({TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32})


Held = tuple[int, int] | None
"""Least and greatest zero point that an API's structures hold; None for all."""


@dataclass(frozen=True)
class Boundary:
    """A model whose quantized inputs and outputs are its own, and how each of them stands for real numbers.

    Attributes:
        model: The model given, untouched, or a copy without the nodes at the boundary.
        quantization: By tensor name, for the inputs and outputs that are quantized.
        removed: Names of the nodes that left the graph, or their outputs' where they have none.
        notes: Quantizations that the API does not report, as the API cannot hold a zero point: a clause for each.
    """

    model: ModelProto
    quantization: dict[str, Quantization] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rule:
    """What one QuantizeLinear or DequantizeLinear node says."""

    quantization: Quantization
    element_type: int

    @property
    def type_name(self) -> str:
        """Of the integers, as numpy has it."""
        return {int(key): name for key, name in INTEGERS.items()}[self.element_type]

    def untold_zero_point(self, held: Held) -> int | None:
        """The first zero point that an API which holds only some would say wrongly; None when it can hold all.

        The low 8 bits of an 8-bit type's say which it is; those of a wider type do not.
        """
        if held is None or self.element_type not in _WIDE:
            return None
        zero = self.quantization.zero_point
        beyond = zero[(zero < held[0]) | (zero > held[1])]
        return int(beyond[0]) if beyond.size else None


def quantized_boundary(model: ModelProto, keep: Collection[str] = (), held: Held = None) -> Boundary:
    """Make the integers at the boundary the tensors of the model.

    Args:
        model: A checked model; it is not changed.
        keep: Names of inputs whose numbers stay real, since something else makes them: images.
        held: A tensor of 16 bits or more with another zero point stays one of real numbers.

    Returns:
        The model and the quantization of its tensors. Names and order of inputs and outputs stay.

    Source: ONNX operators, QuantizeLinear and DequantizeLinear, https://onnx.ai/onnx/operators/;
    BPU SDK API manual (J5 OE 1.1.77), 9.2.2.2.12 hbDNNQuantiType,
    https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
    """
    # Which nodes go is decided on the caller's model; weights are copied only when there is something to rewrite.
    if not _moves(model.graph, keep, held):
        return Boundary(model, _told(model.graph, {}, held), notes=_notes(model.graph, keep, held))
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    removed: list[str] = []
    found: dict[str, Quantization] = {}
    # One at a time: a move may leave the next one's node with nothing behind it.
    while moves := _moves(graph, keep, held):
        name, node, rule = moves[0]
        (_take_input if node.op_type == QUANTIZE else _take_output)(graph, name, node, rule)
        found[name] = rule.quantization
        removed.append(node.name or node.output[0])
    _drop_unused_constants(graph, removed_from=model.graph)
    return Boundary(copy, _told(graph, found, held), tuple(removed), _notes(graph, keep, held))


def _moves(graph: GraphProto, keep: Collection[str], held: Held) -> list[tuple[str, NodeProto, _Rule]]:
    """The nodes that can leave: (tensor's name, node, what it says), inputs first."""
    return [move for move in _at_boundary(graph, keep) if move[2].untold_zero_point(held) is None]


def _notes(graph: GraphProto, keep: Collection[str], held: Held) -> tuple[str, ...]:
    """What the API does not report for its zero point alone."""
    inputs = {value.name for value in graph.input}
    notes = []
    for found, what in (
        (_at_boundary(graph, keep), "stays a tensor of real numbers"),
        (_tellers(graph), "tells no quantization"),
    ):
        for name, node, rule in found:
            if held is not None and (untold := rule.untold_zero_point(held)) is not None:
                side = "input" if name in inputs else "output"
                notes.append(
                    f"The {side} {name!r} {what}: the zero point {untold} of its {node.op_type} "
                    f"({rule.type_name}) is outside {held[0]}..{held[1]}, which is all that the API holds; quantize "
                    "the model with a zero point of 0 there"
                )
    return tuple(notes)


def _at_boundary(graph: GraphProto, keep: Collection[str]) -> list[tuple[str, NodeProto, _Rule]]:
    """The nodes between a tensor of real numbers and its integers: (tensor, node, what it says), inputs first."""
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
        # Something in the graph has to make the integers, and they may not be an output already.
        if source not in view.maker or source in view.outputs:
            continue
        rule = view.rule(node, _rank(value))
        if rule is not None:
            found.append((value.name, node, rule))
    return found


class _View:
    """A graph's wiring, looked up by name."""

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
        # An initializer that is an input too is only a default: the caller may give another.
        self._tensors = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in given}

    def only_reader(self, name: str) -> NodeProto | None:
        """The node that reads a value, when it is the only one, reads it once, and lies in this graph."""
        return self._first_reader.get(name) if self.readers[name] == 1 else None

    def tensor(self, name: str) -> TensorProto | None:
        """A constant's tensor: an initializer's or a Constant node's; None for what is no constant."""
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
        """What a Quantize or Dequantize node says; None when it is not constant, or not what the API can tell.

        ``stored`` is the type of the integers, for a Dequantize without a zero point, which does not say it.
        """
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if "block_size" in attributes and attributes["block_size"].i:
            return None  # a scale per block: no tensor of the API has that
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
        # A DequantizeLinear without a zero point does not say the type of what it reads; its maker may.
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
    """A rule of one scale, or of one for each index of an axis; None for numbers that quantize nothing."""
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
    """Remove the QuantizeLinear behind an input: its readers read the input, which is of its type now."""
    rename_reads(graph, node.output[0], name)
    _forget(graph, node.output[0])
    graph.node.remove(node)
    value = next(value for value in graph.input if value.name == name)
    value.type.tensor_type.elem_type = rule.element_type


def _take_output(graph: GraphProto, name: str, node: NodeProto, rule: _Rule) -> None:
    """Remove the DequantizeLinear before an output: what it read is the output now, under the output's name."""
    source = node.input[0]
    graph.node.remove(node)
    rename_reads(graph, source, name)
    _forget(graph, source)
    for maker in graph.node:
        for index, made in enumerate(maker.output):
            if made == source:
                maker.output[index] = name
    value = next(value for value in graph.output if value.name == name)
    value.type.tensor_type.elem_type = rule.element_type


def _told(graph: GraphProto, found: dict[str, Quantization], held: Held) -> dict[str, Quantization]:
    """`found`, and what nodes that stay say of integers that the graph takes or hands out itself."""
    reported = {name: rule.quantization for name, _, rule in _tellers(graph) if rule.untold_zero_point(held) is None}
    return reported | found


def _tellers(graph: GraphProto) -> list[tuple[str, NodeProto, _Rule]]:
    """The nodes beside integers that the graph takes or hands out itself: (tensor's name, node, what it says)."""
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
    """Every name that a node of the graph reads, and those that bodies of its nodes may take from outside."""
    for node in graph.node:
        yield from (name for name in node.input if name)
        for body in bodies(node):
            yield from _names_read(body)


def _forget(graph: GraphProto, name: str) -> None:
    """Drop what the graph says of a value that is gone."""
    for infos in (graph.value_info, graph.quantization_annotation):
        for index in range(len(infos) - 1, -1, -1):
            info = infos[index]
            if (info.name if isinstance(info, ValueInfoProto) else info.tensor_name) == name:
                del infos[index]


def _drop_unused_constants(graph: GraphProto, removed_from: GraphProto) -> None:
    """Drop the scales and zero points that only the removed nodes read: onnxruntime warns of unused ones."""
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
