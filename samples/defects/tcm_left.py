"""An op returns without freeing its tile."""

from calls import copy_by

from dsp_server import XV_MEM_BANK_COLOR_0, TileManager, xvAllocateBuffer, xvFreeBuffer

NAMED = "tcm-left"


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    tile = xvAllocateBuffer(tm, len(src), XV_MEM_BANK_COLOR_0, 64)
    tile[:] = src
    dst[:] = tile
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    tile = xvAllocateBuffer(tm, len(src), XV_MEM_BANK_COLOR_0, 64)
    tile[:] = src
    dst[:] = tile
    xvFreeBuffer(tm, tile)
    return 0


OPS = {0x1100: wrong_op, 0x1101: corrected_op}


def wrong() -> None:
    copy_by(0x1100)


def corrected() -> None:
    copy_by(0x1101)
