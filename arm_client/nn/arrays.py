"""Prepare arrays for ops and their results, and keep them alive while a core may access them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from arm_client.arrays import BoardArray, is_on_board
from arm_client.checks import need_whole, refusal
from arm_client.client import Board
from arm_client.future import Task


def as_array(values: ArrayLike) -> NDArray[Any]:
    """Return the values as an array: a board array unchanged, else converted by numpy.

    Raises:
        CallerError: not real numbers, or rows of unequal length.
    """
    if isinstance(values, BoardArray):
        return values
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise refusal(f"The values are not an array: {error}") from None
    if given.dtype.kind not in "biuf":
        raise refusal(f"The values are of type {given.dtype}: use real numbers, such as float32.")
    return given


def axis_of(shape: tuple[int, ...], axis: int) -> int:
    """Normalize the axis to count from 0; raises CallerError if it is out of range."""
    need_whole("axis", axis)
    if not -len(shape) <= axis < len(shape):
        raise refusal(f"axis {axis} is out of range for shape {shape}.")
    return axis % len(shape)


def to_board(board: Board, values: NDArray[Any], dtype: DTypeLike) -> BoardArray:
    """Return the values in device memory, in C order; a suitable board array is used without copying."""
    if is_on_board(values) and values.dtype == np.dtype(dtype) and values.flags.c_contiguous:
        return values
    return board.from_array(np.asarray(values, dtype))


def result_array(board: Board, out: BoardArray | None, shape: tuple[int, ...], dtype: DTypeLike) -> BoardArray:
    """Return the array for an op's results: `out` if it fits, or a new one.

    Raises:
        CallerError: `out` is not in device memory, not in C order, or has the wrong shape or type.
    """
    if out is None:
        return board.empty(shape, dtype)
    if not is_on_board(out):
        raise refusal("out is not in device memory: create it with board.empty().")
    if out.shape != shape or out.dtype != np.dtype(dtype) or not out.flags.c_contiguous:
        raise refusal(
            f"out has shape {out.shape}, type {out.dtype} and strides {out.strides}, but the results have shape "
            f"{shape} and type {np.dtype(dtype)}, in C order: create it with board.empty()."
        )
    return out


def per_channel(name: str, values: ArrayLike, channels: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return (channels,) of `dtype` from one value per channel, or from one value for all.

    Raises:
        CallerError: wrong number of values, values that are not real numbers, or out of range for an integer type.
    """
    try:
        given = np.asarray(values).reshape(-1)
    except ValueError:
        raise refusal(f"{name} is {values!r}: give one number, or a flat list of them.") from None
    if given.dtype.kind not in "biuf":
        raise refusal(f"{name} is {values!r}: use real numbers.")
    if given.size not in {1, channels}:
        raise refusal(f"{name} has {given.size} values for {channels} channels: give 1 or {channels}.")
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.broadcast_to(given, channels).astype(dtype)
    if np.issubdtype(result.dtype, np.integer) and not np.array_equal(result, np.broadcast_to(given, channels)):
        raise refusal(f"{name} is {values!r}: must be integers that fit {result.dtype}.")
    return result


def finish(task: Task, timeout: float | None, *used: object) -> Any:
    """Return the task's output; the arrays `used` stay alive if the task outlives the wait.

    Raises:
        TimeoutError: it did not end within `timeout` seconds. HbrtError: it failed.
    """
    try:
        return task.result(timeout)
    except BaseException:
        cancel_or_keep(task, *used)
        raise
    finally:
        del task  # it holds the exception, which holds this frame: break the cycle, which would keep device memory


def cancel_or_keep(task: Task, *used: object) -> None:
    """Cancel a task, or keep the arrays `used` alive until it ends, because a core may still write there."""
    if not task.cancel():
        task.add_done_callback(partial(_release, used))


def _release(used: tuple[object, ...], task: object) -> None:
    """Return a callback that holds `used`; both are freed once it has been called."""
