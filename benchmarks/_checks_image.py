"""Image of benchmarks.checks: the packaged ops, and an op that copies each tile by hand."""

from __future__ import annotations

import numpy as np

from dsp_server import (
    HB_DSP_REGISTER_NN_ALL,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_register_fn,
    hb_dsp_start,
    idma_copy_desc,
    idma_desc_done,
)

DOUBLE_CMD = 0x1001
TILE_BYTES = 32 * 1024


def double(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """Double float32: a copy in, a computation and a copy out for each tile."""
    with tm.tile(TILE_BYTES) as tile:
        values = np.frombuffer(tile, np.float32)
        for at in range(0, len(src), TILE_BYTES):
            size_bytes = min(TILE_BYTES, len(src) - at)
            arrived = idma_copy_desc(tile, src[at:], size_bytes)
            while idma_desc_done(arrived) != 1:
                pass
            np.add(values, values, out=values)
            left = idma_copy_desc(dst[at:], tile, size_bytes)
            while idma_desc_done(left) != 1:
                pass
        del values
    return 0


def main() -> None:
    """Register and serve."""
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(DOUBLE_CMD, double)
    hb_dsp_start()
