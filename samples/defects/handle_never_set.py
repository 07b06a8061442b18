"""An op waits for a handle before any copy has set it."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-handle"


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    copies = [0, 0]
    while idma_desc_done(copies[0]) != 1:
        pass
    copies[0] = idma_copy_desc(dst, src, len(src))
    while idma_desc_done(copies[0]) != 1:
        pass
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    copy = idma_copy_desc(dst, src, len(src))
    while idma_desc_done(copy) != 1:
        pass
    return 0


OPS = {0x1106: wrong_op, 0x1107: corrected_op}


def wrong() -> None:
    copy_by(0x1106)


def corrected() -> None:
    copy_by(0x1107)
