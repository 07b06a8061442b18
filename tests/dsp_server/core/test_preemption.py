"""Priorities 254 and 255 interrupt what is below them, and leave it as it was."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from arm_client.arrays import Buffer
from arm_client.client import Board
from arm_client.errors import OpFailedError
from arm_client.future import Task
from tests.limits import PATIENCE_S

STEPS, STAMP, BROKEN, IMPORTS, WHOLE = range(0x1000, 0x1005)
image = pytest.mark.dsp_board(image="../preemption_image.py", cores=1)


@contextmanager
def long_task(board: Board, cmd: int = STEPS, **options: int) -> Iterator[tuple[Task, Callable[[], None], Buffer]]:
    """A task that runs until it is told to end; yields it, the word to end, and its output."""
    with board.alloc(8) as go, board.alloc(16) as output:
        task = board.submit(cmd, go, output, **options)

        def end() -> None:
            go.view()[0] = 1

        try:
            while not output.view()[0:8].tobytes().strip(b"\0"):
                assert not task.done(), task.exception()
            yield task, end, output
        finally:
            end()
            task.exception()


def began_ns(output: Buffer) -> int:
    return int(struct.unpack_from("<Q", output.view())[0])


@image
def test_255_runs_inside_an_op_and_leaves_it_unharmed(dsp_board: Board) -> None:
    with long_task(dsp_board) as (task, end, _), dsp_board.alloc(8) as stamped:
        urgent = dsp_board.submit(STAMP, None, stamped, priority=255)
        urgent.result(20)
        assert not task.done()
        assert task.running()
        end()
        task.result(20)
        assert urgent.core == task.core == 0


@image
def test_an_op_that_cannot_be_interrupted_ends_first(dsp_board: Board) -> None:
    with long_task(dsp_board, WHOLE) as (task, end, output), dsp_board.alloc(8) as stamped:
        urgent = dsp_board.submit(STAMP, None, stamped, priority=255)
        time.sleep(0.3)
        assert not urgent.running()
        end()
        urgent.result(PATIENCE_S)
        task.result(PATIENCE_S)
        assert began_ns(stamped) > struct.unpack_from("<Q", output.view(), 8)[0]


@image
def test_255_interrupts_254_which_interrupts_what_is_below(dsp_board: Board) -> None:
    with (
        long_task(dsp_board, priority=253) as (low, end_low, _),
        long_task(dsp_board, priority=254) as (middle, end_middle, _),
        dsp_board.alloc(8) as stamped,
    ):
        dsp_board.call(STAMP, None, stamped, priority=255, timeout=PATIENCE_S)
        same = dsp_board.submit(STAMP, None, stamped, priority=254)
        with pytest.raises(TimeoutError):
            same.result(0.2)
        assert not middle.done()
        end_middle()
        middle.result(PATIENCE_S)
        same.result(PATIENCE_S)  # inside the lowest, as the one before
        assert not low.done()
        end_low()
        low.result(PATIENCE_S)


@image
def test_253_waits(dsp_board: Board) -> None:
    with long_task(dsp_board) as (task, end, output), dsp_board.alloc(8) as stamped:
        waiting = dsp_board.submit(STAMP, None, stamped, priority=253)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        end()
        task.result(20)
        waiting.result(20)
        assert began_ns(stamped) > struct.unpack_from("<Q", output.view(), 8)[0]


@image
def test_what_interrupts_is_not_interrupted(dsp_board: Board) -> None:
    with (
        long_task(dsp_board) as (low, end_low, _),
        long_task(dsp_board, priority=255) as (high, end_high, _),
        dsp_board.alloc(8) as stamped,
    ):
        third = dsp_board.submit(STAMP, None, stamped, priority=255)
        with pytest.raises(TimeoutError):
            third.result(0.2)
        end_high()
        high.result(20)
        end_low()
        low.result(20)
        third.result(20)


@image
def test_an_interrupting_op_that_fails_harms_nobody(dsp_board: Board) -> None:
    with long_task(dsp_board) as (task, end, _):
        with pytest.raises(OpFailedError, match="the interrupting op is broken"):
            dsp_board.call(BROKEN, priority=255, timeout=PATIENCE_S)
        end()
        task.result(20)


@pytest.mark.dsp_board(image="../preemption_image.py", cores=2, fresh=True)  # one that has not imported it
def test_an_import_is_not_interrupted(dsp_board: Board) -> None:
    with dsp_board.alloc(8) as first, dsp_board.alloc(8) as second:
        below = dsp_board.submit(IMPORTS, None, first, core=1)
        while not first.view()[0]:
            assert not below.done(), below.exception()
        urgent = dsp_board.submit(IMPORTS, None, second, core=1, priority=255)
        urgent.result(PATIENCE_S)
        below.result(PATIENCE_S)
        assert (first.view()[1], second.view()[1]) == (7, 7)


@image
def test_many_interruptions_of_one_op(dsp_board: Board) -> None:
    with long_task(dsp_board) as (task, end, _), dsp_board.alloc(8) as stamped:
        for _ in range(200):
            dsp_board.call(STAMP, None, stamped, priority=255, timeout=PATIENCE_S)
        assert not task.done()
        end()
        task.result(20)


@pytest.mark.dsp_board(image="../preemption_image.py", cores=2)
def test_a_free_core_is_preferred_to_an_interruption(dsp_board: Board) -> None:
    with dsp_board.alloc(8) as stamped:
        for core in (1, 2):  # one that has just started is not free before its first look
            dsp_board.call(STAMP, None, stamped, core=core, timeout=PATIENCE_S)
        with long_task(dsp_board) as (task, _, _):
            urgent = dsp_board.submit(STAMP, None, stamped, priority=255)
            urgent.result(PATIENCE_S)
            assert urgent.core != task.core


@pytest.mark.dsp_board(image="../preemption_image.py", cores=2)
def test_a_pinned_task_interrupts_its_core(dsp_board: Board) -> None:
    with (
        long_task(dsp_board, core=1) as (first, _, _),
        long_task(dsp_board, core=2) as (second, _, _),
        dsp_board.alloc(8) as stamped,
    ):
        urgent = dsp_board.submit(STAMP, None, stamped, priority=255, core=2)
        urgent.result(20)
        assert urgent.core == 1
        assert not first.done()
        assert not second.done()
