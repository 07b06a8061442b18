"""A run is in the cores' hands as soon as hbDNNInfer returns: no thread of the program carries it there."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import arm_client as hb
from arm_client import dnn
from arm_client.client import Board
from arm_client.dnn.cores.tasks import Task
from hbrt.control.ask import ask
from tests.arm_client.dnn.nets import Net, ctrl, double, f32, good
from tests.limits import PATIENCE_S
from tests.waiting import until

Load = Callable[[bytes], Net]
DOUBLED = [[2, -4, 6, 8]]


@pytest.fixture
def net(dsp_board: Board, load: Load, monkeypatch: pytest.MonkeyPatch) -> Iterator[Net]:
    monkeypatch.setenv("HBRT_BPU", "board")
    net = load(double())
    net.fill(f32([[1, -2, 3, 4]]))
    yield net
    assert net.read().tolist() == DOUBLED


def until_doubled(net: Net) -> None:
    until(lambda: net.read().tolist() == DOUBLED, "the run on a core")


def clear(net: Net) -> None:
    net.outputs[0].sysMem[0].array("f4")[:] = 0


def test_nobody_need_wait_for_it(net: Net) -> None:
    """It runs all the same; its model may be released then, and a callback that comes late is called."""
    clear(net)
    task = net.infer()
    until_doubled(net)
    called = threading.Event()
    good(hb.hbDNNSetTaskDoneCb(task, lambda *_: called.set()))
    assert called.wait(PATIENCE_S)
    good(hb.hbDNNWaitTaskDone(task, 1))
    good(hb.hbDNNReleaseTask(task))
    other = Net(double())
    other.fill(f32([[1, -2, 3, 4]]))
    task = other.infer()
    until_doubled(other)

    def released() -> list[int]:
        status = hb.hbDNNRelease(other.packed)
        return [] if status == hb.HB_DNN_MODEL_IS_RUNNING else [status]  # its core may not have said so

    assert until(released) == [0]
    good(hb.hbDNNReleaseTask(task))
    for tensor in (other.inputs[0], other.outputs[0]):
        good(hb.hbSysFreeMem(tensor.sysMem[0]))


def test_a_wait_ends_in_time_and_a_release_takes_it_back(net: Net, dsp_board: Board) -> None:
    """A core that stands still: threads wait for a time, memory is kept, and released tasks never run."""
    cores = ask(dsp_board.session.link.paths, "status")["cores"]
    pid = next(core["pid"] for core in cores if core["kind"] == "bpu")
    os.kill(pid, signal.SIGSTOP)
    try:
        clear(net)
        tasks = [net.infer(how=ctrl(core=hb.HB_BPU_CORE_0)) for _ in range(3)]
        assert hb.hbDNNWaitTaskDone(tasks[0], 10) == hb.HB_DNN_TIMEOUT
        heard: list[int] = []
        waiter = threading.Thread(target=lambda: heard.append(hb.hbDNNWaitTaskDone(tasks[1], int(PATIENCE_S * 1000))))
        waiter.start()
        good(hb.hbDNNReleaseTask(tasks[2]))
        assert net.read().tolist() == [[0] * 4]
    finally:
        os.kill(pid, signal.SIGCONT)
    good(hb.hbDNNWaitTaskDone(tasks[0], 0))
    waiter.join()
    assert heard == [0]
    for task in tasks[:2]:
        good(hb.hbDNNReleaseTask(task))


def test_a_layer_that_comes_between_takes_its_runs(net: Net) -> None:
    """The model is built anew, and the blocks of the build before are freed with it."""
    from tests.arm_client.dnn.layers.test_layer import Doubling

    good(hb.hbDNNRegisterLayerCreator("Add", Doubling))
    try:
        assert net.run() == 0
    finally:
        good(hb.hbDNNUnregisterLayerCreator("Add"))
    assert net.run() == 0


def test_callbacks_come_in_the_order_in_which_the_tasks_ended(net: Net, dsp_board: Board) -> None:
    """Each end is heard by its own thread, and the threads wake in any order."""
    assert net.run() == 0
    first = dsp_board.session.link.core_count
    (pid,) = until(
        lambda: [core["pid"] for core in dsp_board.status()["cores"] if core["core"] == first], "the first BPU core"
    )
    called: list[int] = []
    done = threading.Semaphore(0)

    def told(_: object, __: int, priority: int) -> None:
        called.append(priority)
        done.release()

    for _ in range(3):
        called.clear()
        os.kill(pid, signal.SIGSTOP)
        try:
            tasks = [net.infer(how=ctrl(core=1, priority=priority)) for priority in range(8)]
            for priority, task in enumerate(tasks):
                good(hb.hbDNNSetTaskDoneCb(task, told, priority))
        finally:
            os.kill(pid, signal.SIGCONT)
        for _task in tasks:
            assert done.acquire(timeout=PATIENCE_S)
        assert called == [*reversed(range(8))]
        for task in tasks:
            good(hb.hbDNNReleaseTask(task))


def test_idle_threads_keep_nothing_of_the_tasks_that_they_ran(net: Net) -> None:
    """Else a program's last model, its memory and its board would live as long as its process."""
    called = threading.Event()
    before = [one for one in gc.get_objects() if type(one) is Task]

    class Callback:
        def __call__(self, *_: object) -> None:
            called.set()

    task = net.infer()
    good(hb.hbDNNSetTaskDoneCb(task, Callback()))
    assert called.wait(PATIENCE_S)
    good(hb.hbDNNReleaseTask(task))

    def none_is_left() -> bool:
        gc.collect()
        kinds = [type(one) for one in gc.get_objects()]
        return kinds.count(Task) <= len(before) and Callback not in kinds

    until(none_is_left)


def test_a_models_file_may_have_any_bytes_as_its_name(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HBRT_BPU", "board")
    file = tmp_path / os.fsdecode(b"\xff.onnx")
    file.write_bytes(double())
    (model,) = dnn.load(file)
    (result,) = model.forward(f32([[1, -2, 3, 4]]))
    assert result.buffer.tolist() == DOUBLED
    assert ask(dsp_board.session.link.paths, "tasks", last=1)[0]["kind"] == "bpu"
