"""softmax over an axis of an array: one DSP call per row, many in flight."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.arrays import BoardArray
from arm_client.checks import deadline_of
from arm_client.client import ANY, Board
from arm_client.future import Task
from arm_client.nn.arrays import as_array, axis_of, cancel_or_keep, finish, result_array, to_board
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX

IN_FLIGHT = 32
"""Rows queued at once: enough that every core finds its next row waiting."""

PARAM = np.dtype(hbDSPSoftmaxParam)


def softmax(
    board: Board,
    x: ArrayLike,
    axis: int = -1,
    out: BoardArray | None = None,
    *,
    priority: int = 0,
    core: int = ANY,
    timeout: float | None = None,
) -> BoardArray:
    """Compute softmax along an axis with op 0x400.

    Args:
        board: Connection to a board.
        x: Real numbers, at least one dimension; computed in float32. A float32 board array in C order is used in place
            if `axis` is its last axis; anything else is copied to device memory.
        axis: Axis that sums to 1 in the result.
        out: Board array for the result, float32 with the shape of `x`; None for a new one. May be `x` itself.
        priority: Of each task, 0..255, larger first.
        core: Core mask, 0 for any.
        timeout: Seconds for all rows together; None for no limit.

    Returns:
        `out`, or a new board array: float32, the shape of `x`. A row with a NaN or +Inf is all NaN.

    Raises:
        CallerError: wrong axis, or `out` does not fit. TimeoutError. OpFailedError: the op failed.

    Source: DSP development guide (J5 OE), 10.2.3.2 ARM Softmax Operator Development,
    https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
    Emulator: the manual's ARM program treats all dimensions from the axis on as one row of D = Size / N elements, where
    N is the product of the dimensions before it. The two agree on the last axis; for others, `softmax(board,
    x.reshape(N, -1))` does what the manual's does.
    """
    given = as_array(x)
    axis = axis_of(given.shape, axis)
    results = result_array(board, out, given.shape, np.float32)
    if not given.size:
        return results
    last = np.moveaxis(given, axis, -1)
    source = to_board(board, last, np.float32)
    length = last.shape[-1]
    rows = last.size // length
    # A call's blocks start at multiples of 8 bytes: rows of odd length need one float32 between them.
    in_order = axis == given.ndim - 1 and (rows == 1 or length % 2 == 0)
    target = results if in_order else board.empty((rows, length + length % 2), np.float32)
    _submit_rows(board, source, length, target.reshape(rows, -1), priority, core, timeout)
    if not in_order:
        results[...] = np.moveaxis(target[:, :length].reshape(last.shape), -1, axis)
    return results


def _submit_rows(
    board: Board,
    source: BoardArray,
    length: int,
    target: NDArray[Any],
    priority: int,
    core: int,
    timeout: float | None,
) -> None:
    rows, row_bytes = len(target), length * source.itemsize
    params: Any = board.empty(rows, PARAM)
    params["data_size"] = row_bytes
    params["input"] = source.phy_addr + np.arange(rows, dtype=np.uint64) * np.uint64(row_bytes)
    deadline = deadline_of(timeout)
    used = (source, target, params)
    queued: deque[Task] = deque()

    def collect() -> None:
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        finish(queued.popleft(), left, used)

    try:
        for row in range(rows):
            if len(queued) == IN_FLIGHT:
                collect()
            queued.append(
                board.submit(
                    HB_DSP_RPC_CMD_NN_SOFTMAX, params[row : row + 1], target[row], priority=priority, core=core
                )
            )
        while queued:
            collect()
    except BaseException:
        while queued:
            cancel_or_keep(queued.popleft(), used)
        raise
