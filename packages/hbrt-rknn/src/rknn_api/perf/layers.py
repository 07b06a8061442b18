"""The layers of a graph as an NPU runs them: operators, with the data that they read, multiply and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, numpy_helper

from hbrt.models.spec.graph import described
from hbrt.models.spec.graph_edits import graph_inputs, with_outputs
from rknn_api.container import NORMALIZED, Metadata
from rknn_api.errors import RknnError
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import GraphRunner

Shape = tuple[int, ...]

_PAIR = frozenset({"QuantizeLinear", "DequantizeLinear"})
_QUANTIZED = {"w8a8": "INT8", "w8a16": "INT16", "w16a16i": "INT16"}
_MERGED = frozenset({"Relu", "Clip", "LeakyRelu", "PRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Elu", "Tanh"})
"""After a convolution, these are part of its layer, as named in published logs: ConvRelu, ConvLeakyRelu, ..."""
_SWISH = "ExSwish"
_ON_CPU = frozenset({"Softmax", "LogSoftmax"})
"""Run on the CPU in published logs."""


@dataclass(frozen=True)
class Layer:
    """One layer.

    Attributes:
        op_type: Such as "Conv"; with the operators that the quantizer merged into it, such as "ConvRelu".
        name: Name of the node.
        dtype: "INT8", "INT16", "FLOAT16" or another numpy type.
        target: "NPU" or "CPU".
        inputs: Shapes of its inputs, without weights.
        output: Shape of its output.
        weights: Shapes of its weights and biases, the weights first.
        macs: Multiplications.
        is_depthwise: Whether it is a convolution with one group per channel.
    """

    op_type: str
    name: str
    dtype: str
    target: str
    inputs: tuple[Shape, ...]
    output: Shape
    weights: tuple[Shape, ...] = ()
    macs: int = 0
    is_depthwise: bool = False

    @property
    def element_bytes(self) -> int:
        """Bytes per element of its inputs and outputs."""
        return np.dtype(self.dtype.lower()).itemsize


def layers_of(model: ModelProto, metadata: Metadata, ops: CustomOps) -> list[Layer]:
    """The layers, InputOperator first and OutputOperator last; QuantizeLinear and DequantizeLinear are omitted.

    Args:
        model: The graph of a model file.
        metadata: Of the file.
        ops: The program's ops, which run on the CPU.

    Raises:
        RknnError: the model cannot be run to find its shapes.
    """
    view = _View(model, _shapes(model, metadata, ops))
    quantized = _QUANTIZED.get(metadata.quantized_dtype, "FLOAT16")
    fused: Mapping[str, str] = metadata.extra.get("fused", {})
    merging = _Merging(view, {value.name for value in model.graph.output})
    for node in view.operators():
        inputs = [view.shapes.get(name, ()) for name in node.input if name and not view.is_weight(name)]
        weights = tuple(view.shapes[name] for name in node.input if name and view.is_weight(name))
        output = view.shapes.get(node.output[0], ())  # a list of tensors has none
        macs, is_depthwise = _macs(node, inputs, weights, output)
        is_quantized = any(view.is_integer(name) for name in (*node.input, *node.output))
        is_on_cpu = node.op_type in ops or node.op_type in _ON_CPU
        merging.add(
            node,
            Layer(
                fused.get(node.output[0], node.op_type),
                node.name or node.output[0],
                quantized if is_quantized else "FLOAT16",
                "CPU" if is_on_cpu else "NPU",
                tuple(inputs),
                output,
                weights,
                macs,
                is_depthwise,
            ),
        )
    layers = [_edge("InputOperator", one.name, one.stored.upper(), one.shape) for one in metadata.inputs]
    layers += merging.made.values()
    for one in metadata.outputs:  # as in the guide's table, real numbers leave as float16
        dtype = "FLOAT16" if one.dtype == "float32" else one.dtype.upper()
        layers.append(_edge("OutputOperator", one.name, dtype, one.shape))
    return layers


def _edge(op_type: str, name: str, dtype: str, shape: Shape) -> Layer:
    return Layer(op_type, name, dtype, "CPU", (shape,), shape)


def _shapes(model: ModelProto, metadata: Metadata, ops: CustomOps) -> dict[str, Shape]:
    """Shapes of the tensors: from a run on zeros, or inferred for constants, which onnxruntime does not return."""
    constants = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" or (node.input and constants.issuperset(filter(None, node.input))):
            constants.update(node.output)
    values = onnx.shape_inference.infer_shapes(model).graph.value_info
    lists = {value.name for value in values if not value.type.HasField("tensor_type")}
    known = {value.name: described(value)[1] or () for value in values if value.name in constants}
    beside = constants | lists
    names = [name for node in model.graph.node for name in node.output if name and name not in beside]
    feeds = {one.name: np.zeros(one.shape, one.dtype) for one in metadata.inputs}
    runner = GraphRunner(with_outputs(model, names), "the model", ops)
    try:
        made = runner.run({value.name: feeds[value.name] for value in graph_inputs(model.graph)})
    except RknnError as error:
        raise RknnError(
            error.status, f"The layers are counted by a run on zeros, which the model does not accept. {error.text}"
        ) from None
    finally:
        runner.close()
    return known | {name: array.shape for name, array in (*feeds.items(), *made.items())}


class _View:
    """A graph without the pairs of QuantizeLinear and DequantizeLinear."""

    def __init__(self, model: ModelProto, shapes: Mapping[str, Shape]) -> None:
        self._nodes = list(model.graph.node)
        self._constants = {tensor.name for tensor in model.graph.initializer}
        self.shapes: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        self._integers = {
            name for node in self._nodes if node.op_type in _PAIR for name in (node.input[0], node.output[0])
        }
        quantized = {node.output[0]: node.input[0] for node in self._nodes if node.op_type == "QuantizeLinear"}
        self._stored = {
            node.output[0]: quantized[node.input[0]]
            for node in self._nodes
            if node.op_type == "DequantizeLinear" and node.input[0] in quantized
        }
        for node in self._nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.shapes[node.output[0]] = numpy_helper.to_array(node.attribute[0].t).shape
                self._constants.add(node.output[0])
            if node.op_type == "DequantizeLinear" and node.input[0] in self._constants:
                self._constants.add(node.output[0])
                self.shapes[node.output[0]] = self.shapes[node.input[0]]
        self.shapes |= shapes

    def operators(self) -> Iterator[NodeProto]:
        """The nodes that compute."""
        for node in self._nodes:
            if node.op_type not in _PAIR | {"Constant"} and not node.name.startswith(NORMALIZED):
                yield node

    def source(self, name: str) -> str:
        """The value before it was quantized and dequantized."""
        while name in self._stored:
            name = self._stored[name]
        return name

    def is_weight(self, name: str) -> bool:
        """Whether the file contains a value."""
        return name in self._constants

    def is_integer(self, name: str) -> bool:
        """Whether a value is quantized or dequantized next to its reader."""
        return name in self._integers and name not in self._constants


class _Merging:
    """Layers as on an NPU: an operator that follows a convolution and is its only reader becomes part of its layer.

    Attributes:
        made: The layers so far, by output value.

    Source: rknn_model_zoo, logs of eval_perf (ConvRelu, ConvExSwish, ConvAdd, exSwish),
    https://github.com/airockchip/rknn_model_zoo
    Emulator: if both sides of an Add are convolutions, it becomes part of the later one.
    """

    def __init__(self, view: _View, outputs: set[str]) -> None:
        self.made: dict[str, Layer] = {}
        self._view = view
        nodes = list(view.operators())
        self._readers: dict[str, list[NodeProto]] = {}
        for node in nodes:
            for name in map(view.source, node.input):
                self._readers.setdefault(name, []).append(node)
        self._outputs = {view.source(name) for name in outputs} | outputs
        self._swish = {}  # by the value that a Sigmoid makes, the value multiplied by it
        for node in nodes:
            read = self._readers.get(node.output[0], [])
            source = view.source(node.input[0]) if node.input else ""
            is_swish = [one.op_type for one in (node, *read)] == ["Sigmoid", "Mul"]
            if is_swish and source in map(view.source, read[0].input) and node.output[0] not in self._outputs:
                self._swish[node.output[0]] = source

    def add(self, node: NodeProto, layer: Layer) -> None:
        """Add a node as a layer of its own or to an earlier layer."""
        value, sources = node.output[0], [self._view.source(name) for name in node.input if name]
        if value in self._swish:
            return
        swished = next((self._swish[name] for name in sources if name in self._swish), None)
        if swished is not None:
            whole = replace(layer, op_type="exSwish", inputs=layer.inputs[:1])
            self._merge(value, swished, whole, _SWISH, readers=2)
        elif node.op_type in _MERGED and sources:
            self._merge(value, sources[0], layer, node.op_type)
        elif node.op_type == "Add" and len(layer.inputs) == 2:
            order = list(self.made)
            ready = [name for name in sources if self._ends_in(name, 1)]
            last = max(ready, key=order.index) if ready else ""
            self._merge(value, last, layer, "Add", beside=layer.inputs[:1])
        else:
            self.made[value] = layer

    def _ends_in(self, value: str, readers: int) -> bool:
        """Whether a value comes from a convolution's layer and has no other reader."""
        before = self.made.get(value)
        is_alone = len(self._readers.get(value, [])) == readers and value not in self._outputs
        return before is not None and before.op_type.startswith("Conv") and is_alone

    def _merge(
        self, value: str, source: str, layer: Layer, op_type: str, readers: int = 1, beside: tuple[Shape, ...] = ()
    ) -> None:
        if not self._ends_in(source, readers):
            self.made[value] = layer
            return
        before = self.made.pop(source)
        self.made[value] = replace(
            before, op_type=before.op_type + op_type, inputs=before.inputs + beside, output=layer.output
        )


def _macs(node: NodeProto, inputs: list[Shape], weights: tuple[Shape, ...], output: Shape) -> tuple[int, bool]:
    """Multiplications of a node, and whether it is a convolution with one group per channel."""
    if node.op_type == "Conv" and weights:
        kernel = weights[0]
        group = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
        return prod(output) * prod(kernel[1:]), group > 1 and kernel[1] == 1
    if node.op_type == "ConvTranspose" and weights and inputs:
        return prod(inputs[0]) * prod(weights[0][1:]), False
    if node.op_type in {"Gemm", "MatMul"}:
        first, *_ = (*inputs, *weights)
        is_turned = node.op_type == "Gemm" and any(one.name == "transA" and one.i for one in node.attribute)
        return prod(output) * (first[0] if is_turned else first[-1]), False
    return 0, False
