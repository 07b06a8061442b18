"""Arrays on their way to an op and back, and a call that keeps them alive as long as a core may touch them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from arm_client.client import Board, BoardArray
from arm_client.errors import CallerError
from arm_client.future import Task
from hbrt.status import Status


def to_board(board: Board, values: ArrayLike, dtype: DTypeLike) -> BoardArray:
    """The values in device memory, in C order: a fitting board array itself, with no copy, or else a copy."""
    if (
        isinstance(values, BoardArray)
        and values.is_on_board
        and values.dtype == np.dtype(dtype)
        and values.flags.c_contiguous
    ):
        return values
    return board.from_array(np.asarray(values, dtype))


def result_array(
    board: Board, out: BoardArray | None, shape: tuple[int, ...], dtype: DTypeLike
) -> BoardArray:
    """The array for an op's results: `out` when it fits, or a new one.

    Raises:
        CallerError: `out` has another shape or type, is not in device memory, or is not in C order.
    """
    if out is None:
        return board.empty(shape, dtype)
    if not isinstance(out, BoardArray):
        raise refusal(
            f"out is a {type(out).__name__}; it must be in device memory: make it with board.empty()."
        )
    if out.shape != shape or out.dtype != np.dtype(dtype) or not out.flags.c_contiguous:
        raise refusal(
            f"out has shape {out.shape}, type {out.dtype} and strides {out.strides}; the results have shape "
            f"{shape} and type {np.dtype(dtype)}, in C order. Make it with board.empty()."
        )
    return out


def finish(task: Task, timeout: float | None, *used: object) -> Any:
    """The task's output. On a time-out `used`, the arrays it works on, stay alive until the task has ended.

    Raises:
        TimeoutError: it did not end in time. HbrtError: it failed.
    """
    try:
        return task.result(timeout)
    except TimeoutError:
        if not task.cancel():
            task.add_done_callback(lambda _: used)  # a core may still read and write them
        raise


def structures(board: Board, kind: type[ctypes.Structure], count: int) -> tuple[Any, BoardArray]:
    """An array of C structures in device memory, and the same as one row of bytes a structure."""
    size_bytes = ctypes.sizeof(kind)
    rows = board.empty((count, size_bytes), np.uint8)
    return (kind * count).from_buffer(rows.data), rows


def refusal(sentence: str) -> CallerError:
    """The error for a wrong argument."""
    return CallerError(Status.HB_DSP_INVALID_ARGUMENT, sentence)
