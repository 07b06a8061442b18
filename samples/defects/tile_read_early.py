"""An op computes on a tile before the copy into it is done: it uses the tile's old contents."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-early"


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    with tm.tile(len(src)) as tile:
        arrived = idma_copy_desc(tile, src, len(src))
        dst[:] = tile
        wait(arrived)
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    with tm.tile(len(src)) as tile:
        arrived = idma_copy_desc(tile, src, len(src))
        wait(arrived)
        dst[:] = tile
    return 0


OPS = {0x1120: wrong_op, 0x1121: corrected_op}


def wrong() -> None:
    copy_by(0x1120)


def corrected() -> None:
    copy_by(0x1121)
