"""A DSP image in the shape of the vendor's template: every packaged op, and a custom op on pixels, at 0x1800.

Start a board with it; `hbrt ops` lists the packaged ops and `hb_dsp_invert`:

    hbrt start --image cv_image.py

The op takes the image descriptor of the packaged CV ops, so an ARM program fills the same structure for it: src at 0,
dst at 56. It writes 255 - src, row by row through TCM: each row comes in by iDMA, is inverted in one bank, and goes out
again. It accepts Y of U8, RGB, BGR and NV12, and enforces the rules of the packaged ops. Only `main`'s register calls
and the op are meant to be edited.
"""

from __future__ import annotations

import ctypes

import numpy as np

from dsp_server import (
    HB_DSP_DRAM0_POOL_SIZE,
    HB_DSP_DRAM1_POOL_SIZE,
    HB_DSP_LOG_WARNING,
    HB_DSP_REGISTER_CV_ALL,
    HB_DSP_REGISTER_NN_ALL,
    HB_ERR_MMAP_FAILED,
    MAP_FAILED,
    XV_MEM_BANK_COLOR_0,
    ParameterError,
    TileManager,
    hb_dsp_env_init,
    hb_dsp_init_global_tm,
    hb_dsp_mem_map,
    hb_dsp_mem_unmap,
    hb_dsp_register_fn,
    hb_dsp_set_log_level,
    hb_dsp_start,
    idma_copy_desc,
    idma_desc_done,
    xvAllocateBuffer,
    xvFreeBuffer,
)
from hbrt.cv.image import Plane
from hbrt.cv.rules import COLOR_NV12, need_apart, same_kind, same_size
from hbrt.cv_types import CvParam
from hbrt.status import HB_DSP_OUT_OF_TCM

INVERT_CMD = 0x1800


def hb_dsp_invert(input: memoryview, output: memoryview, tm: TileManager) -> int:
    """255 - src for every byte of an image; dst has its format and size, and may be src itself."""
    if len(input) < ctypes.sizeof(CvParam):
        raise ParameterError(f"The input block has {len(input)} bytes, not {ctypes.sizeof(CvParam)}, for src and dst.")
    param = CvParam.from_buffer_copy(input)
    same_kind(param, COLOR_NV12)  # each a rejection with a message, like ParameterError
    same_size(param)
    need_apart(param, in_place=True)
    for src_plane, dst_plane in zip(param.src.planes(), param.dst.planes(), strict=True):
        status = invert_plane(src_plane, dst_plane, tm)
        if status:
            return status
    return 0


def invert_plane(src_plane: Plane, dst_plane: Plane, tm: TileManager) -> int:
    """255 - src for every byte of one plane; 0, or a status."""
    src = hb_dsp_mem_map(src_plane.phy_addr, src_plane.size_bytes)
    if src is MAP_FAILED:
        return HB_ERR_MMAP_FAILED
    dst = hb_dsp_mem_map(dst_plane.phy_addr, dst_plane.size_bytes)
    if dst is MAP_FAILED:
        hb_dsp_mem_unmap(src)
        return HB_ERR_MMAP_FAILED
    status = invert_rows(src, dst, src_plane, dst_plane, tm)
    hb_dsp_mem_unmap(src)
    hb_dsp_mem_unmap(dst)
    return status


def invert_rows(src: memoryview, dst: memoryview, src_plane: Plane, dst_plane: Plane, tm: TileManager) -> int:
    """255 - src row by row, through TCM; 0, or a status."""
    row_bytes = src_plane.row_bytes
    row = xvAllocateBuffer(tm, row_bytes, XV_MEM_BANK_COLOR_0, 64)
    if not row:
        return HB_DSP_OUT_OF_TCM
    pixels = np.frombuffer(row, np.uint8)[:row_bytes]
    for y in range(src_plane.rows):
        come, go = y * src_plane.stride, y * dst_plane.stride
        wait_for(idma_copy_desc(row, src[come : come + row_bytes], row_bytes, 0))
        np.subtract(255, pixels, out=pixels)
        wait_for(idma_copy_desc(dst[go : go + row_bytes], row, row_bytes, 0))
    xvFreeBuffer(tm, row)
    return 0


def wait_for(handle: int) -> None:
    """Polls until a descriptor is done; an op with two buffers would compute meanwhile, as the softmax sample does."""
    while not idma_desc_done(handle):
        pass


def main() -> int:
    """Register and serve."""
    hb_dsp_set_log_level(HB_DSP_LOG_WARNING)
    hb_dsp_env_init()
    hb_dsp_init_global_tm(None, HB_DSP_DRAM0_POOL_SIZE, None, HB_DSP_DRAM1_POOL_SIZE)

    HB_DSP_REGISTER_NN_ALL()
    HB_DSP_REGISTER_CV_ALL()  # OpenCV loads when a core runs its first CV op
    hb_dsp_register_fn(INVERT_CMD, hb_dsp_invert, 0)

    hb_dsp_start()
    return -1  # never reached
