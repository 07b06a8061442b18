"""The CPU writes cached input and does not clean it: the DSP reads the memory's old contents."""

from calls import ECHO, blocks, call, free

import arm_client as hb

NAMED = "unclean-use"


def wrong() -> None:
    src, dst = blocks(4096, 4096, cached=True)
    src.view()[:] = bytes([7]) * 4096
    call(ECHO, src, dst)
    hb.hbSysFlushMem(dst, hb.HB_SYS_MEM_CACHE_INVALIDATE)
    free(src, dst)


def corrected() -> None:
    src, dst = blocks(4096, 4096, cached=True)
    src.view()[:] = bytes([7]) * 4096
    hb.hbSysFlushMem(src, hb.HB_SYS_MEM_CACHE_CLEAN)
    call(ECHO, src, dst)
    hb.hbSysFlushMem(dst, hb.HB_SYS_MEM_CACHE_INVALIDATE)
    free(src, dst)
