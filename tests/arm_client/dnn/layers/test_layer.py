"""Layers through the C names: who runs which nodes, what they are given, and what a failure says."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray as Array
from onnx import TensorProto, helper, numpy_helper

import arm_client as hb
from arm_client.client import Board
from arm_client.dnn.layers.layer import Layer
from arm_client.dnn.layers.ndarray import NDArray
from arm_client.dnn.run.plan import Plan
from hbrt.models.run.layer import TensorType
from hbrt.models.run.steps import StepTime
from hbrt.models.run.stop import Stop
from hbrt.models.spec.graph import NodeInfo
from hbrt.status import Status
from tests.arm_client.dnn.nets import Net, ctrl, f32, good, model_bytes
from tests.each import each
from tests.limits import PATIENCE_S
from tests.threads import in_threads

F32 = TensorProto.FLOAT
Load = Callable[[bytes], Net]


def softmax(x: Array[Any], axis: int = -1) -> Array[Any]:
    exponentials = np.exp(x - x.max(axis, keepdims=True))
    result: Array[Any] = exponentials / exponentials.sum(axis, keepdims=True)
    return result


class Doubling(Layer):
    """Softmax that is told apart: twice as much."""

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
        top[0].numpy()[...] = 2 * softmax(bottom[0].numpy())
        return 0


def softmax_net(shape: Sequence[int | str | None] = (2, 3), **attributes: Any) -> bytes:
    """-softmax(x * 2)."""
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"], name="the_softmax", **attributes),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    two = numpy_helper.from_array(np.array(2, np.float32), "two")
    return model_bytes(nodes, [("x", F32, shape)], [("y", F32, shape)], [two])


def test_a_layer_replaces_a_type_in_a_model_that_was_loaded_before_and_gives_it_back(load: Load) -> None:
    net = load(softmax_net())
    x = f32([[1, 2, 3], [0, 0, 1]])
    net.fill(x)
    assert net.run() == 0
    np.testing.assert_allclose(net.read(), -softmax(2 * x), rtol=1e-6)
    assert hb.hbDNNRegisterLayerCreator("Softmax", Doubling) == 0
    assert net.run() == 0
    np.testing.assert_allclose(net.read(), -2 * softmax(2 * x), rtol=1e-6)
    assert hb.hbDNNUnregisterLayerCreator("Softmax") == 0
    assert net.run() == 0
    np.testing.assert_allclose(net.read(), -softmax(2 * x), rtol=1e-6)


def test_a_type_of_one_domain_alone(load: Load) -> None:
    good(hb.hbDNNRegisterLayerCreator("elsewhere::Softmax", Doubling))
    net = load(softmax_net())
    net.fill(f32([[0, 0, 0]] * 2))
    assert net.run() == 0
    np.testing.assert_allclose(net.read(), np.full((2, 3), -1 / 3), rtol=1e-6)


def test_a_layer_is_told_its_attributes_its_inputs_and_the_tasks_schedule(load: Load) -> None:
    seen: list[Any] = []

    class Watching(Doubling):
        def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
            seen.append((dict(attributes), node.name, node.op_type, node.opset, node.inputs[0]))
            assert node.producer(0) is not None
            assert [one.op_type for one in node.consumers(0)] == ["Neg"]

        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            seen.append((ctrl.dspCoreId, ctrl.priority, ctrl.customId, bottom[0].mem.memSize, top[0].mem.memSize))
            return super().Forward(bottom, top, ctrl)

    good(hb.hbDNNRegisterLayerCreator("Softmax", Watching))
    net = load(softmax_net(axis=1))
    how = ctrl(priority=7, custom_id=9)
    how.dspCoreId = 2
    task = net.infer(how=how)
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    attributes, name, op_type, opset, value = seen[0]
    assert (attributes, name, op_type, opset) == ({"axis": 1}, "the_softmax", "Softmax", 18)
    assert (value.dtype, value.shape) == (np.float32, (2, 3))
    assert seen[1] == (2, 7, 9, 24, 24)


class MaxIndex(Layer):
    """A type that ONNX lacks: for each row the largest value and where it is."""

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        (rows,) = bottom
        assert rows is not None
        assert rows.shape is not None
        return [TensorType(rows.shape[:-1], rows.dtype), TensorType(rows.shape[:-1], np.dtype(np.int64))]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
        x = bottom[0].numpy()
        top[0].numpy()[...], top[1].numpy()[...] = x.max(-1), x.argmax(-1)
        return 0


def max_index_net(rows: int | str = 2, domain: str = "") -> bytes:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("MaxIndex", ["a"], ["values", "at"], domain=domain),
        helper.make_node("Neg", ["values"], ["y"]),
    ]
    return model_bytes(
        nodes, [("x", F32, [rows, 3])], [("y", F32, [rows]), ("at", TensorProto.INT64, [rows])], name="max_index"
    )


def test_a_type_that_onnx_lacks_needs_a_layer(load: Load) -> None:
    data = max_index_net()
    packed = hb.hbPackedDNNHandle_t()
    assert hb.hbDNNInitializeFromDDR(packed, [data], [len(data)], 1) == Status.HB_DNN_INCOMPATIBLE_MODEL
    assert "MaxIndex" in hb.last_error()
    assert "hbDNNRegisterLayerCreator" in hb.last_error()
    good(hb.hbDNNRegisterLayerCreator("MaxIndex", MaxIndex))
    net = load(data)
    net.fill(f32([[1, 5, 2], [-1, -2, -3]]))
    assert net.run() == 0
    assert net.read().tolist() == [-5, 0]
    assert net.read(np.int64, 1).tolist() == [1, 0]
    good(hb.hbDNNUnregisterLayerCreator("MaxIndex"))
    assert net.run() == Status.HB_DNN_INCOMPATIBLE_MODEL
    assert "MaxIndex" in hb.last_error()


def plan_of(data: bytes) -> Plan:
    import onnx

    return Plan(onnx.load_from_string(data), "the model")


def test_open_sizes_are_told_at_each_run(dsp_board: Board) -> None:
    good(hb.hbDNNRegisterLayerCreator("MaxIndex", MaxIndex))
    plan = plan_of(max_index_net("N"))
    for rows in (3, 5, 1, 0):
        x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
        got = plan.run({"x": x}, {"y": None, "at": None}, Stop())
        np.testing.assert_array_equal(got["y"], -np.maximum(x, 0).max(-1))
        np.testing.assert_array_equal(got["at"], np.maximum(x, 0).argmax(-1))
    plan.close()


def test_the_models_own_tensors_are_used_where_they_lie(dsp_board: Board, load: Load) -> None:
    places: list[tuple[int, int]] = []

    class Watching(Layer):
        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            places.append((bottom[0].phy_addr, top[0].phy_addr))
            return Doubling().Forward(bottom, top, ctrl)

    good(hb.hbDNNRegisterLayerCreator("Softmax", Watching))
    node = helper.make_node("Softmax", ["x"], ["y"])
    net = load(model_bytes([node], [("x", F32, [1, 4])], [("y", F32, [1, 4])]))
    assert net.run() == 0
    assert places == [(net.inputs[0].sysMem[0].phyAddr, net.outputs[0].sysMem[0].phyAddr)]


@pytest.mark.parametrize("cache", ["coherent", "strict"])
def test_cached_tensors_and_a_layer_that_flushes(
    monkeypatch: pytest.MonkeyPatch, dsp_board_factory: Callable[..., Any], cache: str
) -> None:
    """In strict mode the caller's stale image must not come over what a layer wrote and cleaned."""

    class Flushing(Layer):
        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            good(hb.hbSysFlushMem(bottom[0].mem, hb.HB_SYS_MEM_CACHE_INVALIDATE))
            top[0].numpy()[...] = 2 * bottom[0].numpy()
            return hb.hbSysFlushMem(top[0].mem, hb.HB_SYS_MEM_CACHE_CLEAN)

    good(hb.hbDNNRegisterLayerCreator("Softmax", Flushing))
    monkeypatch.setenv("HBRT_CACHE", cache)
    node = helper.make_node("Softmax", ["x"], ["y"])
    data = model_bytes([node], [("x", F32, [1, 4])], [("y", F32, [1, 4])])
    with dsp_board_factory():
        net = Net(data)
        for tensor in (net.inputs[0], net.outputs[0]):
            good(hb.hbSysFreeMem(tensor.sysMem[0]))
            good(hb.hbSysAllocCachedMem(tensor.sysMem[0], 64))
        net.fill(f32([[1, 2, 3, 4]]))
        good(hb.hbSysFlushMem(net.inputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_CLEAN))
        assert net.run() == 0
        good(hb.hbSysFlushMem(net.outputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_INVALIDATE))
        assert net.read().tolist() == [[2, 4, 6, 8]]
        net.close()


