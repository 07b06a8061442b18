"""Input and output share a tile, and the next input copy starts while the output copy may still read it."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-busy"


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    half = len(src) // 2
    with tm.tile(half) as tile:
        wait(idma_copy_desc(tile, src, half))
        left = idma_copy_desc(dst, tile, half)
        arrived = idma_copy_desc(tile, src[half:], half)
        wait(arrived)
        wait(left)
        wait(idma_copy_desc(dst[half:], tile, half))
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    half = len(src) // 2
    with tm.tile(half) as tile:
        wait(idma_copy_desc(tile, src, half))
        left = idma_copy_desc(dst, tile, half)
        wait(left)
        arrived = idma_copy_desc(tile, src[half:], half)
        wait(arrived)
        wait(idma_copy_desc(dst[half:], tile, half))
    return 0


OPS = {0x1124: wrong_op, 0x1125: corrected_op}


def wrong() -> None:
    copy_by(0x1124)


def corrected() -> None:
    copy_by(0x1125)
