"""Values of every kind on their way past a layer, and layers that come and go while a model runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray as Array
from onnx import NodeProto, TensorProto, helper

import arm_client as hb
from arm_client.client import Board
from arm_client.dnn.layers.layer import Layer
from arm_client.dnn.layers.ndarray import NDArray
from arm_client.dnn.run.plan import Plan
from hbrt.models.run.stop import Stop
from tests.arm_client.dnn.nets import good, model_bytes

F32 = TensorProto.FLOAT
node = helper.make_node


class Softmax(Layer):
    """In numpy, along the last axis."""

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hb.hbDNNInferCtrlParam) -> int:
        top[0].numpy()[...] = softmax(bottom[0].numpy())
        return 0


def softmax(x: Array[Any]) -> Array[Any]:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    result: Array[Any] = exponentials / exponentials.sum(-1, keepdims=True)
    return result


@pytest.fixture(autouse=True)
def _softmax_has_a_layer() -> None:
    good(hb.hbDNNRegisterLayerCreator("Softmax", Softmax))


def plan_of(nodes: Sequence[NodeProto], inputs: Sequence[Any], outputs: Sequence[Any]) -> Plan:
    return Plan(onnx.load_from_string(model_bytes(nodes, inputs, outputs, opset=21)), "the model")


def test_sequences_go_from_segment_to_segment(dsp_board: Board) -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["q"]),
        node("Softmax", ["x"], ["s"]),
        node("SequenceInsert", ["q", "s"], ["q2"]),
        node("ConcatFromSequence", ["q2"], ["y"], axis=0),
    ]
    plan = plan_of(nodes, [("x", F32, ["N", 3])], [("y", F32, ["M", 3])])
    assert [step.processor for step in plan.steps] == ["BPU", "CPU", "BPU"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = plan.run({"x": x}, {"y": None}, Stop())["y"]
    np.testing.assert_allclose(got, np.concatenate([x, x, softmax(x)]), rtol=1e-6)
    plan.close()


def test_values_of_all_types_go_from_segment_to_segment(dsp_board: Board) -> None:
    types = (TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.DOUBLE)
    nodes = [node("ReduceSum", ["x"], ["scalar"], keepdims=0), node("Softmax", ["x"], ["s"])]
    for type_ in types:
        nodes += [node("Cast", ["x"], [f"t{type_}"], to=type_), node("Cast", [f"t{type_}"], [f"b{type_}"], to=F32)]
    # The ways back wait for the layer.
    nodes += [node("Mul", [f"b{type_}", "s"], [f"m{type_}"]) for type_ in types]
    nodes.append(node("Sum", ["scalar", "s", *(f"m{type_}" for type_ in types)], ["y"]))
    plan = plan_of(nodes, [("x", F32, [2, 3])], [("y", F32, [2, 3])])
    x = np.array([[1, 2, 3], [-1, 0, 5]], np.float32)
    with_layer = plan.run({"x": x}, {"y": None}, Stop())["y"]
    good(hb.hbDNNUnregisterLayerCreator("Softmax"))
    np.testing.assert_allclose(with_layer, plan.run({"x": x}, {"y": None}, Stop())["y"], rtol=1e-5)
    plan.close()


def test_four_bits_pass_a_layer(dsp_board: Board) -> None:
    """They are kept as onnxruntime packs them, between segments and as inputs."""
    nodes = [
        node("Cast", ["x"], ["four"], to=TensorProto.INT4),
        node("Softmax", ["x"], ["s"]),
        node("If", ["go"], ["y"], then_branch=branch("t", "four"), else_branch=branch("e", "given")),
    ]
    inputs = [("x", F32, [3]), ("go", TensorProto.BOOL, []), ("given", TensorProto.INT4, [3])]
    plan = plan_of(nodes, inputs, [("y", F32, [3])])
    assert [step.processor for step in plan.steps] == ["BPU", "CPU", "BPU"]
    from ml_dtypes import int4

    x, given = np.array([1, -8, 7], np.float32), np.array([2, 3, -4], int4)
    for go, expected in ((True, x), (False, given.astype(np.float32))):
        got = plan.run({"x": x, "go": np.array(go), "given": given}, {"y": None}, Stop())["y"]
        np.testing.assert_allclose(got, expected * softmax(x), rtol=1e-6)
    plan.close()


def branch(name: str, outside: str) -> onnx.GraphProto:
    output = helper.make_tensor_value_info(name, F32, [3])
    nodes = [node("Cast", [outside], [f"{name}_real"], to=F32), node("Mul", [f"{name}_real", "s"], [name])]
    return helper.make_graph(nodes, name, [], [output])


def test_a_rank_that_only_the_data_decides(dsp_board: Board) -> None:
    nodes = [node("Reshape", ["x", "shape"], ["r"]), node("Softmax", ["r"], ["s"]), node("Neg", ["s"], ["y"])]
    plan = plan_of(nodes, [("x", F32, ["N"]), ("shape", TensorProto.INT64, ["K"])], [("y", F32, None)])
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (6,), (1, 2, 3), (3, 2), (6, 1)):
        got = plan.run({"x": x, "shape": np.array(shape)}, {"y": None}, Stop())["y"]
        np.testing.assert_allclose(got, -softmax(x.reshape(shape)), rtol=1e-6)
    plan.close()


def test_layers_that_come_and_go_while_a_model_runs(dsp_board: Board) -> None:
    plan = plan_of(
        [node("Softmax", ["x"], ["s"]), node("Neg", ["s"], ["y"])], [("x", F32, [1, 9])], [("y", F32, [1, 9])]
    )
    is_over, wrong = threading.Event(), []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(1, 9)).astype(np.float32)
        y = np.empty_like(x)
        try:
            while not is_over.is_set():
                plan.run({"x": x}, {"y": y}, Stop())
                np.testing.assert_allclose(y, -softmax(x), rtol=1e-5)
        except BaseException as error:  # noqa: BLE001 - for the test's own thread to raise
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        good(hb.hbDNNUnregisterLayerCreator("Softmax"))
        plan.refresh()
        good(hb.hbDNNRegisterLayerCreator("Softmax", Softmax))
        plan.refresh()
    is_over.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    plan.close()
    assert dsp_board.live_bytes() == 0
