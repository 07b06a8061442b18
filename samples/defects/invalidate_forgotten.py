"""The CPU reads a cached output without INVALIDATE: it sees the memory's contents from before the task."""

from calls import ECHO, blocks, call, free

import arm_client as hb

NAMED = "stale-read"


def wrong() -> None:
    src, dst = blocks(4096, 4096, cached=True)
    src.view()[:] = bytes([7]) * 4096
    hb.hbSysFlushMem(src, hb.HB_SYS_MEM_CACHE_CLEAN)
    call(ECHO, src, dst)
    print(sum(dst.view()))
    free(src, dst)


def corrected() -> None:
    src, dst = blocks(4096, 4096, cached=True)
    src.view()[:] = bytes([7]) * 4096
    hb.hbSysFlushMem(src, hb.HB_SYS_MEM_CACHE_CLEAN)
    call(ECHO, src, dst)
    hb.hbSysFlushMem(dst, hb.HB_SYS_MEM_CACHE_INVALIDATE)
    print(sum(dst.view()))
    free(src, dst)
