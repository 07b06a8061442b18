"""Who runs next on a live board: priority, customId, submission; pinned, free and sleeping cores; many processes."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arm_client import HB_DSP_RPC_CMD_PING, Board, BoardArray, Task
from arm_client.client import private_board
from hbrt.ddr.layout import CORE_ACTIVITY
from tests.limits import PATIENCE_S
from tests.waiting import until

ECHO, HOLD, FAIL, GIVE_BACK, GIVE_NONE, GIVE_NUMPY, FETCH, TAKE_TCM, NOTE, WHICH, ADD_ONE = range(0x1000, 0x100B)
CORE_0, CORE_1 = 1, 2

pytestmark = pytest.mark.dsp_board(image="arm_client/images/ops.py")


class Gate:
    """A task that keeps a core busy until it is opened."""

    def __init__(self, board: Board, core: int = 0, priority: int = 0) -> None:
        self.flags = board.empty(8, np.uint8)
        self.task = board.submit(HOLD, self.flags, core=core, priority=priority)

    @property
    def is_running(self) -> bool:
        return bool(self.flags[0])

    def await_running(self) -> Gate:
        until(lambda: self.is_running, "the start of a gate")
        return self

    def open(self) -> None:
        self.flags[1] = 1

    def close(self) -> None:
        self.open()
        assert self.task.result(PATIENCE_S) is None


class Journal:
    """What ran on each core, in order, as numbers that the tasks were given."""

    def __init__(self, board: Board, most: int) -> None:
        self.board = board
        self.rows: BoardArray = board.empty((board.core_count, 1 + most), np.uint32)

    def submit(self, number: int, **how: int) -> Task:
        return self.board.submit(NOTE, struct.pack("<iI", number, self.rows.strides[0]), self.rows, **how)

    def of(self, core: int) -> list[int]:
        return [int(number) for number in self.rows[core, 1 : 1 + int(self.rows[core, 0])]]


@pytest.mark.dsp_board(image="arm_client/images/ops.py", cores=1)
@pytest.mark.parametrize("seed", range(3))
def test_priority_then_custom_id_then_submission(dsp_board: Board, seed: int) -> None:
    rng = random.Random(seed)
    ranks = [(rng.choice([0, 1, 7, 100, 253]), rng.choice([-(1 << 63), -5, 0, 3, (1 << 63) - 1])) for _ in range(120)]
    gate, journal = Gate(dsp_board).await_running(), Journal(dsp_board, len(ranks))
    tasks = [
        journal.submit(number, priority=priority, custom_id=custom_id)
        for number, (priority, custom_id) in enumerate(ranks)
    ]
    gate.close()
    for task in tasks:
        task.result(PATIENCE_S)
    assert journal.of(0) == sorted(range(120), key=lambda number: (-ranks[number][0], ranks[number][1], number))


@pytest.mark.dsp_board(image="arm_client/images/ops.py", cores=1)
def test_a_released_task_leaves_the_order_as_it_is(dsp_board: Board) -> None:
    gate, journal = Gate(dsp_board).await_running(), Journal(dsp_board, 40)
    tasks = [journal.submit(number, priority=number % 4) for number in range(40)]
    assert all(task.cancel() for task in tasks[::3])
    late = journal.submit(40, priority=3)
    gate.close()
    for task in [task for number, task in enumerate(tasks) if number % 3] + [late]:
        task.result(PATIENCE_S)
    left = [number for number in range(40) if number % 3] + [40]
    assert journal.of(0) == sorted(left, key=lambda number: (-3 if number == 40 else -(number % 4), number))


@pytest.mark.parametrize("seed", range(3))
def test_each_core_takes_the_best_that_it_may_run(dsp_board: Board, seed: int) -> None:
    rng = random.Random(seed)
    ranks = [(rng.randrange(5), rng.randrange(3), rng.choice([0, CORE_0, CORE_1, 3])) for _ in range(100)]
    gates = [Gate(dsp_board, core).await_running() for core in (CORE_0, CORE_1)]
    journal = Journal(dsp_board, len(ranks))
    tasks = [
        journal.submit(number, priority=priority, custom_id=custom_id, core=core)
        for number, (priority, custom_id, core) in enumerate(ranks)
    ]
    for gate in rng.sample(gates, 2):
        gate.open()
    for task in tasks + [gate.task for gate in gates]:
        task.result(PATIENCE_S)
    ran = [journal.of(core) for core in (0, 1)]
    assert sorted(ran[0] + ran[1]) == list(range(100))
    for core in (0, 1):
        assert ran[core] == sorted(ran[core], key=lambda number: (-ranks[number][0], ranks[number][1], number))
        assert all(ranks[number][2] in {0, 1 << core, 3} for number in ran[core])


def test_a_pinned_queue_does_not_keep_the_other_core(dsp_board: Board) -> None:
    gate, journal = Gate(dsp_board, CORE_0).await_running(), Journal(dsp_board, 40)
    pinned = [journal.submit(number, core=CORE_0, priority=200) for number in range(30)]
    free = [journal.submit(100 + number) for number in range(10)]
    for task in free:
        assert task.result(PATIENCE_S) is journal.rows
        assert task.core == 1
    assert not any(task.done() for task in pinned)
    gate.close()
    for task in pinned:
        task.result(PATIENCE_S)
        assert task.core == 0
    assert journal.of(0) == list(range(30))
    assert journal.of(1) == [100 + number for number in range(10)]


@pytest.mark.parametrize("repeat", range(5))
def test_no_core_idles_while_there_is_work(dsp_board: Board, repeat: int) -> None:
    """Two long tasks for any core run side by side, whatever each core was doing when they came."""
    if repeat % 2:
        dsp_board.ping(core=1 + repeat // 2 % 2)
    gates = [Gate(dsp_board) for _ in range(3)]
    until(lambda: sum(gate.is_running for gate in gates) == 2, "two of three running side by side")
    running = [gate for gate in gates if gate.is_running]
    waiting = next(gate for gate in gates if not gate.is_running)
    running[0].close()
    until(lambda: waiting.is_running, "the third one's start")
    for gate in (running[1], waiting):
        gate.close()
    assert {gate.task.core for gate in gates} == {0, 1}


@pytest.mark.parametrize("core", [0, 1])
def test_a_core_that_is_asleep_is_woken(dsp_board: Board, core: int) -> None:
    link = dsp_board.session.link
    activity = link.ddr.layout.core(core) + CORE_ACTIVITY
    for _ in range(20):
        until(lambda: link.ddr.map[activity] == 0, "the core's sleep")
        task = dsp_board.submit(WHICH, None, dsp_board.empty(8, np.uint8), core=1 << core)
        assert task.result(PATIENCE_S)[0] == core


@pytest.mark.dsp_board(image="arm_client/images/ops.py", cores=1)
def test_priority_255_does_not_wait_for_the_op_that_runs(dsp_board: Board) -> None:
    gate, journal = Gate(dsp_board).await_running(), Journal(dsp_board, 4)
    patient = journal.submit(1, priority=253)
    assert journal.submit(2, priority=255).result(PATIENCE_S) is journal.rows
    assert journal.of(0) == [2]
    assert not patient.done()
    assert not gate.task.done()
    gate.close()
    patient.result(PATIENCE_S)
    assert journal.of(0) == [2, 1]


CLIENT = """
import random, struct, sys
import numpy as np
import arm_client as hb
from arm_client import connect
rng, count = random.Random(int(sys.argv[2])), int(sys.argv[3])
with connect(sys.argv[1]) as board:
    cells, flying, ended = board.empty((count, 8), np.uint8), {}, 0
    for number in range(count):
        flying[number] = board.submit(0x100A, cells[number], cells[number], priority=rng.randrange(254),
                                      custom_id=rng.randrange(4), core=rng.choice([0, 0, 1, 2, 3]))
        while len(flying) > rng.choice([0, 1, 30, 100]):
            task = flying.pop(rng.choice(list(flying)))
            task.result(30)
            ended += 1
    for task in flying.values():
        task.result(30)
        ended += 1
    print(ended, int((cells == 1).all()))
