"""One connection, many threads: results, handles that cross threads, finalizers in the middle of requests."""

from __future__ import annotations

import concurrent.futures
import gc
import queue
import random
import struct
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

import arm_client as hb
from tests.limits import PATIENCE_S
from tests.threads import in_threads

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip

pytestmark = [
    pytest.mark.dsp_board(image="../arm_client/images/ops.py"),
    pytest.mark.differs("remote", "an op sees what the program writes after CLEAN only"),
]


@pytest.fixture(params=["0", "-1"])
def spin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Before ``chip``: the setting is read when a process attaches."""
    value: str = request.param
    monkeypatch.setenv("HBRT_SPIN_US", value)
    return value


def test_a_hundred_by_the_c_names(spin: str, chip: Chip) -> None:
    def work(number: int) -> int:
        mem, task = hb.hbSysMem(), hb.hbDSPTask_t()
        statuses = hb.hbSysAllocMem(mem, 64)
        ctrl = chip.ctrl(chip.GIVE_BACK)
        for repeat in range(10):
            value = number * 100 + repeat + 1
            struct.pack_into("<i", mem.view(), 0, value)
            statuses |= hb.hbDSPRpc(task, mem, mem, ctrl)
            if hb.hbDSPWaitTaskDone(task, repeat % 2 * 30_000) != value:
                return -1
            statuses |= hb.hbDSPReleaseTask(task)
        return statuses | hb.hbSysFreeMem(mem)

    assert in_threads(work, range(100)) == [0] * 100


def test_a_hundred_by_python_habits(spin: str, chip: Chip) -> None:
    def work(number: int) -> list[int]:
        output = chip.board.empty(4, np.uint8)
        for repeat in range(5):
            tasks = [chip.board.submit(chip.ADD_ONE, bytes([number, repeat, 3, 4]), output) for _ in range(3)]
            for task in reversed(tasks):
                assert task.result(PATIENCE_S) is output
            assert output.tolist() == [number + 1, repeat + 1, 4, 5]
        return [number]

    assert in_threads(work, range(100)) == [[number] for number in range(100)]


def test_mixed_waits_and_the_last_one_is_not_left_asleep(spin: str, chip: Chip) -> None:
    """Threads come and go as waiters while long tasks keep a few asleep: the lead is passed on each time."""
    gates = [chip.board.from_array(np.zeros(8, np.uint8)) for _ in range(2)]
    held = [chip.board.submit(chip.HOLD, gate, core=1 << core) for core, gate in enumerate(gates)]
    chip.until(lambda: all(gate[0] for gate in gates), "the start of both")
    rng = random.Random(7)
    delays = [rng.random() * 0.02 for _ in range(30)]

    def work(number: int) -> str:
        if number < 10:
            return type(held[number % 2].result(PATIENCE_S)).__name__
        if number == 10:
            threading.Event().wait(0.05)
            for gate in gates:
                gate[1] = 1
            return "opened"
        try:
            chip.board.call(hb.HB_DSP_RPC_CMD_PING, timeout=delays[number - 11])
        except TimeoutError:
            return "timeout"
        return "ping"

    results = in_threads(work, range(40))
    assert results[:11] == ["NoneType"] * 10 + ["opened"]
    assert set(results[11:]) <= {"timeout", "ping"}


def test_handles_cross_threads(chip: Chip) -> None:
    handles: queue.Queue[int | None] = queue.Queue()

    def work(number: int) -> list[int]:
        if number < 4:
            for _ in range(50):
                handles.put(chip.rpc(hb.HB_DSP_RPC_CMD_PING).value)
            return []
        statuses = []
        for _ in range(50):
            task = hb.hbDSPTask_t(handles.get(timeout=PATIENCE_S))
            statuses += [hb.hbDSPWaitTaskDone(task, 0), hb.hbDSPReleaseTask(task)]
        return statuses

    results = in_threads(work, range(8))
    assert results == [[]] * 4 + [[0] * 100] * 4
    assert chip.board.live_tasks() == 0


def test_many_submit_more_than_there_are_slots(chip: Chip) -> None:
    """Threads run out of slots together and share what the daemon leases."""

    def work(number: int) -> int:
        tasks = [chip.rpc(hb.HB_DSP_RPC_CMD_PING) for _ in range(20)]
        return sum(hb.hbDSPWaitTaskDone(task, 0) + hb.hbDSPReleaseTask(task) for task in tasks)

    assert in_threads(work, range(32)) == [0] * 32


@pytest.fixture
def eager_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)


class Knot:
    """A reference cycle around what has a finalizer: only the collector ends it, wherever it happens to run."""

    def __init__(self, *held: object) -> None:
        self.held = held
        self.me = self


@pytest.mark.usefixtures("eager_collector")
def test_finalizers_in_the_middle_of_requests(chip: Chip) -> None:
    def work(number: int) -> str:
        for repeat in range(12):
            buffer = chip.board.alloc(64 + repeat)
            task = chip.board.submit(chip.ECHO, b"params", chip.board.empty(16))
            called = chip.board.submit(hb.HB_DSP_RPC_CMD_PING)
            called.add_done_callback(lambda _: None)
            Knot(buffer, task, called)
            chip.board.call(chip.ADD_ONE, bytes([number]), chip.board.empty(1, np.uint8))
        return "done"

    assert in_threads(work, range(8)) == ["done"] * 8
    gc.collect()
    chip.until(lambda: chip.board.live_tasks() == 0, "the end of the dropped tasks")
    gc.collect()
    assert chip.board.live_bytes() == 0


def test_an_executor_of_calls(chip: Chip) -> None:
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        outputs = list(
            pool.map(lambda n: chip.board.call(chip.ADD_ONE, bytes([n]), chip.board.empty(1, "u1")), range(200))
        )
    assert [int(output[0]) for output in outputs] == list(range(1, 201))
