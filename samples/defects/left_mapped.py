"""An error path of an op returns with its input mapped."""

import struct

from calls import blocks, call, free

from dsp_server import TileManager, hb_dsp_mem_map, hb_dsp_mem_unmap

NAMED = "left-mapped"
PARAM = struct.Struct("<QII")  # address, bytes, wanted


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    phy_addr, size_bytes, wanted = PARAM.unpack_from(src)
    data = hb_dsp_mem_map(phy_addr, size_bytes)
    if size_bytes < wanted:
        return -1
    dst[:wanted] = data[:wanted]
    hb_dsp_mem_unmap(data)
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    phy_addr, size_bytes, wanted = PARAM.unpack_from(src)
    if size_bytes < wanted:
        return -1
    data = hb_dsp_mem_map(phy_addr, size_bytes)
    dst[:wanted] = data[:wanted]
    hb_dsp_mem_unmap(data)
    return 0


OPS = {0x1108: wrong_op, 0x1109: corrected_op}


def wrong() -> None:
    ask_for_too_much(0x1108)


def corrected() -> None:
    ask_for_too_much(0x1109)


def ask_for_too_much(cmd: int) -> None:
    """A call that the op rejects."""
    data, param, dst = blocks(64, PARAM.size, 128)
    data.view()[:] = bytes(64)
    param.view()[:] = PARAM.pack(data.phyAddr, 64, 128)
    call(cmd, param, dst)
    free(data, param, dst)