"""


@pytest.mark.long
def test_thousands_of_tasks_from_four_processes_each_end_once(dsp_board: Board) -> None:
    def tasks_ended() -> int:
        return sum(core["tasks"] for core in dsp_board.status()["cores"])

    dsp_board.ping()
    time_of_count = tasks_ended
    before, count = _settled(time_of_count), 1000
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(dsp_board.path), str(seed), str(count)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HBRT_SPIN_US": ["-1", "0"][seed % 2]},
        )
        for seed in range(4)
    ]
    said = [client.communicate(timeout=PATIENCE_S)[0] for client in clients]
    assert said == [f"{count} 1\n"] * 4
    until(lambda: tasks_ended() == before + 4 * count, "the cores' count of tasks")
    status = dsp_board.status()
    assert status["tasks"] == {"ready": 0, "running": 0}
    assert [core["crashes"] for core in status["cores"]] == [0, 0]


def _settled(count: Callable[[], int]) -> int:
    """A counter's value once its writers, who count once a beat, have written it."""
    value = -1
    while value != (value := count()):
        time.sleep(0.25)
    return value


def test_the_slow_calls_are_not_of_another_kind(dsp_board: Board) -> None:
    """A wake-up that is lost costs a beat of 100 ms, thousands of times a call: it would show in each of five rounds.

    On a busy machine, a round may have another process's time slices in it instead.
    """
    dsp_board.ping()
    rounds = (sorted(dsp_board.ping() for _ in range(300)) for _ in range(5))
    assert any(times[270] < 25 * times[150] for times in rounds)


