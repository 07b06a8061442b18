"""An early return leaves a block allocated."""

import arm_client as hb
from arm_client.sample import check

NAMED = "leak"


def wrong() -> None:
    src, dst = hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, 4096), "hbSysAllocMem")
    if hb.hbSysAllocMem(dst, 1 << 40) != 0:
        return
    hb.hbSysFreeMem(dst)
    hb.hbSysFreeMem(src)


def corrected() -> None:
    src, dst = hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, 4096), "hbSysAllocMem")
    if hb.hbSysAllocMem(dst, 1 << 40) != 0:
        hb.hbSysFreeMem(src)
        return
    hb.hbSysFreeMem(dst)
    hb.hbSysFreeMem(src)
