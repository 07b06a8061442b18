"""hbDSPSetTaskDoneCb: exactly once, whatever becomes of the task."""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import arm_client as hb
from arm_client.client import private_board
from tests.each import each
from tests.limits import PATIENCE_S
from tests.threads import in_threads

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip

IMAGE = Path(__file__).parents[1] / "arm_client" / "images" / "ops.py"
pytestmark = [
    pytest.mark.dsp_board(image="../arm_client/images/ops.py"),
    pytest.mark.differs("remote", "an op sees what the program writes after CLEAN only"),
]


class Calls:
    """A callback, and what it was called with."""

    def __init__(self) -> None:
        self.queue: queue.Queue[tuple[int | None, int, Any]] = queue.Queue()

    def __call__(self, task: hb.hbDSPTask_t, status: int, userdata: Any) -> None:
        self.queue.put((task.value, status, userdata))

    def next(self) -> tuple[int | None, int, Any]:
        return self.queue.get(timeout=PATIENCE_S)

    def rest(self, chip: Chip) -> list[tuple[int | None, int, Any]]:
        """What has come in besides; after a later task's callback, all that would come has come."""
        marker = Calls()
        task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
        assert hb.hbDSPSetTaskDoneCb(task, marker) == 0
        marker.next()
        assert hb.hbDSPReleaseTask(task) == 0
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_when_the_task_ends(chip: Chip, calls: Calls) -> None:
    held, marker = chip.hold(), object()
    assert hb.hbDSPSetTaskDoneCb(held.task, calls, marker) == 0
    assert calls.rest(chip) == []
    held.let_go()
    assert calls.next() == (held.task.value, 0, marker)
    assert hb.hbDSPWaitTaskDone(held.task, 0) == 0
    assert hb.hbDSPReleaseTask(held.task) == 0
    assert calls.rest(chip) == []


def test_as_a_function_pointer_of_c(chip: Chip, calls: Calls) -> None:
    task, kept = chip.rpc(hb.HB_DSP_RPC_CMD_PING), ctypes.c_int64(7)
    pointer = hb.hbDSPTaskDoneCb(calls)
    assert hb.hbDSPSetTaskDoneCb(task, pointer, ctypes.byref(kept)) == 0
    assert calls.next() == (task.value, 0, ctypes.addressof(kept))
    assert hb.hbDSPSetTaskDoneCb(task, pointer, {"a": "void pointer"}) == hb.HB_DSP_INVALID_ARGUMENT
    assert "which the function pointer does not take" in hb.last_error()
    takes_objects = ctypes.CFUNCTYPE(None, hb.hbDSPTask_t, ctypes.c_int32, ctypes.py_object)(calls)
    assert hb.hbDSPSetTaskDoneCb(task, takes_objects, "anything") == 0
    assert calls.next() == (task.value, 0, "anything")
    assert hb.hbDSPReleaseTask(task) == 0


def test_at_once_when_it_has_ended(chip: Chip, calls: Calls) -> None:
    task = chip.rpc(chip.FAIL, chip.mem(), chip.mem())
    assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_RUN_TASK_FAILED
    assert hb.hbDSPSetTaskDoneCb(task, calls) == 0
    assert calls.next() == (task.value, hb.HB_DSP_RUN_TASK_FAILED, None)
    assert hb.hbDSPReleaseTask(task) == 0
    assert calls.rest(chip) == []


def test_when_a_queued_task_is_released(chip: Chip, calls: Calls) -> None:
    holds = chip.hold_all()
    queued = chip.rpc(chip.ECHO, chip.mem(), chip.mem())
    assert hb.hbDSPSetTaskDoneCb(queued, calls) == 0
    assert hb.hbDSPReleaseTask(queued) == 0
    assert calls.next() == (queued.value, hb.HB_DSP_TASK_RELEASED, None)
    assert [held.finish() for held in holds] == [0, 0]
    assert calls.rest(chip) == []


def test_when_a_running_task_is_released(chip: Chip, calls: Calls) -> None:
    held = chip.hold()
    assert hb.hbDSPSetTaskDoneCb(held.task, calls) == 0
    assert hb.hbDSPReleaseTask(held.task) == 0
    assert calls.next() == (held.task.value, hb.HB_DSP_TASK_RELEASED, None)
    held.let_go()
    chip.until(lambda: held.output.view()[0] == 0xA5, "the end of the op")
    assert calls.rest(chip) == []


def test_released_at_once_after_its_end(chip: Chip) -> None:
    everything, tasks = Calls(), []
    for _ in range(200):
        task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
        assert hb.hbDSPSetTaskDoneCb(task, everything) == 0
        tasks.append(task.value)
        assert hb.hbDSPWaitTaskDone(task, 0) == 0
        assert hb.hbDSPReleaseTask(task) == 0
    got = [everything.next() for _ in tasks]
    assert sorted(task or 0 for task, _, _ in got) == sorted(task or 0 for task in tasks)
    assert {status for _, status, _ in got} == {0}
    assert everything.rest(chip) == []


