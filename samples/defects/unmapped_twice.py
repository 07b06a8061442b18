"""An op unmaps twice: what it passes the second time is no longer a mapping."""

import struct

from calls import blocks, call, free

from dsp_server import TileManager, hb_dsp_mem_map, hb_dsp_mem_unmap

NAMED = "not-mapped"
PARAM = struct.Struct("<QI")


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    corrected_op(src, dst, tm)
    return hb_dsp_mem_unmap(PARAM.unpack_from(src)[0])


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    phy_addr, size_bytes = PARAM.unpack_from(src)
    data = hb_dsp_mem_map(phy_addr, size_bytes)
    dst[:size_bytes] = data
    return hb_dsp_mem_unmap(data)


OPS = {0x110A: wrong_op, 0x110B: corrected_op}


def wrong() -> None:
    copy_mapped(0x110A)


def corrected() -> None:
    copy_mapped(0x110B)


def copy_mapped(cmd: int) -> None:
    """Copy a block whose address is in a structure."""
    data, param, dst = blocks(64, PARAM.size, 64)
    data.view()[:] = bytes(64)
    param.view()[:] = PARAM.pack(data.phyAddr, 64)
    call(cmd, param, dst)
    free(data, param, dst)
