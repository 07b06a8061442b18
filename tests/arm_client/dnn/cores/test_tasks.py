"""Tasks: their order, their limits, waiting, releasing, callbacks; each misuse with its own status."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from tests.arm_client.dnn.nets import Gate, Net, ctrl, double, endless, f32, good
from tests.limits import PATIENCE_S
from tests.threads import in_threads

Load = Callable[[bytes], Net]
FOREVER = np.array(1 << 62)


def test_one_inference(load: Load) -> None:
    net = load(double())
    net.fill(f32([[1, -2, 3, 4]]))
    task = net.infer()
    assert task.value
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNWaitTaskDone(task, 1))  # a task that has ended may be waited for again
    good(hb.hbDNNReleaseTask(task))
    assert net.read().tolist() == [[2, -4, 6, 8]]


def test_a_task_that_is_not_null_and_awaits_nothing_is_refused(load: Load) -> None:
    net = load(double())
    task = net.infer()
    before = task.value
    assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()) == hb.HB_DNN_API_USE_ERROR
    assert "must be null" in hb.last_error()
    assert task.value == before
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()) == hb.HB_DNN_API_USE_ERROR
    assert "Set it to null" in hb.last_error()


def test_the_33rd_task_is_refused_and_the_holders_are_named(load: Load) -> None:
    net = load(double())
    tasks = [net.infer() for _ in range(32)]
    task = hb.hbDNNTaskHandle_t()
    assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()) == hb.HB_DNN_TASK_NUM_EXCEED_LIMIT
    assert "32 by " in hb.last_error()
    assert "nets.py:" in hb.last_error()
    assert not task.value
    good(hb.hbDNNWaitTaskDone(tasks[0], 0))
    good(hb.hbDNNReleaseTask(tasks[0]))  # ended is not enough: released
    good(hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()))
    for one in (*tasks[1:], task):
        good(hb.hbDNNReleaseTask(one))


def test_a_chain_runs_when_its_last_inference_is_added(load: Load) -> None:
    first, second = load(double()), load(double((1, 2), name="other"))
    first.fill(f32([[1, 2, 3, 4]]))
    second.fill(f32([[5, 6]]))
    task = first.infer(how=ctrl(more=1))
    assert hb.hbDNNWaitTaskDone(task, 1) == hb.HB_DNN_API_USE_ERROR
    assert "more = 0" in hb.last_error()
    assert not first.read().any()
    before = task.value
    second.infer(task)
    assert task.value == before
    good(hb.hbDNNWaitTaskDone(task, 0))
    assert first.read().tolist() == [[2, 4, 6, 8]]
    assert second.read().tolist() == [[10, 12]]
    good(hb.hbDNNReleaseTask(task))


def test_a_chain_has_at_most_255_inferences(load: Load) -> None:
    net = load(double())
    task = net.infer(how=ctrl(more=1))
    for _ in range(254):
        net.infer(task, ctrl(more=1))
    status = hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl())
    assert status == hb.HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT
    assert "256 inferences" in hb.last_error()
    good(hb.hbDNNReleaseTask(task))


def test_a_chain_that_is_released_before_its_end_gives_its_models_back(load: Load) -> None:
    net = load(double())
    task = net.infer(how=ctrl(more=1))
    assert hb.hbDNNRelease(net.packed) == hb.HB_DNN_MODEL_IS_RUNNING
    good(hb.hbDNNReleaseTask(task))


def test_order_is_priority_then_custom_id_then_submission(load: Load) -> None:
    net = load(double())
    gate = Gate(net)
    tasks = [net.infer(how=ctrl(core=1, custom_id=1))]
    gate.await_begun()
    for priority, custom_id in ((0, 7), (255, 6), (254, 5), (255, 4), (0, 2), (0, 7)):
        tasks.append(net.infer(how=ctrl(1, priority, custom_id)))
    gate.open(len(tasks))
    for task in tasks:
        good(hb.hbDNNWaitTaskDone(task, 0))
        good(hb.hbDNNReleaseTask(task))
    assert gate.order == [1, 4, 6, 5, 2, 7, 7]


def test_a_core_mask_is_kept_and_any_core_takes_the_rest(load: Load) -> None:
    net = load(double())
    gate = Gate(net)
    held = net.infer(how=ctrl(core=1, custom_id=1))
    gate.await_begun()
    pinned = net.infer(how=ctrl(core=1, priority=9, custom_id=2))
    free = net.infer(how=ctrl(core=0, custom_id=3))
    gate.await_begun()
    assert gate.order == [1, 3]  # the second core passed over what is pinned to the first
    gate.open(3)
    for task in (held, pinned, free):
        good(hb.hbDNNWaitTaskDone(task, 0))
        good(hb.hbDNNReleaseTask(task))
    assert gate.order == [1, 3, 2]


def test_a_wait_times_out_and_the_task_goes_on(load: Load, capfd: pytest.CaptureFixture[str]) -> None:
    net = load(double())
    net.fill(f32([[1, 1, 1, 1]]))
    gate = Gate(net)
    task = net.infer()
    assert hb.hbDNNWaitTaskDone(task, 5) == hb.HB_DNN_TIMEOUT
    assert "5 ms" in hb.last_error()
    assert capfd.readouterr().err == ""  # an answer, and no error
    gate.open()
    good(hb.hbDNNWaitTaskDone(task, -1))
    assert net.read().tolist() == [[2, 2, 2, 2]]
    good(hb.hbDNNReleaseTask(task))


def test_a_model_in_use_is_not_released(load: Load) -> None:
    net = load(double())
    gate = Gate(net)
    task = net.infer()
    gate.await_begun()
    assert hb.hbDNNRelease(net.packed) == hb.HB_DNN_MODEL_IS_RUNNING
    assert "'double'" in hb.last_error()
    gate.open()
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))


def test_release_cancels_what_waits_and_it_never_runs(load: Load) -> None:
    net = load(double())
    gate = Gate(net)
    held = net.infer(how=ctrl(core=1, custom_id=1))
    gate.await_begun()
    waiting = net.infer(how=ctrl(core=1, custom_id=2))
    good(hb.hbDNNReleaseTask(waiting))
    gate.open(2)
    good(hb.hbDNNWaitTaskDone(held, 0))
    good(hb.hbDNNReleaseTask(held))
    assert gate.order == [1]


def test_release_ends_what_runs_at_a_node(load: Load) -> None:
    net = load(endless())
    net.fill(FOREVER)
    task = net.infer()
    ended: list[int] = []
    waiting = threading.Thread(target=lambda: ended.append(hb.hbDNNWaitTaskDone(task, 0)))
    waiting.start()
    assert hb.hbDNNWaitTaskDone(task, 50) == hb.HB_DNN_TIMEOUT
    good(hb.hbDNNReleaseTask(task))
    waiting.join()
    assert ended == [hb.HB_DNN_RUN_TASK_FAILED]
    net.fill(np.array(3))
    assert net.run() == 0
    assert net.read(np.int64) == 3


def test_handles_that_stand_for_no_task(load: Load) -> None:
    net = load(double())
    task = net.infer()
    good(hb.hbDNNReleaseTask(task))
    call: Any
    for call in (hb.hbDNNReleaseTask, lambda one: hb.hbDNNWaitTaskDone(one, 0)):
        assert call(task) == hb.HB_DNN_INVALID_TASK_HANDLE
        assert "already released" in hb.last_error()
        for none in (None, 0, hb.hbDNNTaskHandle_t()):
            assert call(none) == hb.HB_DNN_INVALID_TASK_HANDLE
            assert "is null" in hb.last_error()
        assert call(hb.hbDNNTaskHandle_t(net.handle.value)) == hb.HB_DNN_INVALID_TASK_HANDLE
        assert "a model handle" in hb.last_error()
        assert call(hb.hbDNNTaskHandle_t(12345)) == hb.HB_DNN_INVALID_TASK_HANDLE
    assert hb.hbDNNSetTaskDoneCb(task, print, None) == hb.HB_DNN_INVALID_TASK_HANDLE


class Calls:
    """A callback that notes its calls."""

    def __init__(self) -> None:
        self.made: list[tuple[int | None, int, object]] = []
        self._one_more = threading.Semaphore(0)

    def __call__(self, task: hb.hbDNNTaskHandle_t, status: int, userdata: object) -> None:
        self.made.append((task.value, status, userdata))
        self._one_more.release()

    def await_one(self) -> None:
        assert self._one_more.acquire(timeout=PATIENCE_S)


def test_a_callback_is_called_once_before_or_after_the_end(load: Load) -> None:
    net = load(double())
    gate = Gate(net)
    task, calls = net.infer(), Calls()
    good(hb.hbDNNSetTaskDoneCb(task, lambda *_: calls.made.append((0, 0, "replaced")), None))
    good(hb.hbDNNSetTaskDoneCb(task, calls, "before"))
    gate.open()
    calls.await_one()
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNSetTaskDoneCb(task, calls, "after"))
    calls.await_one()
    good(hb.hbDNNReleaseTask(task))
    assert calls.made == [(task.value, 0, "before"), (task.value, 0, "after")]


def test_a_callback_hears_of_a_release_and_may_call_anything(load: Load) -> None:
    net = load(double())
    gate = Gate(net)
    held = net.infer(how=ctrl(core=1))
    gate.await_begun()
    waiting, calls = net.infer(how=ctrl(core=1)), Calls()
    good(hb.hbDNNSetTaskDoneCb(waiting, calls, None))
    good(hb.hbDNNReleaseTask(waiting))
    calls.await_one()
    assert calls.made == [(waiting.value, hb.HB_DNN_RUN_TASK_FAILED, None)]

    done = threading.Event()

    def again(task: hb.hbDNNTaskHandle_t, status: int, userdata: object) -> None:
        good(hb.hbDNNReleaseTask(task))
        assert net.run() == 0
        done.set()

    good(hb.hbDNNSetTaskDoneCb(held, again, None))
    gate.open(2)
    assert done.wait(20)


def test_a_callback_that_raises_silences_no_other(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    net, calls = load(double()), Calls()

    def bad(*_: object) -> None:
        raise ArithmeticError("of the callback")

    task = net.infer()
    good(hb.hbDNNSetTaskDoneCb(task, bad, None))
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNSetTaskDoneCb(task, calls, None))
    calls.await_one()
    assert "of the callback" in capsys.readouterr().err
    no_function: Any = "no function"
    assert hb.hbDNNSetTaskDoneCb(task, no_function, None) == hb.HB_DNN_INVALID_ARGUMENT
    good(hb.hbDNNReleaseTask(task))


def test_a_callback_as_a_function_pointer_of_c(load: Load) -> None:
    net = load(double())
    task, calls = net.infer(), Calls()
    kept = ctypes.c_int64(7)
    pointer = hb.hbDNNTaskDoneCb(calls)
    good(hb.hbDNNSetTaskDoneCb(task, pointer, ctypes.byref(kept)))
    calls.await_one()
    good(hb.hbDNNSetTaskDoneCb(task, pointer, None))
    calls.await_one()
    assert calls.made == [(task.value, 0, ctypes.addressof(kept)), (task.value, 0, None)]
    assert hb.hbDNNSetTaskDoneCb(task, pointer, object()) == hb.HB_DNN_INVALID_ARGUMENT
    assert "takes a void *" in hb.last_error()
    assert hb.hbDNNSetTaskDoneCb(task, hb.hbDNNTaskDoneCb(), None) == hb.HB_DNN_INVALID_ARGUMENT
    good(hb.hbDNNReleaseTask(task))


def test_a_wait_that_would_never_end_is_refused(load: Load) -> None:
    """Of a layer, for its own task or for one that its own core is to run; for one of the other core it may wait."""
    net, other = load(double()), load(double(name="other"))
    gate = Gate(net)
    plan_run, task, is_known = gate.run, hb.hbDNNTaskHandle_t(), threading.Event()
    found: list[int] = []

    def run(*arguments: Any) -> Any:
        assert is_known.wait(20)
        found.append(hb.hbDNNWaitTaskDone(task, 0))
        for core in (1, 2):
            mine = other.infer(how=ctrl(core=core))
            found.append(hb.hbDNNWaitTaskDone(mine, 0))
            good(hb.hbDNNReleaseTask(mine))
        return plan_run(*arguments)

    gate.run = run  # type: ignore[assignment]
    gate.open()
    net.infer(task, ctrl(core=1))
    is_known.set()
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    assert found == [hb.HB_DNN_API_USE_ERROR, hb.HB_DNN_API_USE_ERROR, 0]


def test_control_parameters_out_of_range(load: Load) -> None:
    net = load(double())
    how: Any
    for how in (ctrl(core=4), ctrl(core=-1), ctrl(priority=256), ctrl(priority=-1), None, 3):
        task = hb.hbDNNTaskHandle_t()
        assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, how) == hb.HB_DNN_INVALID_ARGUMENT
        assert not task.value


def test_eight_threads_infer_wait_and_release(load: Load) -> None:
    nets = [load(double((1, 16))) for _ in range(8)]
    wrong: list[object] = []
    until = time.monotonic() + 1.0

    def work(net: Net, seed: int) -> None:
        rng = np.random.default_rng(seed)
        while time.monotonic() < until:
            values = rng.random((1, 16), np.float32)
            net.fill(values)
            task = hb.hbDNNTaskHandle_t()
            how = ctrl(int(rng.integers(4)), int(rng.integers(256)))
            status = hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, how)
            if rng.random() < 0.2:
                wrong.extend(() if not hb.hbDNNReleaseTask(task) else [hb.last_error()])
                continue
            status = status or hb.hbDNNWaitTaskDone(task, 0) or hb.hbDNNReleaseTask(task)
            if status or not np.array_equal(net.read(), values * 2):
                wrong.append((status, hb.last_error()))

    in_threads(lambda seed: work(nets[seed], seed), range(len(nets)))
    assert wrong == []


def test_two_threads_release_one_task_and_one_of_them_succeeds(load: Load) -> None:
    net = load(double())
    for _ in range(50):
        task = net.infer()
        assert sorted(in_threads(hb.hbDNNReleaseTask, [task, task])) == [hb.HB_DNN_INVALID_TASK_HANDLE, 0]


def test_a_model_is_released_while_threads_infer_with_it(dsp_board: Board) -> None:
    """The release succeeds between inferences; those after it are refused, those before it end well."""
    for _ in range(3):
        net = Net(double((1, 16)))
        own = [(net.tensors("Input"), net.tensors("Output")) for _ in range(3)]
        seen: set[int] = set()

        def work(inputs: Any, outputs: Any, net: Net = net, seen: set[int] = seen) -> None:
            status = 0
            while not status:
                task = hb.hbDNNTaskHandle_t()
                status = hb.hbDNNInfer(task, outputs, inputs, net.handle, ctrl())
                if not status:
                    seen.add(hb.hbDNNWaitTaskDone(task, 0))
                    good(hb.hbDNNReleaseTask(task))
            seen.add(status)

        threads = [threading.Thread(target=work, args=tensors) for tensors in own]
        for thread in threads:
            thread.start()
        while (status := hb.hbDNNRelease(net.packed)) == hb.HB_DNN_MODEL_IS_RUNNING:
            time.sleep(0.0001)
        assert status == 0
        for thread in threads:
            thread.join()
        assert seen <= {0, hb.HB_DNN_INVALID_DNN_HANDLE}
        assert hb.HB_DNN_INVALID_DNN_HANDLE in seen
        for inputs, outputs in (*own, (net.inputs, net.outputs)):
            good(hb.hbSysFreeMem(inputs[0].sysMem[0]))
            good(hb.hbSysFreeMem(outputs[0].sysMem[0]))


@pytest.mark.parametrize("mode", ["direct", "relay"])
def test_a_layer_runs_on_the_dsp_in_each_mode(
    dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    from arm_client.dnn.layers.plugins_dsp_nn import DspSoftmax
    from benchmarks.dnn import softmaxes

    monkeypatch.setenv("HB_DSP_RPC_MODE", mode)
    with dsp_board_factory():
        net = Net(softmaxes())
        net.fill(np.random.default_rng(1).random((1, 1000), np.float32))
        good(net.run())
        inside = net.read()
        good(hb.hbDNNRegisterLayerCreator("Softmax", DspSoftmax))
        try:
            good(net.run())
        finally:
            good(hb.hbDNNUnregisterLayerCreator("Softmax"))
        assert np.allclose(net.read(), inside, atol=1e-6)
        net.close()
