"""An op returns without waiting for its copy back: the output keeps its old contents."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-left"


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    with tm.tile(len(src)) as tile:
        tile[:] = src
        idma_copy_desc(dst, tile, len(src))
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    with tm.tile(len(src)) as tile:
        tile[:] = src
        copy = idma_copy_desc(dst, tile, len(src))
        while idma_desc_done(copy) != 1:
            pass
    return 0


OPS = {0x1102: wrong_op, 0x1103: corrected_op}


def wrong() -> None:
    copy_by(0x1102)


def corrected() -> None:
    copy_by(0x1103)
