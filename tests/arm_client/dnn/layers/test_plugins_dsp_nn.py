"""The shipped plugin: its results against onnxruntime's, and what it leaves to onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray as Array
from onnx import NodeProto, TensorProto, helper, numpy_helper

import arm_client as hb
from arm_client.client import Board
from arm_client.dnn.layers import dsp_layer, plugins_dsp_nn
from arm_client.dnn.run.plan import Plan
from hbrt.models.run.stop import Stop
from tests.arm_client.dnn.nets import model_bytes
from tests.each import each

F32, F64 = TensorProto.FLOAT, TensorProto.DOUBLE
INT8, UINT8, INT16, UINT16, INT32 = (
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT16,
    TensorProto.UINT16,
    TensorProto.INT32,
)


def plan_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Sequence[TensorProto] = (),
    opset: int = 21,
) -> Plan:
    return Plan(onnx.load_from_string(model_bytes(nodes, inputs, outputs, constants, opset=opset)), "the model")


def both(plan: Plan, feeds: dict[str, Array[Any]], dsp: Sequence[str]) -> tuple[Array[Any], Array[Any]]:
    """Results of output y: of onnxruntime, and of the plugin, which must run exactly the op types of ``dsp``."""
    alone = plan.run(feeds, {"y": None}, Stop())["y"]
    plugins_dsp_nn.register()
    plan.run(feeds, {"y": None}, Stop())
    ours = plan.run(feeds, {"y": None}, Stop())["y"]  # the second run uses what the first one kept
    ran = [op for step in plan.steps if step.processor == "DSP" for op in step.ops]
    assert ran == list(dsp), plan.notes
    plan.close()
    return alone, ours


def real(shape: Sequence[int], seed: int = 0) -> Array[np.float32]:
    values: Array[np.float32] = np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)
    return values


@each(
    "shape, axis, opset",
    [
        ((1, 1000), None, 13),
        ((1, 7), -1, 13),
        ((5, 7), 1, 21),  # rows of an odd length start where no block of a call may
        ((40, 6), -1, 13),  # more rows than are in flight
        ((2, 3, 4, 5), 1, 13),
        ((2, 3, 5), 0, 13),
        ((6,), 0, 13),
        ((2, 3, 4, 5), None, 11),  # flat: rows of 60
        ((2, 3, 4, 5), 2, 1),
        ((2, 3, 4), 0, 12),
        ((0, 4), -1, 13),
        ((2, 3, 1), 1, 13),
    ],
)
def test_softmax(dsp_board: Board, shape: tuple[int, ...], axis: int | None, opset: int) -> None:
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    nodes = [helper.make_node("Softmax", ["x"], ["s"], **attributes), helper.make_node("Identity", ["s"], ["y"])]
    plan = plan_of(nodes, [("x", F32, shape)], [("y", F32, shape)], opset=opset)
    alone, ours = both(plan, {"x": real(shape)}, ["Softmax"])
    np.testing.assert_allclose(ours, alone, rtol=2e-6, atol=1e-9)


def test_softmax_of_open_sizes_and_of_several_runs(dsp_board: Board) -> None:
    plugins_dsp_nn.register()
    plan = plan_of([helper.make_node("Softmax", ["x"], ["y"])], [("x", F32, ["N", "C"])], [("y", F32, ["N", "C"])])
    for shape in ((1, 5), (4, 5), (2, 9), (1, 5), (3, 2)):
        x = real(shape, seed=shape[0])
        y = plan.run({"x": x}, {"y": None}, Stop())["y"]
        exponentials = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        np.testing.assert_allclose(y, exponentials / exponentials.sum(-1, keepdims=True), rtol=1e-6)
    plan.close()


class Commands:
    """The commands that layers call, each as often as it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.called: list[int] = []
        monkeypatch.setattr(dsp_layer, "hbDSPRpc", self._rpc)

    def _rpc(self, task: Any, params: Any, output: Any, ctrl: hb.hbDSPRpcCtrlParam) -> int:
        self.called.append(ctrl.rpcCmd)
        return hb.hbDSPRpc(task, params, output, ctrl)


def softmax_plan(shape: Sequence[int]) -> Plan:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Softmax", ["r"], ["s"])]
    nodes.append(helper.make_node("Identity", ["s"], ["y"]))
    return plan_of(nodes, [("x", F32, shape)], [("y", F32, shape)])


