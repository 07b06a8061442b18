"""Waiting for calls: by polling where that pays, from shortly before the end where the time of a call is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import arm_client as hb
from arm_client.client import Board, private_board
from hbrt.ddr.layout import ACTIVITY_ASLEEP, CLIENT_SLEEPS, CORE_ACTIVITY
from hbrt.mailbox import spin
from tests.arm_client.conftest import Chip
from tests.limits import PATIENCE_S

UNTIL_TOLD = 0xFFFF_FFFF  # microseconds
IMAGE = Path(__file__).parent.parent / "images" / "ops.py"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    """A board whose callers look before they sleep, also on a machine with one CPU."""
    monkeypatch.setattr(spin, "usable_cpus", lambda: 2)
    with private_board(IMAGE, cores=1) as board:
        link = board.session.link
        assert link.ddr.map[link.ddr.layout.client(link.client_id) + CLIENT_SLEEPS] == 0
        yield board


class Rest:
    """Calls of one op, with the same blocks every time, so that each is like the one before."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._asked, self._told = board.empty(1, "u4"), board.empty(1, "u4")

    @contextmanager
    def without_end(self) -> Iterator[None]:
        """Let a call that was made UNTIL_TOLD end afterwards."""
        try:
            yield
        finally:
            self._asked[0] = 0

    def __call__(self, microseconds: int, timeout: float | None = None) -> None:
        """One call; its answer must be this call's, not the last one's."""
        self._asked[0] = microseconds
        self._board.call(Chip.REST, self._asked, self._told, timeout=timeout)
        assert self._told[0] == microseconds


def test_core_does_not_poll_for_a_client_whose_tasks_are_cheaper_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin, "usable_cpus", lambda: 2)
    monkeypatch.setenv("HBRT_SPIN_US", str(int(PATIENCE_S * 2e6)))  # of this process and of the core
    with private_board(IMAGE, cores=1) as board:
        rest, link, tasks = Rest(board), board.session.link, board.session.tasks
        tasks.lib.hbrt_client_polls(tasks.client, 0)
        rest(10)  # tells the core
        rest(11)
        activity = link.ddr.layout.core(0) + CORE_ACTIVITY
        began = time.monotonic()
        while link.ddr.map[activity] != ACTIVITY_ASLEEP:
            assert time.monotonic() - began < PATIENCE_S
            time.sleep(0.01)


def test_answer_is_there_whatever_calls_usually_take(board: Board) -> None:
    rest = Rest(board)
    for microseconds in (2000, 2000, 2001, 6000, 5999, 10, 11, 2000, 30_000, 1000, 1000, 300, 15_000, 15_000, 200):
        rest(microseconds)


def test_who_waits_for_a_long_call_sleeps(board: Board) -> None:
    rest = Rest(board)
    begin, begin_on_cpu = time.monotonic(), time.thread_time()
    for _ in range(12):
        rest(15_000)
    assert time.thread_time() - begin_on_cpu < (time.monotonic() - begin) / 2


@pytest.mark.parametrize("microseconds", [500, 4000])
def test_time_limit_holds_while_it_sleeps_for_the_usual_end(board: Board, microseconds: int) -> None:
    rest = Rest(board)
    for _ in range(3):
        rest(microseconds)
    for timeout in (microseconds / 4e6, microseconds / 1.1e6):
        with rest.without_end(), pytest.raises(TimeoutError):
            rest(UNTIL_TOLD, timeout)  # usually it would have ended by then, or nearly
    rest(microseconds, 20.0)


def test_end_that_comes_early_wakes(board: Board) -> None:
    """A call that usually takes 20 ms ends at once when its task is taken away by another thread."""
    chip = Chip(board)
    block, out = chip.mem(4), chip.mem(4)
    block.view()[:4] = (18_000).to_bytes(4, "little")
    for _ in range(2):
        assert chip.outcome(Chip.REST, block, out) == (0, "")
    held = chip.hold()  # so that it stays queued
    task = chip.rpc(Chip.REST, block, out)
    timer = threading.Timer(0.002, hb.hbDSPReleaseTask, [task])
    timer.start()
    assert hb.hbDSPWaitTaskDone(task, 0) in {hb.HB_DSP_TASK_RELEASED, hb.HB_DSP_TASK_CANCELLED}
    timer.join()
    assert held.finish() == 0
    chip.free_all()


def test_threads_that_wait_at_once_each_get_their_own(board: Board) -> None:
    def run(microseconds: int) -> None:
        rest = Rest(board)
        for _ in range(15):
            rest(microseconds)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, (300, 1500, 2500, 20)))
