"""Ops in C++: what an op leaves behind when a call of it ends it, and what the language adds to C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arm_client.client import Board
from arm_client.errors import CoreLostError, HbrtError, OpFailedError
from tests.native.dsp.conftest import IMAGES, WARNINGS

Build = Callable[..., Path]
COUNT, MISTAKE, THROW, CATCH, STREAM, THREAD, MISTAKE_IN_THREAD = range(7)


@pytest.fixture
def board(build: Build, dsp_board_factory: Callable[..., Any]) -> Iterator[Board]:
    with dsp_board_factory(image=str(build(IMAGES / "objects.cc", *WARNINGS)), cores=1) as board:
        yield board


def behave(board: Board, way: int) -> int:
    output = board.empty(1, np.int32)
    board.call(0x1000, board.from_array(np.array([way, 0], np.int32)), output)
    return int(np.asarray(output)[0])


def test_objects_are_destroyed_when_a_call_ends_the_op(board: Board) -> None:
    behave(board, COUNT)
    assert behave(board, COUNT) == 1  # of the call before
    with pytest.raises(OpFailedError, match=r"waits for iDMA handle -1 at .*objects\.cc:21"):
        behave(board, MISTAKE)
    assert behave(board, COUNT) == 3  # of the call before the mistake one, and of it two
    assert behave(board, THREAD) == 0


def test_exception_that_nobody_catches_costs_the_task(board: Board) -> None:
    with pytest.raises(
        CoreLostError, match=r"SIGABRT \(abort\) in an image's C code.*(\n.*)*objects\.cc\", line \d+ in .*behave"
    ):
        behave(board, THROW)
    assert behave(board, COUNT) == 0


def test_exception_that_the_op_catches_is_its_own(board: Board) -> None:
    with pytest.raises(HbrtError, match=r"returned -9\.\nIts output:\ncaught row 5"):
        behave(board, CATCH)


def test_streams_are_lines_of_the_task(board: Board) -> None:
    with pytest.raises(HbrtError, match=r"returned -8\.\nIts output:\nrow 3 is odd\nscale 0\.5"):
        behave(board, STREAM)


def test_mistake_in_a_thread_of_the_op_fails_the_task_when_the_op_returns(board: Board) -> None:
    with pytest.raises(OpFailedError, match="waits for iDMA handle -1"):
        behave(board, MISTAKE_IN_THREAD)
    behave(board, COUNT)