@pytest.mark.parametrize("length", [10, 7])
def test_a_tensor_of_many_rows_is_one_call(dsp_board: Board, monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    commands = Commands(monkeypatch)
    plugins_dsp_nn.register()
    plan = softmax_plan((2, 768, length))
    for run in range(3):
        x = real((2, 768, length), seed=run)
        y = plan.run({"x": x}, {"y": None}, Stop())["y"]
        rectified = np.maximum(x, 0)
        exponentials = np.exp(rectified.astype(np.float64) - rectified.max(-1, keepdims=True))
        np.testing.assert_allclose(y, exponentials / exponentials.sum(-1, keepdims=True), rtol=2e-7)
    assert commands.called == [hb.HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS] * 3
    plan.close()


@pytest.mark.dsp_board(image="../images/own_softmax.py")
@pytest.mark.parametrize("length", [4, 5])
def test_an_image_with_a_softmax_of_its_own_alone_is_called_for_each_row(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    commands = Commands(monkeypatch)
    plugins_dsp_nn.register()
    plan = softmax_plan((3, length))
    for _ in range(2):
        y = plan.run({"x": real((3, length))}, {"y": None}, Stop())["y"]
        np.testing.assert_array_equal(y, np.full((3, length), length, np.float32))
    assert commands.called == [hb.HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS] + [hb.HB_DSP_RPC_CMD_NN_SOFTMAX] * 6
    plan.close()


@pytest.mark.dsp_board(image="../images/replaced_softmax.py")
def test_a_softmax_that_replaces_the_packaged_one_runs_each_row(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch)
    plugins_dsp_nn.register()
    plan = softmax_plan((3, 5))
    y = plan.run({"x": real((3, 5))}, {"y": None}, Stop())["y"]
    np.testing.assert_array_equal(y, np.full((3, 5), 5, np.float32))
    assert commands.called == [hb.HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS]
    plan.close()


def ties(shape: Sequence[int]) -> Array[np.float32]:
    """Values whose quotient by 0.5 is often a tie, and some beyond every range."""
    values: Array[np.float32] = (np.random.default_rng(1).integers(-1200, 1200, shape) / 4).astype(np.float32)
    values.reshape(-1)[:6] = [1e9, -1e9, np.inf, -np.inf, 0.25, -0.25]
    return values


@each(
    "zero_points, dtype, axis",
    [
        (None, np.uint8, None),
        (3, np.uint8, None),
        (-5, np.int8, None),
        (7, np.int16, None),
        (40001, np.uint16, None),
        ([1, 2, 3], np.uint8, 1),
        ([0, -1, 5], np.int8, -3),
    ],
)
def test_quantize_linear(dsp_board: Board, zero_points: Any, dtype: Any, axis: int | None) -> None:
    """Bit for bit: the zero point is added after rounding."""
    shape = (2, 3, 5, 4)
    scales = [0.5, 0.25, 0.1] if axis is not None else 0.5
    constants = [numpy_helper.from_array(np.array(scales, np.float32), "scale")]
    names = ["x", "scale"]
    if zero_points is not None:
        constants.append(numpy_helper.from_array(np.array(zero_points, dtype), "zero"))
        names.append("zero")
    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    nodes = [helper.make_node("QuantizeLinear", names, ["q"], **attributes), helper.make_node("Identity", ["q"], ["y"])]
    plan = plan_of(nodes, [("x", F32, shape)], [("y", onnx_type, shape)], constants)
    alone, ours = both(plan, {"x": ties(shape)}, ["QuantizeLinear"])
    np.testing.assert_array_equal(ours, alone, strict=True)


@each("axis", [None, 0, -1])
@each("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32])
def test_dequantize_linear(dsp_board: Board, dtype: Any, axis: int | None) -> None:
    shape, limits = (3, 5, 3), np.iinfo(dtype)
    scales, zero_points = ([0.5, 0.3, 0.1], [1, 2, 3]) if axis is not None else (0.3, 3)
    if dtype is np.int32:
        zero_points = np.zeros_like(zero_points).tolist()  # ONNX has no other for int32
    constants = [
        numpy_helper.from_array(np.array(scales, np.float32), "scale"),
        numpy_helper.from_array(np.array(zero_points, dtype), "zero"),
    ]
    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("DequantizeLinear", ["a", "scale", "zero"], ["y"], **attributes),
    ]
    plan = plan_of(nodes, [("x", onnx_type, shape)], [("y", F32, shape)], constants)
    x = np.random.default_rng(2).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    alone, ours = both(plan, {"x": x}, ["DequantizeLinear"])
    np.testing.assert_array_equal(ours, alone, strict=True)


def test_scales_that_the_graph_computes(dsp_board: Board) -> None:
    """DynamicQuantizeLinear's way: they differ at each run."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["largest"], keepdims=0),
        helper.make_node("Div", ["largest", "steps"], ["scale"]),
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.array(100, np.float32), "steps"),
        numpy_helper.from_array(np.array(-3, np.int8), "zero"),
    ]
    plan = plan_of(nodes, [("x", F32, [7])], [("y", F32, [7])], constants)
    plugins_dsp_nn.register()
    for seed in range(3):
        x = np.abs(real((7,), seed))
        got = plan.run({"x": x}, {"y": None}, Stop())["y"]
        np.testing.assert_allclose(got, x, atol=x.max() / 199)
    assert [step.processor for step in plan.steps] == ["BPU", "DSP", "DSP"]
    plan.close()


def qdq(name: str, value: str) -> list[NodeProto]:
    return [
        helper.make_node("QuantizeLinear", [value, "scale", "zero"], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [name]),
    ]


def test_int8_operators_stay_whole(dsp_board: Board) -> None:
    """On a board the BPU runs them; only where real numbers are wanted does the DSP convert."""
    nodes = [
        *qdq("a", "x"),
        helper.make_node("DequantizeLinear", ["weights", "scale", "zero"], ["w"]),
        helper.make_node("MatMul", ["a", "w"], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
        *qdq("b", "r"),
        helper.make_node("Softmax", ["b"], ["s"]),
        *qdq("c", "s"),
        helper.make_node("Exp", ["c"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.array(0.05, np.float32), "scale"),
        numpy_helper.from_array(np.array(0, np.int8), "zero"),
        numpy_helper.from_array(np.random.default_rng(3).integers(-9, 9, (4, 4)).astype(np.int8), "weights"),
    ]
    plan = plan_of(nodes, [("x", F32, [2, 4])], [("y", F32, [2, 4])], constants)
    expected = ["QuantizeLinear", "DequantizeLinear", "Softmax", "QuantizeLinear", "DequantizeLinear"]
    alone, ours = both(plan, {"x": real((2, 4))}, expected)
    np.testing.assert_allclose(ours, alone, atol=0.06)
    part = "they are part of int8 operators, which the BPU runs as one"
    assert sorted(plan.notes) == [
        "1 of 3 QuantizeLinear nodes stay in onnxruntime: " + part,
        "1 of 4 DequantizeLinear nodes stay in onnxruntime: they are constants, which onnxruntime converts once",
        "1 of 4 DequantizeLinear nodes stay in onnxruntime: " + part,
    ]


def constant(name: str, value: Any, dtype: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


@each(
    "node, in_type, out_type, constants, why",
    [
        (helper.make_node("Softmax", ["x"], ["y"]), F64, F64, [], "the DSP op computes float32, not float64"),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]),
            TensorProto.FLOAT16,
            UINT8,
            [constant("s", 1, np.float16), constant("z", 0, np.uint8)],
            "the DSP op computes float32, not float16",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], block_size=2, axis=1),
            F32,
            UINT8,
            [constant("s", [[1, 1]], np.float32), constant("z", [[0, 0]], np.uint8)],
            "they are quantized in blocks, which the DSP op does not support",
        ),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]),
            F32,
            UINT8,
            [constant("s", 0, np.float32), constant("z", 0, np.uint8)],
            "a scale is not a finite number above 0",
        ),
        (
            helper.make_node("DequantizeLinear", ["x", "s"], ["y"]),
            UINT8,
            TensorProto.FLOAT16,
            [constant("s", 1, np.float16)],
            "the DSP op computes float32, not float16",
        ),
    ],
)
def test_what_the_ops_cannot_do_stays_in_onnxruntime_with_its_reason(
    node: NodeProto, in_type: int, out_type: int, constants: list[TensorProto], why: str
) -> None:
    plugins_dsp_nn.register()
    plan = plan_of([node], [("x", in_type, [1, 4])], [("y", out_type, [1, 4])], constants)
    assert plan.notes == [f"1 of 1 {node.op_type} nodes stay in onnxruntime: {why}"]
    assert [step.processor for step in plan.steps] == ["BPU"]


def test_a_failing_op_says_why(dsp_board: Board) -> None:
    plugins_dsp_nn.register()
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale"], ["y"])]
    plan = plan_of(nodes, [("x", F32, [4]), ("scale", F32, [])], [("y", UINT8, [4])])
    with pytest.raises(
        Exception, match=r"QuantizeLinear \(node 'y', DspQuantizeLinear\) returned -\d+\. [\s\S]*The scale of"
    ):
        plan.run({"x": real((4,)), "scale": np.array(0, np.float32)}, {"y": None}, Stop())
    plan.close()


def test_its_memory_goes_with_the_plan(dsp_board: Board) -> None:
    plugins_dsp_nn.register()
    before = dsp_board.live_bytes()
    plan = plan_of([helper.make_node("Softmax", ["x"], ["y"], axis=0)], [("x", F32, [3, 5])], [("y", F32, [3, 5])])
    plan.run({"x": real((3, 5))}, {"y": None}, Stop())
    assert dsp_board.live_bytes() > before
    plan.close()
    assert dsp_board.live_bytes() == before
