"""The layers of an ONNX model as an accelerator runs them: activations fused, quantizers and views dropped.

Quantizers, and the types float16 and bfloat16, determine how many bits a layer's numbers have. Other real numbers have
16 bits in a model with either; otherwise the model is assumed to be quantized to int8 later. Needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from hbrt.accelerators.layer import CONV, DEPTHWISE, MATMUL, MOVE, POINTWISE, Layer, Tensor

FREE: Final = frozenset({
    "QuantizeLinear", "DequantizeLinear", "Constant", "ConstantOfShape", "Identity", "Cast", "Reshape", "Flatten",
    "Squeeze", "Unsqueeze", "Shape", "Dropout", "Range",
})  # fmt: skip
"""Views, and ops that a compiler folds."""
FUNCTIONS: Final = frozenset({
    "Softmax", "LogSoftmax", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "Gelu", "Erf", "Exp",
    "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Pow", "Sqrt", "Log", "Softplus", "Mish", "Elu", "Selu", "Celu",
    "Sin", "Cos", "Reciprocal", "Div",
})  # fmt: skip
_FUSED: Final = {
    "Relu": "relu", "Clip": "clip", "LeakyRelu": "leaky", "PRelu": "leaky", "HardSwish": "hardswish", "Gelu": "gelu",
    "Sigmoid": "sigmoid", "Tanh": "tanh", "HardSigmoid": "hardsigmoid", "Mish": "mish",
}  # fmt: skip
_MULTIPLYING: Final = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_SMALL_BYTES: Final = 4096
_BITS: Final = {
    TensorProto.INT4: 4, TensorProto.UINT4: 4, TensorProto.INT8: 8, TensorProto.UINT8: 8, TensorProto.INT16: 16,
    TensorProto.UINT16: 16,
}  # fmt: skip


class UnknownSizesError(ValueError):
    """A tensor has sizes that are unknown before the model runs; the text is a message."""


@dataclass(frozen=True)
class _Graph:
    """A graph, with its values' names without quantizers, sizes, bits and readers."""

    nodes: list[NodeProto]
    shapes: dict[str, tuple[int, ...]]
    bits: dict[str, int]
    float_bits: int
    constants: set[str]
    same: dict[str, str]
    readers: dict[str, list[NodeProto]]

    def root(self, name: str) -> str:
        """Return the value behind quantizers and views of the same elements."""
        while name in self.same:
            name = self.same[name]
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a value's sizes.

        Raises:
            UnknownSizesError: one of them is unknown.
        """
        sizes = self.shapes.get(name)
        if sizes is None or 0 in sizes:
            raise UnknownSizesError(
                f"The sizes of {name} are unknown before the model runs. Give its inputs fixed sizes, for example "
                "with onnxruntime.tools.make_dynamic_shape_fixed."
            )
        return sizes


def layers_of_model(model: ModelProto, float_bits: int | None = None) -> list[Layer]:
    """Return the layers of a model; an open batch is 1.

    Args:
        model: The model.
        float_bits: Bits of real numbers without a quantizer or narrow type; None for 16 if any others have 16, else 8.

    Raises:
        UnknownSizesError: other sizes are open.
    """
    graph = _graph_of(model, float_bits)
    taken: set[str] = set()  # first outputs of fused nodes
    layers = []
    for node in graph.nodes:
        if node.op_type in FREE or node.output[0] in taken or set(node.output) <= graph.constants:
            continue
        fused = list(_fused(graph, node)) if node.op_type in _MULTIPLYING else []
        taken.update(one.output[0] for one in fused)
        features, weights = _bits_of_layer(graph, node)
        one = _layer(graph, node, _activation(fused))
        layers.append(one._replace(feature_bits=features, weight_bits=weights))
    return layers


def _graph_of(model: ModelProto, float_bits: int | None) -> _Graph:
    graph = onnx.shape_inference.infer_shapes(_with_one_batch(model), data_prop=True).graph
    shapes, bits = _shapes_of(graph), _bits_of(graph)
    constants = {one.name for one in graph.initializer}
    same: dict[str, str] = {}
    readers: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        if all(name in constants for name in node.input if name):
            constants.update(node.output)
        elif node.op_type in {"QuantizeLinear", "DequantizeLinear", "Identity", "Cast", "Dropout"}:
            same[node.output[0]] = node.input[0]
    if float_bits is None:
        float_bits = 16 if bits else 8
    found = _Graph(list(graph.node), shapes, bits, float_bits, constants, same, readers)
    for node in graph.node:
        if node.output[0] not in same:
            for name in node.input:
                readers.setdefault(found.root(name), []).append(node)
    return found


def _with_one_batch(model: ModelProto) -> ModelProto:
    """Copy a model without its weights' values; an open first size of an input becomes 1."""
    graph = model.graph
    fixed = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    fixed.graph.MergeFrom(GraphProto(name=graph.name, node=graph.node, input=graph.input, output=graph.output))
    for one in graph.initializer:
        is_small = one.ByteSize() <= _SMALL_BYTES  # may be a shape, which determines other sizes
        fixed.graph.initializer.append(
            one if is_small else TensorProto(name=one.name, data_type=one.data_type, dims=one.dims)
        )
    for value in fixed.graph.input:
        sizes = value.type.tensor_type.shape.dim
        if sizes and not sizes[0].dim_value:
            sizes[0].ClearField("dim_param")
            sizes[0].dim_value = 1
    return fixed


