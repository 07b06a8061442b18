"""softmax of many rows, command 0x405: does to each row of a matrix what 0x400 does to a row, in a single call.

The emulator's choice, for programs that would otherwise make a thousand calls for a thousand rows. Command 0x400 stays
as in the manual, and defines the board's softmax: if an image registers its own there, that is called for each row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.errors import ParameterError
from dsp_server.hardware import cycles
from dsp_server.hardware.frame import ping_pong
from dsp_server.hardware.tcm import OutOfTcm
from dsp_server.ops.nn.softmax import ALL_PASSES, FLOAT32, hb_dsp_softmax, softmax_row
from dsp_server.ops.nn.tiles import (
    BLOCK_ELEMENTS,
    DDR_TILE_ELEMENTS,
    Path,
    array_at,
    charge,
    current_path,
    output_array,
    read_param,
    refuse_overlap,
)
from dsp_server.runtime import context
from hbrt.nn_types import hbDSPSoftmaxParam, hbDSPSoftmaxRowsParam
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager
    from dsp_server.registry import Op


def hb_dsp_softmax_rows(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Compute softmax of each row of the matrix that an hbDSPSoftmaxRowsParam points to, writing to the output block.

    Returns:
        0; HB_ERR_MMAP_FAILED if the matrix is not inside a single live block; any non-zero value that the image's own
        softmax returned for a row.

    Raises:
        ParameterError: data_size is negative or not a multiple of 4, rows is negative, the address is not aligned, the
            output block is too small, or the two blocks overlap but are not identical.
        OutOfTcm: a tile does not fit in the banks.
    """
    param = read_param(hbDSPSoftmaxRowsParam, input)
    if param.data_size < 0 or param.data_size % FLOAT32.itemsize:
        raise ParameterError(f"Invalid data_size {param.data_size}: must be 4 bytes per float32 value of a row.")
    if param.rows < 0:
        raise ParameterError(f"Invalid rows {param.rows}: must be 0 or more.")
    length = param.data_size // FLOAT32.itemsize
    source = array_at(param.input, param.rows * length, FLOAT32)
    if source is None:
        return Status.HB_ERR_MMAP_FAILED
    target = output_array(output, param.rows * length, FLOAT32)
    if not source.size:
        return 0
    refuse_overlap(source, target)
    registered = context.registry.get(HB_DSP_RPC_CMD_NN_SOFTMAX)
    op = hb_dsp_softmax if registered is None else registered.resolve()
    if op is not hb_dsp_softmax:
        return _row_by_row(op, param, output, tm)
    softmax_rows(tm, current_path(), source.reshape(param.rows, length), target.reshape(param.rows, length))
    return 0


def softmax_rows(tm: TileManager, path: Path, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
    """Compute softmax of each row, bit-identical to `softmax_row`; a tile holds as many rows as fit in a bank.

    Args:
        tm: The core's tile manager.
        path: Through TCM, or straight from DDR; the result is the same.
        source: (rows, n) float32 in DDR, C-contiguous.
        target: (rows, n) float32 in DDR, C-contiguous; may be `source`.
    """
    rows, length = source.shape
    with np.errstate(invalid="ignore", under="ignore"):
        if path == "ddr":
            step = max(DDR_TILE_ELEMENTS // length, 1)
            for first in range(0, rows, step):
                values, results = source[first : first + step], target[first : first + step]
                cycles.current().charge_ddr(values.nbytes + results.nbytes)
                _tile(values, results, first)
            return
        row = np.dtype((np.float32, length))
        try:
            ping_pong(tm, source.data, target.data, _tile, in_dtype=row, in_place=True)
        except OutOfTcm:  # for a single row: then do each row tile by tile
            for values, results in zip(source, target, strict=True):
                softmax_row(tm, path, values, results)


def _tile(values: NDArray[Any], results: NDArray[Any], _first: int) -> None:
    """Do the three passes of `softmax_row` over (n, length) at once: the same sums in the same order."""
    exponentials = np.subtract(values, np.maximum.reduce(values, axis=1, keepdims=True), dtype=np.float64)
    np.exp(exponentials, out=exponentials)
    results[...] = exponentials
    rows, length = exponentials.shape
    whole = length // BLOCK_ELEMENTS * BLOCK_ELEMENTS
    sums = np.add.reduce(exponentials[:, whole:], axis=1)
    if whole:
        blocks = exponentials[:, :whole].reshape(rows, -1, BLOCK_ELEMENTS).sum(axis=2)
        sums = np.array([math.fsum([*row, rest]) for row, rest in zip(blocks.tolist(), sums.tolist(), strict=True)])
    np.multiply(results, (1.0 / sums).astype(np.float32)[:, None], out=results)
    charge(values.size, ALL_PASSES)


def _row_by_row(op: Op, param: hbDSPSoftmaxRowsParam, output: memoryview, tm: TileManager) -> int:
    """Call the op that the image registered at 0x400 for each row, with blocks as in a call for that row."""
    one = hbDSPSoftmaxParam(param.data_size)
    for row in range(param.rows):
        start = row * param.data_size
        one.input = param.input + start
        status = op(memoryview(bytearray(one)), output[start : start + param.data_size], tm)
        if status:
            return status
    return 0
