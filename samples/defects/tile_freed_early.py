"""An op frees a tile while a copy out of it is running: the next tile there may be written before it is read."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-busy"


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    tile = tm.allocate(len(src))
    tile[:] = src
    left = idma_copy_desc(dst, tile, len(src))
    tm.free(tile)
    wait(left)
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    tile = tm.allocate(len(src))
    tile[:] = src
    left = idma_copy_desc(dst, tile, len(src))
    wait(left)
    tm.free(tile)
    return 0


OPS = {0x1126: wrong_op, 0x1127: corrected_op}


def wrong() -> None:
    copy_by(0x1126)


def corrected() -> None:
    copy_by(0x1127)
