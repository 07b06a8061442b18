"""The layers of ONNX models: what is fused, what is left out, and what multiplies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from hbrt.accelerators.layer import CONV, DEPTHWISE, MATMUL, MOVE, POINTWISE, Layer
from hbrt.accelerators.onnx_layers import UnknownSizesError, layers_of_model


def layers_of(
    nodes: list[NodeProto], sizes: list[Any], *weights: tuple[str, tuple[int, ...]], zero: Any = None
) -> list[Layer]:
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes),
        helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None),
    ]
    held = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in weights]
    if zero is not None:
        held += [numpy_helper.from_array(np.array(0.1, np.float32), "scale")]
        held += [numpy_helper.from_array(np.array(zero), "zero")]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:], held)
    return layers_of_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


def conv(source: str, weight: str, target: str, **attributes: Any) -> NodeProto:
    return helper.make_node("Conv", [source, weight], [target], pads=[1] * 4, **attributes)


def test_activations_are_fused_and_normalization_too() -> None:
    nodes = [
        conv("x", "w", "a", name="first"),
        helper.make_node("Sigmoid", ["a"], ["gate"]),
        helper.make_node("Mul", ["a", "gate"], ["b"]),
        conv("b", "d", "c", group=16),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    first, second = layers_of(nodes, ["N", 3, 10, 10], ("w", (16, 3, 3, 3)), ("d", (16, 1, 3, 3)))
    assert (first.name, first.kind, first.activation, first.channels) == ("first", CONV, "silu", 3)
    assert (first.macs, first.weights) == (16 * 100 * 27, 432)
    assert (second.kind, second.activation, second.groups, second.macs) == (DEPTHWISE, "relu", 16, 16 * 100 * 9)


def test_an_activation_that_another_node_reads_too_stands_alone() -> None:
    nodes = [
        conv("x", "w", "a"),
        helper.make_node("Sigmoid", ["a"], ["s"]),
        helper.make_node("Add", ["a", "s"], ["y"]),
    ]
    assert [one.kind for one in layers_of(nodes, [1, 3, 4, 4], ("w", (8, 3, 3, 3)))] == [CONV, POINTWISE, MOVE]


@pytest.mark.parametrize(("zero", "precision"), [(np.int8(0), "int8"), (np.int16(0), "w16a16")])
def test_quantizers_are_no_layers_and_say_how_wide_numbers_are(zero: Any, precision: str) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["x_"]),
        helper.make_node("QuantizeLinear", ["w", "scale", "zero"], ["wq"]),
        helper.make_node("DequantizeLinear", ["wq", "scale", "zero"], ["w_"]),
        conv("x_", "w_", "a"),
        helper.make_node("QuantizeLinear", ["a", "scale", "zero"], ["aq"]),
        helper.make_node("DequantizeLinear", ["aq", "scale", "zero"], ["a_"]),
        helper.make_node("Relu", ["a_"], ["y"]),
    ]
    (only,) = layers_of(nodes, [1, 3, 4, 4], ("w", (8, 3, 3, 3)), zero=zero)
    assert (only.activation, only.weights, only.precision) == ("relu", 216, precision)
    assert only.feature_bytes == (3 + 8) * 16 * only.feature_bits / 8


def test_products_with_and_without_weights() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "m"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "t"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    linear, turned, scores, softmax = layers_of(nodes, [1, 5, 8], ("m", (8, 12)))
    assert (linear.kind, linear.macs, linear.weights, linear.output.channels) == (CONV, 5 * 12 * 8, 96, 12)
    assert (turned.kind, softmax.kind) == (MOVE, POINTWISE)
    assert (scores.kind, scores.macs, scores.weights) == (MATMUL, 25 * 12, 0)


def test_a_transposed_convolution_counts_its_inputs() -> None:
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], kernel_shape=[2, 2])]
    (only,) = layers_of(nodes, [1, 4, 3, 3], ("w", (4, 6, 2, 2)))
    assert (only.macs, only.output.elements) == (4 * 9 * 6 * 4, 6 * 36)


def test_sizes_that_are_open_are_said() -> None:
    with pytest.raises(UnknownSizesError, match=r"The sizes of x are unknown .*make_dynamic_shape_fixed"):
        layers_of([helper.make_node("Relu", ["x"], ["y"])], [1, 3, "H", "W"])
