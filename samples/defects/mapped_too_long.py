"""An op maps more bytes than there are in the block named by its structure."""

import struct

from calls import blocks, call, free

from dsp_server import MAP_FAILED, hb_dsp_mem_map, hb_dsp_mem_unmap
from hbrt.status import HB_ERR_MMAP_FAILED

NAMED = "out-of-block"
ALIGNED = 8192


def copy_mapped(params: memoryview, dst: memoryview, tm: object) -> int:
    """Copy from the memory named by the structure."""
    del tm
    address, size_bytes = struct.unpack_from("<QQ", params)
    mapped = hb_dsp_mem_map(address, size_bytes)
    if mapped is MAP_FAILED:
        return HB_ERR_MMAP_FAILED
    dst[:] = mapped[: len(dst)]
    return hb_dsp_mem_unmap(mapped)


OPS = {0x1142: copy_mapped}


def wrong() -> None:
    copy(ALIGNED)


def corrected() -> None:
    copy(5000)


def copy(size_bytes: int) -> None:
    """Copy a block of 5000 bytes, with a size in the structure."""
    params, src, dst = blocks(16, 5000, 5000)
    src.view()[:] = bytes(5000)
    params.view()[:] = struct.pack("<QQ", src.phyAddr, size_bytes)
    call(0x1142, params, dst)
    free(params, src, dst)
