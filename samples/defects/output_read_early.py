"""An op sums its output in DDR before the copy back is done: the sum is that of the old contents."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-early"


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    with tm.tile(len(src)) as tile:
        tile[:] = src
        left = idma_copy_desc(dst, tile, len(src))
        print(sum(dst))
        wait(left)
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    with tm.tile(len(src)) as tile:
        tile[:] = src
        left = idma_copy_desc(dst, tile, len(src))
        wait(left)
        print(sum(dst))
    return 0


OPS = {0x1122: wrong_op, 0x1123: corrected_op}


def wrong() -> None:
    copy_by(0x1122)


def corrected() -> None:
    copy_by(0x1123)