def failing(what: Any) -> type[Layer]:
    class Failing(Layer):
        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            result: int = what() if callable(what) else what
            return result

    return Failing


def bad_rpc() -> int:
    task, how = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
    how.rpcCmd, how.dspCoreId = 0x400, 64
    return hb.hbDSPRpc(task, None, None, how)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (-1, "Softmax (node 'the_softmax', Failing) returned -1."),
        (None, "returned None (return 0 for success)."),
        (lambda: 1 // 0, "raised ZeroDivisionError: integer division or modulo by zero\nTraceback"),
        (bad_rpc, "dspCoreId is 64; this board has 2 cores"),
    ],
)
def test_a_layer_that_fails_fails_its_task(load: Load, what: Any, said: str) -> None:
    good(hb.hbDNNRegisterLayerCreator("Softmax", failing(what)))
    net = load(softmax_net())
    assert net.run() == Status.HB_DNN_RUN_TASK_FAILED
    assert said in hb.last_error()
    good(hb.hbDNNRegisterLayerCreator("Softmax", Doubling))
    assert net.run() == 0


class Refusing(Layer):
    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        raise ValueError("axis 7 is beyond me")


class Leaving(Layer):
    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        sys.exit("no license")


class Shapeless(MaxIndex):
    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        return super().InferShape(bottom)[:1]


