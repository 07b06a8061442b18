"""A DSP image with the op behind samples/arm/dnn/custom_layer.py: the best column of each row, at 0x1000.

    hbrt start --image layer_image.py

The op processes its rows tile by tile, with as many whole rows at a time as fit into a tile of TCM.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from dsp_server import (
    DSP_ERR,
    HB_DSP_DRAM0_POOL_SIZE,
    HB_DSP_DRAM1_POOL_SIZE,
    HB_DSP_INVALID_ARGUMENT,
    HB_DSP_LOG_WARNING,
    HB_DSP_REGISTER_CV_ALL,
    HB_DSP_REGISTER_NN_ALL,
    HB_ERR_MMAP_FAILED,
    MAP_FAILED,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_init_global_tm,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_set_log_level,
    hb_dsp_start,
    ping_pong,
)

CMD_BEST_OF_ROWS = 0x1000


class BestOfRowsParam(ctypes.Structure):
    """Input block, 16 bytes: the float32 matrix and its sizes. Output block: (column, value) for each row."""

    _fields_ = (("x", ctypes.c_uint64), ("rows", ctypes.c_uint32), ("columns", ctypes.c_uint32))
    x: int
    rows: int
    columns: int


def best_of_rows(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """For each row, the column of its largest value, and that value, both float32."""
    if len(input) < ctypes.sizeof(BestOfRowsParam):
        DSP_ERR("best_of_rows: the input block has %d bytes.", len(input))
        return HB_DSP_INVALID_ARGUMENT
    param = BestOfRowsParam.from_buffer_copy(input)
    if not param.columns or len(output) < 8 * param.rows:
        DSP_ERR("best_of_rows: %d rows of %d columns into %d bytes.", param.rows, param.columns, len(output))
        return HB_DSP_INVALID_ARGUMENT
    x = hb_dsp_mem_map(param.x, 4 * param.rows * param.columns)
    if x is MAP_FAILED:
        return HB_ERR_MMAP_FAILED

    def tile(rows: Any, results: Any, _first: int) -> None:
        best = rows.argmax(1)
        results[:, 0], results[:, 1] = best, rows[np.arange(len(rows)), best]

    row, result = np.dtype((np.float32, param.columns)), np.dtype((np.float32, 2))
    ping_pong(tm, x, output[: 8 * param.rows], tile, in_dtype=row, out_dtype=result)
    hb_dsp_mem_unmap(x)
    return 0


def main() -> int:
    """Register and serve."""
    hb_dsp_set_log_level(HB_DSP_LOG_WARNING)
    hb_dsp_env_init()
    hb_dsp_init_global_tm(None, HB_DSP_DRAM0_POOL_SIZE, None, HB_DSP_DRAM1_POOL_SIZE)

    HB_DSP_REGISTER_NN_ALL()
    HB_DSP_REGISTER_CV_ALL()
    hb_dsp_register_fn(CMD_BEST_OF_ROWS, best_of_rows, 0)

    hb_dsp_start()
    return -1  # never reached
