"""Sums of 8-bit products, as large as they can be, against the same sums in 64 bits."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from hbrt.models.run.exact_integers import exact_integers
from hbrt.models.run.ort_session import make_session
from tests.each import each

TYPES = {np.dtype(np.int8): TensorProto.INT8, np.dtype(np.uint8): TensorProto.UINT8}
SCALES = {"as": 0.01, "bs": 0.02, "ys": 4.0}
ROWS, DEPTH, COLUMNS = 6, 40, 5


def operand(dtype: Any, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    """Mostly numbers at one end of the type, so that sums of two products leave 16 bits."""
    limits = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape)
    return np.where(values % 3 == 0, values, limits.max).astype(dtype)


def graph_of(
    nodes: list[Any], first: NDArray[Any], second: NDArray[Any], result: int, *, is_constant: bool, opset: int
) -> ModelProto:
    """A model of operands ``a`` and ``b`` with their zero points, scales and a result ``y``."""
    zeros = {"az": np.array(3, first.dtype), "bz": np.array(1, second.dtype), "yz": np.array(7, first.dtype)}
    constants = [numpy_helper.from_array(value, name) for name, value in zeros.items()]
    constants += [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in SCALES.items()]
    inputs = [helper.make_tensor_value_info("a", TYPES[first.dtype], first.shape)]
    if is_constant:
        constants.append(numpy_helper.from_array(second, "b"))
    else:
        inputs.append(helper.make_tensor_value_info("b", TYPES[second.dtype], second.shape))
    outputs = [helper.make_tensor_value_info("y", result, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(model: ModelProto, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    session = make_session(model, "the model")
    names = [given.name for given in session.get_inputs()]
    result: NDArray[Any] = session.run(None, {name: {"a": first, "b": second}[name] for name in names})[0]
    return result


def requantized(sums: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """As QLinearConv and QLinearMatMul: one factor in single precision, rounded to even, then the zero point."""
    factor = np.float32(SCALES["as"]) * np.float32(SCALES["bs"]) / np.float32(SCALES["ys"])
    limits = np.iinfo(dtype)
    result: NDArray[Any] = np.clip(np.rint(sums.astype(np.float32) * factor) + 7, limits.min, limits.max).astype(dtype)
    return result


def products(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    result: NDArray[Any] = (first.astype(np.int64) - 3) @ (second.astype(np.int64) - 1)
    return result


KINDS = each("first, second", list(product((np.int8, np.uint8), repeat=2)))


@each("is_constant", [True, False])
@KINDS
def test_matmul_integer(first: Any, second: Any, *, is_constant: bool) -> None:
    a, b = operand(first, (ROWS, DEPTH), 1), operand(second, (DEPTH, COLUMNS), 2)
    node = helper.make_node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])
    model = graph_of([node], a, b, TensorProto.INT32, is_constant=is_constant, opset=13)
    np.testing.assert_array_equal(run(model, a, b), products(a, b))


def test_matmul_integer_without_zero_points() -> None:
    a, b = operand(np.uint8, (ROWS, DEPTH), 1), operand(np.int8, (DEPTH, COLUMNS), 2)
    model = graph_of(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])], a, b, TensorProto.INT32, is_constant=True, opset=13
    )
    np.testing.assert_array_equal(run(model, a, b), a.astype(np.int64) @ b.astype(np.int64))


@each("opset", [13, 21])
@each("is_constant", [True, False])
@each("first, second", [(np.int8, np.int8), (np.uint8, np.int8), (np.uint8, np.uint8)])
def test_qlinear_matmul(first: Any, second: Any, *, is_constant: bool, opset: int) -> None:
    a, b = operand(first, (ROWS, DEPTH), 1), operand(second, (DEPTH, COLUMNS), 2)
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    model = graph_of([node], a, b, TYPES[a.dtype], is_constant=is_constant, opset=opset)
    np.testing.assert_array_equal(run(model, a, b), requantized(products(a, b), a.dtype))


@each("is_constant", [True, False])
@each("first, second", [(np.int8, np.int8), (np.uint8, np.int8), (np.uint8, np.uint8)])
def test_qlinear_conv(first: Any, second: Any, *, is_constant: bool) -> None:
    a, b = operand(first, (1, 8, 5, 7), 1), operand(second, (4, 8, 3, 3), 2)
    node = helper.make_node("QLinearConv", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    model = graph_of([node], a, b, TYPES[a.dtype], is_constant=is_constant, opset=13)
    windows = np.lib.stride_tricks.sliding_window_view(a.astype(np.int64) - 3, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,mcij->nmhw", windows, b.astype(np.int64) - 1)
    np.testing.assert_array_equal(run(model, a, b), requantized(sums, a.dtype))


@each("opset", [13, 21])
@each("is_constant", [True, False])
@KINDS
def test_between_quantize_and_dequantize(first: Any, second: Any, *, is_constant: bool, opset: int) -> None:
    a, b = operand(first, (ROWS, DEPTH), 1), operand(second, (DEPTH, COLUMNS), 2)
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "as", "az"], ["ra"]),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["rb"]),
        helper.make_node("MatMul", ["ra", "rb"], ["ry"]),
        helper.make_node("QuantizeLinear", ["ry", "ys", "yz"], ["y"]),
    ]
    model = graph_of(nodes, a, b, TYPES[a.dtype], is_constant=is_constant, opset=opset)
    np.testing.assert_array_equal(run(model, a, b), requantized(products(a, b), a.dtype))


def test_int8_of_a_file_never_meets_uint8_in_the_session() -> None:
    """Says on CPUs that do not saturate what the others here say by their sums."""
    a, b = operand(np.uint8, (ROWS, DEPTH), 1), operand(np.int8, (DEPTH, COLUMNS), 2)
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    model = graph_of([node], a, b, TensorProto.UINT8, is_constant=True, opset=21)
    before = model.SerializeToString()
    edited, config = exact_integers(model)
    assert model.SerializeToString() == before
    casts = {made.output[0]: made.attribute[0].i for made in edited.graph.node if made.op_type == "Cast"}
    (after,) = (made for made in edited.graph.node if made.op_type == "QLinearMatMul")
    assert [casts[after.input[at]] for at in (3, 5)] == [TensorProto.UINT8] * 2
    assert config["session.x64quantprecision"] == "1"


def test_operators_of_int8_by_int8_stay_as_they_are() -> None:
    a, b = operand(np.int8, (ROWS, DEPTH), 1), operand(np.int8, (DEPTH, COLUMNS), 2)
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    model = graph_of([node], a, b, TensorProto.INT8, is_constant=True, opset=13)
    edited, config = exact_integers(model)
    assert edited is model
    assert config == {"session.disable_quant_qdq": "1"}


@pytest.mark.parametrize("is_one_pair", [True, False])
def test_a_constant_that_two_nodes_read_is_exact_for_both(*, is_one_pair: bool) -> None:
    a, b = operand(np.int8, (DEPTH, DEPTH), 1), operand(np.int8, (DEPTH, DEPTH), 2)
    names = ["bd", "bd" if is_one_pair else "cd"]
    nodes = [helper.make_node("DequantizeLinear", ["b", "bs", "bz"], [name]) for name in dict.fromkeys(names)]
    nodes += [
        helper.make_node("DequantizeLinear", ["a", "as", "az"], ["ad"]),
        helper.make_node("MatMul", ["ad", names[0]], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "ys", "yz"], ["mq"]),
        helper.make_node("DequantizeLinear", ["mq", "ys", "yz"], ["md"]),
        helper.make_node("MatMul", ["md", names[1]], ["n"]),
        helper.make_node("QuantizeLinear", ["n", "ys", "yz"], ["y"]),
    ]
    model = graph_of(nodes, a, b, TensorProto.INT8, is_constant=True, opset=13)
    first = requantized(products(a, b), np.int8).astype(np.int64) - 7
    sums = (first @ (b.astype(np.int64) - 1)).astype(np.float32)
    factor = np.float32(SCALES["ys"]) * np.float32(SCALES["bs"]) / np.float32(SCALES["ys"])
    np.testing.assert_array_equal(run(model, a, b), np.clip(np.rint(sums * factor) + 7, -128, 127).astype(np.int8))
    shared, config = exact_integers(model, saturates=True)
    assert config["session.x64quantprecision"] == "1"
    read = [node.input[0] for node in shared.graph.node if node.op_type == "DequantizeLinear"]
    assert len(read) == len(set(read))


@each("is_input", [True, False])
def test_scales_for_each_channel_are_not_given_to_operators_on_integers(*, is_input: bool) -> None:
    """With one scale for all channels, the Softmax of onnxruntime's integers differs by up to 0.5."""
    rng = np.random.default_rng(0)
    steps, zero = np.linspace(0.01, 0.05, DEPTH, dtype=np.float32), np.zeros(DEPTH, np.int8)
    given = rng.integers(-128, 128, (ROWS, DEPTH)).astype(np.int8)
    nodes = [
        helper.make_node(
            "DequantizeLinear", ["a", "steps" if is_input else "as", "zeros" if is_input else "az"], ["r"]
        ),
        helper.make_node("Softmax", ["r"], ["s"]),
        helper.make_node("QuantizeLinear", ["s", "as", "az"] if is_input else ["s", "steps", "zeros"], ["y"]),
    ]
    model = graph_of(nodes, given, given, TensorProto.INT8, is_constant=True, opset=13)
    model.graph.initializer.append(numpy_helper.from_array(steps, "steps"))
    model.graph.initializer.append(numpy_helper.from_array(zero, "zeros"))
    real = given * steps if is_input else (given.astype(np.float32) - 3) * np.float32(SCALES["as"])
    weights = np.exp(real - real.max(axis=1, keepdims=True))
    shares = weights / weights.sum(axis=1, keepdims=True)
    stored = shares / np.float32(SCALES["as"]) + 3 if is_input else shares / steps
    assert abs(run(model, given, given) - stored).max() < 0.501
