"""A signal at every place of a call where Python can handle one: by Ctrl-C, and by a call of the handler's own.

After Ctrl-C, what it was in is over, and the next calls go well; after a handler's own call, what it was in goes on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

import arm_client as hb
from arm_client.arrays import Buffer
from arm_client.client import Board, private_board
from hbrt.attach import waiting
from hbrt.mailbox import spin
from hbrt.mailbox.table import State
from tests.arm_client.conftest import Chip
from tests.arm_client.interrupts import is_interrupted
from tests.limits import PATIENCE_S

IMAGE = Path(__file__).parent.parent / "images" / "ops.py"
MICROSECONDS = (400).to_bytes(4, "little")  # a call that its waiter sleeps for
MOST_PLACES = 3000
PATIENCE_MS = 20_000


def call(board: Board, output: Buffer) -> None:
    board.call(Chip.REST, MICROSECONDS, output)


def call_in_time(board: Board, output: Buffer) -> None:
    board.call(Chip.REST, MICROSECONDS, output, timeout=PATIENCE_S)


def wait_for_a_future(board: Board, output: Buffer) -> None:
    board.submit(Chip.REST, MICROSECONDS, output).result()


def wait_for_a_post(board: Board, output: Buffer) -> None:
    board.post(Chip.REST, MICROSECONDS, output).finish()


@pytest.fixture(params=[2, 1], ids=["looks", "sleeps"])
def board(request: pytest.FixtureRequest) -> Iterator[Board]:
    """A board whose callers look before they sleep, or do not; of each test's own, as an interrupt may cost a slot."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spin, "usable_cpus", lambda: request.param)
        with private_board(IMAGE, cores=1) as board:
            board.ping()  # what only a first call does is no part of the others
            yield board


@pytest.mark.parametrize("action", [call, call_in_time, wait_for_a_future, wait_for_a_post])
def test_an_interrupt_anywhere_in_a_call_leaves_no_task_and_no_waiter(
    board: Board, action: Callable[[Board, Buffer], None]
) -> None:
    is_over, output = False, board.alloc(len(MICROSECONDS))
    with ThreadPoolExecutor(1) as other:
        for at in range(1, MOST_PLACES):
            is_over = not is_interrupted(at, lambda: action(board, output))
            other.submit(call, board, output).result(PATIENCE_S)
            call_in_time(board, output)
            board.session.tasks.release_abandoned()
            assert board.live_tasks() == 0, f"a task that nobody knows, after an interrupt at {at}"
            if is_over:
                break
    assert is_over, "the places were not all visited"


def test_an_interrupt_anywhere_in_a_submission_leaves_no_task_that_its_program_does_not_know(board: Board) -> None:
    is_over = False
    for at in range(1, MOST_PLACES):
        task, how = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
        how.rpcCmd = hb.HB_DSP_RPC_CMD_PING
        is_over = not is_interrupted(at, partial(hb.hbDSPRpc, task, None, None, how))
        assert board.session.tasks.live_handles() == ([task.value] if task.value else []), at
        if task.value:
            assert hb.hbDSPWaitTaskDone(task, PATIENCE_MS) == 0
            assert hb.hbDSPReleaseTask(task) == 0
        if is_over:
            break
    assert is_over, "the places were not all visited"


@pytest.mark.parametrize("board", [1], indirect=True)
def test_an_interrupt_anywhere_while_slots_come_back_gives_none_of_them_to_two_tasks(board: Board) -> None:
    tasks, is_over, rest = board.session.tasks, False, board.alloc(len(MICROSECONDS))
    rest.view()[:] = MICROSECONDS
    for at in range(1, MOST_PLACES):
        for _ in range(2):
            handle = tasks.submit(Chip.REST, 0, 0, 0, rest.phy_addr, rest.size_bytes, 0, 0)
            while tasks.state(handle) is State.READY:
                pass
            assert tasks.release(handle) == 0
        board.call(hb.HB_DSP_RPC_CMD_PING)  # the only core has ended both
        is_over = not is_interrupted(at, tasks.empty_released)
        handles = [tasks.submit(hb.HB_DSP_RPC_CMD_PING, 0, 0, 0, 0, 0, 0, 0) for _ in range(3)]
        assert [tasks.wait(handle, PATIENCE_MS) for handle in handles] == [0, 0, 0]
        tasks.empty_released()
        assert [tasks.state(handle) for handle in handles] == [State.DONE] * 3, at
        assert [tasks.release(handle) for handle in handles] == [0, 0, 0]
        if is_over:
            break
    assert is_over, "the places were not all visited"


class OwnCall:
    """A signal's handler that calls the board itself, at the n-th place."""

    def __init__(self, at: int, call: Callable[[], None]) -> None:
        self.left = at
        self._call = call

    def __call__(self, _frame: FrameType | None, event: str, _of: object) -> None:
        if event in {"call", "c_return"}:
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                self._call()


def release_queued(board: Board, output: Buffer) -> None:
    tasks = board.session.tasks
    handles = [tasks.submit(hb.HB_DSP_RPC_CMD_PING, 0, 0, 0, 0, 0, output.phy_addr, output.size_bytes) for _ in "ab"]
    assert [tasks.release(handle) for handle in handles] == [0, 0]


@pytest.mark.parametrize("action", [call, call_in_time, wait_for_a_future, release_queued])
def test_a_signals_handler_may_call_the_board_anywhere_in_a_call(
    board: Board, action: Callable[[Board, Buffer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "FOLLOWER_BEAT_SECONDS", 0.01)  # who interrupted the leader waits for a beat
    outputs, visited = [board.alloc(len(MICROSECONDS)) for _ in range(2)], []

    def visit() -> None:
        for at in range(1, MOST_PLACES):
            own = OwnCall(at, lambda: action(board, outputs[1]))
            sys.setprofile(own)
            try:
                action(board, outputs[0])
            finally:
                sys.setprofile(None)
            if own.left > 0:
                visited.append(at)
                return

    # A thread of its own: one that waits for itself ends no test otherwise.
    visitor = threading.Thread(target=visit, daemon=True)
    visitor.start()
    visitor.join(PATIENCE_S)
    assert visited, "a call waits for the call that it has interrupted, or has failed"
    board.session.tasks.empty_released()
    assert board.live_tasks() == 0
