"""A tile has the alignment of its elements: the guide aligns all tiles and arrays in TCM to 64 bytes."""

from calls import copy_by

from dsp_server import XV_MEM_BANK_COLOR_0, TileManager, idma_copy_desc, idma_desc_done

NAMED = "tile-alignment"


def copy(src: memoryview, dst: memoryview, tm: TileManager, align: int) -> int:
    """Copy the input through a tile."""
    with tm.tile(len(src), XV_MEM_BANK_COLOR_0, align) as tile:
        for to, source in ((tile, src), (dst, tile)):
            handle = idma_copy_desc(to, source, len(src))
            while idma_desc_done(handle) != 1:
                pass
    return 0


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    return copy(src, dst, tm, 4)


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    return copy(src, dst, tm, 64)


OPS = {0x1188: wrong_op, 0x1189: corrected_op}


def wrong() -> None:
    copy_by(0x1188)


def corrected() -> None:
    copy_by(0x1189)