def test_when_the_board_is_closed(calls: Calls, request: pytest.FixtureRequest) -> None:
    with private_board(IMAGE):
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 64) == 0
        ctrl, flags = hb.hbDSPRpcCtrlParam(rpcCmd=0x1001), mem.view()

        def let_go(*_: object) -> None:
            flags[1] = 1  # a core that stops lets its op end

        tasks = [hb.hbDSPTask_t() for _ in range(4)]
        for task in tasks:
            assert hb.hbDSPRpc(task, mem, mem, ctrl) == 0
            assert hb.hbDSPSetTaskDoneCb(task, calls) == 0
        assert hb.hbDSPSetTaskDoneCb(tasks[-1], let_go) == 0
    got = [calls.next() for _ in tasks]
    assert sorted(task or 0 for task, _, _ in got) == sorted(task.value or 0 for task in tasks)
    assert {status for _, status, _ in got} == {hb.HB_DSP_NOT_RUNNING}
    assert calls.queue.empty()


def test_several_callbacks_of_one_task_in_order(chip: Chip) -> None:
    held, seen, done = chip.hold(), [], threading.Event()
    for number in range(5):
        assert hb.hbDSPSetTaskDoneCb(held.task, lambda *_, number=number: seen.append(number)) == 0
    assert hb.hbDSPSetTaskDoneCb(held.task, lambda *_: done.set()) == 0
    assert held.finish() == 0
    assert done.wait(PATIENCE_S)
    assert seen == [0, 1, 2, 3, 4]


@each("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_callback_that_raises_does_not_silence_the_next(
    chip: Chip, calls: Calls, capsys: pytest.CaptureFixture[str], error: type[BaseException]
) -> None:
    def bad(*_: object) -> None:
        raise error("a bad callback")

    task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
    assert hb.hbDSPSetTaskDoneCb(task, bad) == 0
    assert hb.hbDSPSetTaskDoneCb(task, calls) == 0
    assert calls.next()[1] == 0
    assert hb.hbDSPReleaseTask(task) == 0
    assert "a bad callback" in capsys.readouterr().err


def test_a_callback_may_release_its_task_and_submit_the_next(chip: Chip) -> None:
    source, result, done = chip.mem(8, bytes(8)), chip.mem(8), threading.Event()
    statuses: list[int] = []

    def step(task: hb.hbDSPTask_t, status: int, left: int) -> None:
        statuses.append(status)
        statuses.append(hb.hbDSPReleaseTask(task))
        if not left:
            done.set()
            return
        following = hb.hbDSPTask_t()
        statuses.append(hb.hbDSPRpc(following, result, result, chip.ctrl(chip.ADD_ONE)))
        statuses.append(hb.hbDSPSetTaskDoneCb(following, step, left - 1))

    first = chip.rpc(chip.ADD_ONE, source, result)
    assert hb.hbDSPSetTaskDoneCb(first, step, 40) == 0
    assert done.wait(PATIENCE_S)
    assert set(statuses) == {0}
    assert bytes(result.view()) == bytes([41]) * 8


def test_a_callback_may_wait_for_another_task(chip: Chip, calls: Calls) -> None:
    def wait(task: hb.hbDSPTask_t, status: int, userdata: object) -> None:
        other = hb.hbDSPTask_t()
        hb.hbDSPRpc(other, None, None, chip.ctrl(hb.HB_DSP_RPC_CMD_PING))
        calls(task, hb.hbDSPWaitTaskDone(other, 0), hb.hbDSPReleaseTask(other))

    task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
    assert hb.hbDSPSetTaskDoneCb(task, wait) == 0
    assert calls.next() == (task.value, 0, 0)
    assert hb.hbDSPReleaseTask(task) == 0


@each("callback", [None, 5, "print"])
def test_what_cannot_be_called(chip: Chip, callback: Any) -> None:
    task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
    assert hb.hbDSPSetTaskDoneCb(task, callback) == hb.HB_DSP_INVALID_ARGUMENT
    assert hb.last_error() == f"The callback {callback!r} is not callable."
    assert hb.hbDSPReleaseTask(task) == 0


def test_hundreds_from_many_threads(chip: Chip) -> None:
    everything = Calls()
    handles: list[int | None] = []

    def submit() -> None:
        for _ in range(50):
            task = chip.rpc(hb.HB_DSP_RPC_CMD_PING)
            handles.append(task.value)
            callback: Callable[..., None] = everything
            assert hb.hbDSPSetTaskDoneCb(task, callback) == 0

    in_threads(lambda _: submit(), range(8))
    got = [everything.next() for _ in range(400)]
    assert sorted(task or 0 for task, _, _ in got) == sorted(handle or 0 for handle in handles)
    for handle in handles:
        assert hb.hbDSPReleaseTask(hb.hbDSPTask_t(handle)) == 0
    assert everything.rest(chip) == []