def test_many_clients_of_one_process_share_fairly_enough(dsp_board: Board) -> None:
    """Equal tasks of two clients are served in the order of their submission, whoever they are from."""
    from arm_client.session.session import Session
    from hbrt.board.paths import BoardPaths

    other_session = Session(BoardPaths(dsp_board.path))
    other_session.users = 1
    other = Board(other_session)
    gates = [Gate(dsp_board, core).await_running() for core in (CORE_0, CORE_1)]
    mine = [dsp_board.submit(HB_DSP_RPC_CMD_PING, core=CORE_0) for _ in range(20)]
    theirs = [other.submit(HB_DSP_RPC_CMD_PING, core=CORE_0) for _ in range(20)]
    for gate in gates:
        gate.close()
    both: list[Any] = [task for pair in zip(mine, theirs, strict=True) for task in pair]
    for task in both:
        task.result(PATIENCE_S)
    assert max(task._answer().start_ns for task in mine) < min(task._answer().start_ns for task in theirs)
    other.close()


@pytest.mark.parametrize("how", ["direct", "relay"])
def test_what_waits_long_enough_runs_first_on_a_board_with_aging(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("HBRT_AGING_MS", "1")
    monkeypatch.setenv("HB_DSP_RPC_MODE", how)
    with private_board(Path(__file__).parent / "arm_client/images/ops.py", cores=1) as board:
        gate, journal = Gate(board).await_running(), Journal(board, 3)
        tasks = [journal.submit(1)]
        until(lambda: board.status()["oldest_waiting"]["age_s"] > 0.255, "the age of a task")
        tasks += [journal.submit(2, priority=253), journal.submit(3, priority=254)]
        tasks[2].result(PATIENCE_S)  # inside the gate: it is urgent
        gate.close()
        for task in tasks:
            task.result(PATIENCE_S)
        assert [number for number in journal.of(0) if number != 3] == [1, 2]
        assert journal.of(0)[0] == 3
        assert board.status()["aging_ms"] == 1
