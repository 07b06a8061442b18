"""A DSP image in the shape of the vendor's template: every packaged op, and its own softmax at 0x400.

Start a board with it, then call softmax as before; `hbrt ops` shows where 0x400 now comes from:

    hbrt start --image nn_image.py

The op works like the softmax of the DSP development manual: three passes over the row, each tile brought into TCM by
iDMA while the previous one is processed. Only `main`'s register calls and the op are meant to be edited.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server import (
    HB_DSP_DRAM0_POOL_SIZE,
    HB_DSP_DRAM1_POOL_SIZE,
    HB_DSP_LOG_WARNING,
    HB_DSP_REGISTER_NN_ALL,
    HB_ERR_MMAP_FAILED,
    MAP_FAILED,
    TILE_SIZE,
    XV_MEM_BANK_COLOR_0,
    XV_MEM_BANK_COLOR_1,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_init_global_tm,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_ping_pong_frame,
    hb_dsp_register_fn,
    hb_dsp_set_log_level,
    hb_dsp_start,
    xos_get_clock_freq,
    xos_set_clock_freq,
    xos_start_system_timer,
    xvAllocateBuffer,
    xvFreeBuffer,
)
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.status import HB_DSP_OUT_OF_TCM

DSP_FREQ = 648_000_000

Floats = NDArray[np.float32]


def tile_max(_dst: Floats, src: Floats, _n: int, largest: list[Any], _: None) -> None:
    """Pass 1 only reads: the largest value so far."""
    largest[0] = np.maximum(largest[0], src.max())


def tile_exp_sum(dst: Floats, src: Floats, _n: int, total: list[float], largest: float) -> None:
    """Pass 2 writes exp(x - max) and adds it up, in float64, so a long row does not lose precision."""
    dst[:] = np.exp(src.astype(np.float64) - largest)
    total[0] += float(dst.sum(dtype=np.float64))


def tile_mul(dst: Floats, src: Floats, _n: int, _: None, factor: float) -> None:
    """Pass 3: multiplying by 1 / sum is cheaper than dividing."""
    np.multiply(src, np.float32(factor), out=dst)


def hb_dsp_softmax(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """Softmax of the row that an hbDSPSoftmaxParam points to, into the output block."""
    param = hbDSPSoftmaxParam.from_buffer_copy(input)
    length = param.data_size // 4
    if length <= 0:
        return 0
    src = hb_dsp_mem_map(param.input, param.data_size)
    if src is MAP_FAILED:
        return HB_ERR_MMAP_FAILED

    # Ping in one bank, pong in the other; the results of a tile replace its input.
    ping = xvAllocateBuffer(tm, TILE_SIZE, XV_MEM_BANK_COLOR_0, 64)
    pong = xvAllocateBuffer(tm, TILE_SIZE, XV_MEM_BANK_COLOR_1, 64)
    if not ping or not pong:
        for tile in (ping, pong):
            if tile:
                xvFreeBuffer(tm, tile)
        hb_dsp_mem_unmap(src)
        return HB_DSP_OUT_OF_TCM
    tiles = [ping, pong]

    largest = [np.float32(-np.inf)]
    total = [0.0]
    status = hb_dsp_ping_pong_frame(None, src, tiles, tiles, length, tile_max, largest, None, False)
    status = status or hb_dsp_ping_pong_frame(output, src, tiles, tiles, length, tile_exp_sum, total, largest[0])
    status = status or hb_dsp_ping_pong_frame(output, output, tiles, tiles, length, tile_mul, None, 1.0 / total[0])

    xvFreeBuffer(tm, ping)
    xvFreeBuffer(tm, pong)
    hb_dsp_mem_unmap(src)
    return status


def main() -> int:
    """Register and serve."""
    xos_set_clock_freq(DSP_FREQ)
    xos_start_system_timer(0, xos_get_clock_freq() // 100)  # a tick of 10 ms
    hb_dsp_set_log_level(HB_DSP_LOG_WARNING)
    hb_dsp_env_init()
    hb_dsp_init_global_tm(None, HB_DSP_DRAM0_POOL_SIZE, None, HB_DSP_DRAM1_POOL_SIZE)

    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(0x400, hb_dsp_softmax, 0)  # the latest registration wins

    hb_dsp_start()
    return -1  # never reached