def telling(told: Any) -> type[Layer]:
    """A layer whose InferShape says something else than it should."""

    class Telling(MaxIndex):
        def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
            return told  # type: ignore[no-any-return]

    return Telling


class Integral(Layer):
    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        return [TensorType((2,), np.dtype(np.float32)), TensorType((2,), np.dtype(np.int32))]


@pytest.mark.parametrize(
    ("creator", "said"),
    [
        (Refusing, "The SetUp of the layer MaxIndex (node 'values') raised ValueError: axis 7 is beyond me"),
        (Leaving, "The SetUp of the layer MaxIndex (node 'values') raised SystemExit: no license"),
        (sys.exit, "The creator of the layer MaxIndex (node 'values') raised SystemExit"),
        (
            hb.hbDNNLayerCreator(lambda: 1 // 0),
            "The creator of the layer MaxIndex (node 'values') raised ZeroDivisionError",
        ),
        (Shapeless, "MaxIndex (node 'values') has 2 outputs, but it returned 1 shapes."),
        (Integral, "made 'at' with type int32 and shape (2,), but the model declares int64 and (2,)"),
        (
            telling(TensorType((2,), np.dtype(np.float32))),
            "MaxIndex (node 'values') raised TypeError: it returned TensorType(",
        ),
        (telling(None), "MaxIndex (node 'values') raised TypeError: it returned None; return a list with a TensorType"),
        (telling([(2,), (2,)]), "its list contains (2,), which is not a TensorType"),
        (
            telling([TensorType(cast("Any", ("n",)), np.dtype(np.float32))] * 2),
            "The InferShape of the layer MaxIndex (node 'values')",
        ),
        (lambda: 5, "returned 5, which is not an arm_client.dnn.Layer"),
        (lambda: 1 // 0, "The creator of the layer MaxIndex (node 'values') raised ZeroDivisionError"),
    ],
)
def test_a_layer_that_does_not_fit_its_model(dsp_board: Board, creator: Any, said: str) -> None:
    good(hb.hbDNNRegisterLayerCreator("MaxIndex", creator))
    data = max_index_net()
    assert (
        hb.hbDNNInitializeFromDDR(hb.hbPackedDNNHandle_t(), [data], [len(data)], 1) == Status.HB_DNN_INCOMPATIBLE_MODEL
    )
    assert said in hb.last_error()


class Stumbling(Doubling):
    def TearDown(self) -> None:
        sys.exit("at the end")


@pytest.mark.parametrize("runs", [0, 1])
def test_a_layer_that_fails_at_its_end_keeps_no_model(
    dsp_board: Board, runs: int, capfd: pytest.CaptureFixture[str]
) -> None:
    good(hb.hbDNNRegisterLayerCreator("Softmax", Stumbling))
    net = Net(softmax_net())
    for _ in range(runs):
        assert net.run() == 0
    net.close()
    assert capfd.readouterr().err == "[DNN] WARNING: The TearDown of Stumbling raised SystemExit: at the end.\n"
    assert hb.hbDNNRelease(net.packed) == Status.HB_DNN_INVALID_PACKED_DNN_HANDLE


def test_a_layer_may_edit_the_lists_that_it_is_given(load: Load) -> None:
    class Greedy(Doubling):
        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            status = super().Forward(bottom, top, ctrl)
            bottom.clear()
            top.clear()
            return status

    good(hb.hbDNNRegisterLayerCreator("Softmax", Greedy))
    net = load(softmax_net())
    assert [net.run() for _ in range(3)] == [0, 0, 0]


def test_a_creator_as_a_function_pointer(load: Load) -> None:
    made: list[Layer] = []

    def create() -> Layer:
        made.append(Doubling())
        return made[-1]

    creator = hb.hbDNNLayerCreator(create)
    good(hb.hbDNNRegisterLayerCreator("Softmax", creator))
    assert load(softmax_net()).run() == 0
    first = len(made)
    address = ctypes.cast(creator, ctypes.c_void_p).value
    good(hb.hbDNNRegisterLayerCreator("Softmax", hb.hbDNNLayerCreator(address)))  # as of a library in C
    assert load(softmax_net()).run() == 0
    assert 0 < first < len(made)
    assert hb.hbDNNRegisterLayerCreator("Softmax", hb.hbDNNLayerCreator()) == Status.HB_DNN_INVALID_ARGUMENT


@each("layer_type", ["", None, 5])
def test_a_type_must_be_a_name(layer_type: Any) -> None:
    assert hb.hbDNNRegisterLayerCreator(layer_type, Doubling) == Status.HB_DNN_INVALID_ARGUMENT
    assert hb.hbDNNUnregisterLayerCreator(layer_type) == Status.HB_DNN_INVALID_ARGUMENT


def test_what_cannot_be_called_or_was_never_registered() -> None:
    creator: Any = None
    assert hb.hbDNNRegisterLayerCreator("Softmax", creator) == Status.HB_DNN_INVALID_ARGUMENT
    assert "The creator of 'Softmax' is None" in hb.last_error()
    name: Any = b"Relu"
    good(hb.hbDNNRegisterLayerCreator(name, Doubling))
    assert hb.hbDNNUnregisterLayerCreator("Softmax") == Status.HB_DNN_API_USE_ERROR
    assert hb.last_error().endswith("registered: Relu.")


class Declining(Doubling):
    def Decline(self, node: NodeInfo) -> str:
        return "they are mine no more" if node.is_nested or node.attributes.get("axis") == 0 else ""


def nested_net() -> bytes:
    def branch(op_type: str, name: str) -> Any:
        return helper.make_graph(
            [helper.make_node(op_type, ["x"], [name])], name, [], [helper.make_tensor_value_info(name, F32, [2])]
        )

    node = helper.make_node("If", ["go"], ["y"], then_branch=branch("Softmax", "t"), else_branch=branch("Neg", "e"))
    return model_bytes([node], [("go", TensorProto.BOOL, []), ("x", F32, [2])], [("y", F32, [2])])


def test_a_node_in_a_body_is_declined_or_the_model_is_incompatible(
    load: Load, capfd: pytest.CaptureFixture[str]
) -> None:
    good(hb.hbDNNRegisterLayerCreator("Softmax", Doubling))
    data = nested_net()
    status = hb.hbDNNInitializeFromDDR(hb.hbPackedDNNHandle_t(), [data], [len(data)], 1)
    assert status == Status.HB_DNN_INCOMPATIBLE_MODEL
    assert "'t' of type Softmax is in the body of an If, Loop or Scan" in hb.last_error()
    good(hb.hbDNNRegisterLayerCreator("Softmax", Declining))
    net = load(data)
    assert "1 of 1 Softmax nodes stay in onnxruntime: they are mine no more." in capfd.readouterr().err
    net.fill(np.array(True), 0)
    net.fill(f32([0, 0]), 1)
    assert net.run() == 0
    assert net.read().tolist() == [0.5, 0.5]


def test_a_type_that_onnx_lacks_and_its_layer_declines(dsp_board: Board) -> None:
    class Unwilling(MaxIndex):
        def Decline(self, node: NodeInfo) -> str:
            return "rows of 3 are too short"

    good(hb.hbDNNRegisterLayerCreator("MaxIndex", Unwilling))
    data = max_index_net()
    status = hb.hbDNNInitializeFromDDR(hb.hbPackedDNNHandle_t(), [data], [len(data)], 1)
    assert status == Status.HB_DNN_INCOMPATIBLE_MODEL
    assert "1 of 1 MaxIndex nodes stay in onnxruntime: rows of 3 are too short" in hb.last_error()


def test_declined_nodes_are_counted_and_listed() -> None:
    good(hb.hbDNNRegisterLayerCreator("Softmax", Declining))
    names = ["x", "a", "b", "y"]
    nodes = [
        helper.make_node("Softmax", [one], [other], axis=axis)
        for one, other, axis in zip(names[:3], names[1:], (0, 0, 1), strict=True)
    ]
    plan = plan_of(model_bytes(nodes, [("x", F32, [2, 2])], [("y", F32, [2, 2])]))
    assert plan.notes == ["2 of 3 Softmax nodes stay in onnxruntime: they are mine no more"]
    assert [(step.name, step.processor, step.ops) for step in plan.steps] == [
        ("segment_0", "BPU", {"Softmax": 2}),
        ("y", "CPU", {"Softmax": 1}),
    ]
    plan.close()


def test_runs_at_the_same_time_have_layers_of_their_own(dsp_board: Board) -> None:
    both, made = threading.Barrier(2, timeout=PATIENCE_S), []

    class Meeting(Doubling):
        def __init__(self) -> None:
            made.append(self)
            self.busy = threading.Lock()

        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            assert self.busy.acquire(blocking=False)
            both.wait()  # both are inside now
            status = super().Forward(bottom, top, ctrl)
            both.wait()
            self.busy.release()
            return status

    good(hb.hbDNNRegisterLayerCreator("Softmax", Meeting))
    plan = plan_of(softmax_net())
    results: dict[int, Any] = {}

    def run(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
        got = [plan.run({"x": x}, {"y": None}, Stop())["y"] for _ in range(5)]
        results[seed] = np.abs(np.array(got) + 2 * softmax(2 * x)).max()

    in_threads(run, range(2))
    assert max(results.values()) < 1e-6
    assert len(made) == 2
    plan.close()


def test_layers_are_torn_down_and_their_memory_goes_with_the_model(dsp_board: Board, load: Load) -> None:
    alive: set[int] = set()

    class Counted(Doubling):
        def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
            alive.add(id(self))

        def TearDown(self) -> None:
            alive.remove(id(self))

    good(hb.hbDNNRegisterLayerCreator("Softmax", Counted))
    net = load(softmax_net())
    before = dsp_board.live_bytes()
    assert net.run() == 0
    assert len(alive) == 1
    assert dsp_board.live_bytes() > before
    good(hb.hbDNNRegisterLayerCreator("Softmax", Doubling))
    assert net.run() == 0
    assert alive == set()
    good(hb.hbDNNUnregisterLayerCreator("Softmax"))
    assert net.run() == 0
    assert dsp_board.live_bytes() == before


def test_a_released_task_stops_before_the_next_step(dsp_board: Board) -> None:
    stop = Stop()

    class Stopping(Doubling):
        def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
            stop.set()
            return super().Forward(bottom, top, ctrl)

    good(hb.hbDNNRegisterLayerCreator("Softmax", Stopping))
    plan = plan_of(softmax_net())
    seen: list[StepTime] = []
    plan.observer = seen.append
    with pytest.raises(Exception, match=r"canceled before segment_1 \(BPU\)"):
        plan.run({"x": f32([[1, 2, 3]] * 2)}, {"y": None}, stop)
    assert [step.name for step in seen] == ["segment_0", "the_softmax"]
    plan.run({"x": f32([[1, 2, 3]] * 2)}, {"y": None}, Stop())
    assert [step.processor for step in seen[2:]] == ["BPU", "CPU", "BPU"]
    assert all(one.start_ns <= one.end_ns <= other.start_ns for one, other in pairwise(seen[2:]))
    plan.close()


def test_outputs_that_are_inputs_or_constants(dsp_board: Board) -> None:
    good(hb.hbDNNRegisterLayerCreator("Softmax", Doubling))
    node = helper.make_node("Softmax", ["x"], ["y"])
    constant = numpy_helper.from_array(np.arange(3, dtype=np.float32), "k")
    values = [(name, F32, [3]) for name in "xyk"]
    for data in (
        model_bytes([node], values[:1], values, [constant]),
        model_bytes([helper.make_node("Neg", ["x"], ["y"])], values[:1], values, [constant]),
    ):
        plan = plan_of(data)
        given = {name: np.zeros(3, np.float32) for name in "xyk"}
        x = f32([1, 2, 3])
        plan.run({"x": x}, dict(given), Stop())
        made = plan.run({"x": x}, dict.fromkeys(given), Stop())
        for name, expected in (("x", x), ("k", np.arange(3))):
            np.testing.assert_array_equal(given[name], expected)
            np.testing.assert_array_equal(made[name], expected)
        np.testing.assert_array_equal(given["y"], made["y"])
        assert made["x"] is not x
        plan.close()
