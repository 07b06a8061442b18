"""Ctrl-C at every place of a call where Python can raise it: what it was in is over, and the next calls go well.

An interrupt is raised at the entry of a function and after a call of one in C, where a profiler is called as well: one
that raises visits each of these places in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest

import arm_client as hb
from arm_client.arrays import Buffer
from arm_client.client import Board, private_board
from hbrt import spin
from tests.arm_client.conftest import Chip

IMAGE = Path(__file__).parent / "images" / "ops.py"
MICROSECONDS = (400).to_bytes(4, "little")  # a call that its waiter sleeps for
MOST_PLACES = 3000
PATIENCE_SECONDS = 20
PATIENCE_MS = 20_000


class Interrupt:
    """Ctrl-C at the n-th place; not inside a finalizer, where Python says it and goes on."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType | None, event: str, _of: object) -> None:
        if event not in {"call", "c_return"}:
            return
        self.left -= 1
        if self.left <= 0:
            while frame is not None:
                if frame.f_code.co_name == "__del__":
                    return
                frame = frame.f_back
            sys.setprofile(None)
            raise KeyboardInterrupt


def call(board: Board, output: Buffer) -> None:
    board.call(Chip.REST, MICROSECONDS, output)


def call_in_time(board: Board, output: Buffer) -> None:
    board.call(Chip.REST, MICROSECONDS, output, timeout=PATIENCE_SECONDS)


def wait_for_a_future(board: Board, output: Buffer) -> None:
    board.submit(Chip.REST, MICROSECONDS, output).result()


def wait_for_a_post(board: Board, output: Buffer) -> None:
    board.post(Chip.REST, MICROSECONDS, output).finish()


@pytest.fixture(scope="module", params=[2, 1], ids=["looks", "sleeps"])
def board(request: pytest.FixtureRequest) -> Iterator[Board]:
    """A board whose callers look before they sleep, or do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spin, "usable_cpus", lambda: request.param)
        with private_board(IMAGE, cores=1) as board:
            yield board


@pytest.mark.parametrize("action", [call, call_in_time, wait_for_a_future, wait_for_a_post])
def test_an_interrupt_anywhere_in_a_call_leaves_no_task_and_no_waiter(
    board: Board, action: Callable[[Board, Buffer], None]
) -> None:
    is_over, output = False, board.alloc(len(MICROSECONDS))
    with ThreadPoolExecutor(1) as other:
        for at in range(1, MOST_PLACES):
            try:
                sys.setprofile(Interrupt(at))
                action(board, output)
                sys.setprofile(None)
            except KeyboardInterrupt:
                is_over = False
            else:
                is_over = True
            finally:
                sys.setprofile(None)
            other.submit(call, board, output).result(PATIENCE_SECONDS)
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
        try:
            sys.setprofile(Interrupt(at))
            hb.hbDSPRpc(task, None, None, how)
            sys.setprofile(None)
        except KeyboardInterrupt:
            is_over = False
        else:
            is_over = True
        finally:
            sys.setprofile(None)
        assert board.session.tasks.live_handles() == ([task.value] if task.value else []), at
        if task.value:
            assert hb.hbDSPWaitTaskDone(task, PATIENCE_MS) == 0
            assert hb.hbDSPReleaseTask(task) == 0
        if is_over:
            break
    assert is_over, "the places were not all visited"
