"""An op ignores what a copy returned, and waits for its error code."""

from calls import copy_by

from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-handle"


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    copy = idma_copy_desc(dst, src, 2 * len(src))
    while idma_desc_done(copy) != 1:
        pass
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    del tm
    copy = idma_copy_desc(dst, src, len(src))
    if copy < 0:
        return copy
    while idma_desc_done(copy) != 1:
        pass
    return 0


OPS = {0x1104: wrong_op, 0x1105: corrected_op}


def wrong() -> None:
    copy_by(0x1104)


def corrected() -> None:
    copy_by(0x1105)