def _shapes_of(graph: GraphProto) -> dict[str, tuple[int, ...]]:
    """Return the sizes of values and constants, with 0 for open ones."""
    found = {one.name: tuple(one.dims) for one in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            sizes = value.type.tensor_type.shape.dim
            found.setdefault(value.name, tuple(size.dim_value for size in sizes))
    return found


def _bits_of(graph: GraphProto) -> dict[str, int]:
    """Return the bits of values narrowed by a quantizer or their type."""
    types = {one.name: one.data_type for one in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        types.setdefault(value.name, value.type.tensor_type.elem_type)
    found = {name: 16 for name, kind in types.items() if kind in {TensorProto.FLOAT16, TensorProto.BFLOAT16}}
    for node in graph.node:
        if node.op_type == "QuantizeLinear":
            kind = types.get("".join(node.input[2:3]), TensorProto.UINT8)
            found[node.output[0]] = found[node.input[0]] = _BITS.get(kind, 8)
        elif node.op_type == "DequantizeLinear":
            kind = types.get(node.input[0], TensorProto.UNDEFINED)
            found[node.output[0]] = _BITS.get(kind, found.get(node.input[0], 8))
    return found


def _bits_of_layer(graph: _Graph, node: NodeProto) -> tuple[int, int]:
    """Return the bits of the numbers that a layer reads or writes, and of its weights."""
    values = (one for one in (*node.input, node.output[0]) if one not in graph.constants)
    features = [graph.bits[one] for one in values if one in graph.bits]
    weights = (graph.bits.get(one, graph.float_bits) for one in node.input if one in graph.constants)
    return max(features, default=graph.float_bits), next(weights, graph.float_bits)


def _fused(graph: _Graph, node: NodeProto) -> Iterator[NodeProto]:
    """Return the nodes fused after a multiplying one: a normalization and an activation."""
    out = node.output[0]
    readers = graph.readers.get(out, [])
    if len(readers) == 1 and (readers[0].op_type == "BatchNormalization" or _adds_bias(graph, readers[0])):
        yield readers[0]
        out = readers[0].output[0]
        readers = graph.readers.get(out, [])
    if len(readers) == 1 and readers[0].op_type in _FUSED:
        yield readers[0]
    elif len(readers) == 2:
        gates = [one for one in readers if one.op_type in {"Sigmoid", "HardSigmoid"}]
        products = [one for one in readers if one.op_type == "Mul"]
        if len(gates) == len(products) == 1 and graph.readers.get(gates[0].output[0]) == products:
            yield from (*gates, *products)


def _adds_bias(graph: _Graph, node: NodeProto) -> bool:
    return node.op_type == "Add" and any(name in graph.constants for name in node.input)


def _activation(fused: list[NodeProto]) -> str:
    kinds = [_FUSED[one.op_type] for one in fused if one.op_type in _FUSED]
    return "silu" if len(kinds) == 1 and any(one.op_type == "Mul" for one in fused) else "".join(kinds)


def _layer(graph: _Graph, node: NodeProto, activation: str) -> Layer:
    name = node.name or node.output[0]
    read = [graph.shape(one) for one in node.input if one and one not in graph.constants]
    inputs = tuple(_tensor(sizes) for sizes in read)
    sizes = graph.shape(node.output[0])
    output = _tensor(sizes)
    if node.op_type not in _MULTIPLYING:
        is_function = node.op_type in FUNCTIONS and not (node.op_type == "Div" and len(read) == 1)
        return Layer(name, POINTWISE if is_function else MOVE, inputs, output)
    weights = [graph.shape(one) for one in node.input if one in graph.constants]
    if node.op_type in {"Conv", "ConvTranspose"} and weights:
        kernel = weights[0]
        group = int(next((helper.get_attribute_value(one) for one in node.attribute if one.name == "group"), 1))
        if node.op_type == "ConvTranspose":
            macs = prod(read[0]) * prod(kernel[1:])
            return Layer(name, CONV, inputs, output, macs, prod(kernel), kernel[0] // group, group, activation)
        kind = DEPTHWISE if group > 1 and kernel[1] == 1 else CONV
        macs = prod(sizes) * prod(kernel[1:])
        return Layer(name, kind, inputs, output, macs, prod(kernel), kernel[1], group, activation)
    if node.op_type == "Gemm" and weights:
        inner, columns = prod(weights[0]) // sizes[-1], sizes[-1]
    else:
        inner, columns = (read or weights)[0][-1], sizes[-1]
    macs = prod(sizes) * inner
    if not weights:
        return Layer(name, MATMUL, inputs, output, macs, 0, inner, 1, activation)
    by_columns = Tensor(columns, prod(sizes) // columns)
    return Layer(name, CONV, inputs, by_columns, macs, prod(weights[0]), inner, 1, activation)


def _tensor(sizes: tuple[int, ...]) -> Tensor:
    """Return sizes as channels, height and width; a batch multiplies the height."""
    if len(sizes) == 4:
        batch, channels, height, width = sizes
        return Tensor(channels, batch * height, width)
    return Tensor(prod(sizes))
