"""The CPU fills a cached block but cleans only the first half: by iDMA, an op reads the old contents of the rest."""

from calls import blocks, call, free

import arm_client as hb
from dsp_server import TileManager, idma_copy_desc, idma_desc_done

NAMED = "unclean-use"
SIZE = 4096
BY_TILE = 0x1135


def by_tile(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    """Copy the input through a tile."""
    with tm.tile(len(src)) as tile:
        arrived = idma_copy_desc(tile, src, len(src))
        while idma_desc_done(arrived) != 1:
            pass
        dst[:] = tile
    return 0


OPS = {BY_TILE: by_tile}


def fill_and_clean(size_bytes: int) -> None:
    src, dst = blocks(SIZE, SIZE, cached=True)
    src.view()[:] = bytes([7]) * SIZE
    part = hb.hbSysMem(phyAddr=src.phyAddr, virAddr=src.virAddr, memSize=size_bytes)
    hb.hbSysFlushMem(part, hb.HB_SYS_MEM_CACHE_CLEAN)
    call(BY_TILE, src, dst)
    hb.hbSysFlushMem(dst, hb.HB_SYS_MEM_CACHE_INVALIDATE)
    free(src, dst)


def wrong() -> None:
    fill_and_clean(SIZE // 2)


def corrected() -> None:
    fill_and_clean(SIZE)
