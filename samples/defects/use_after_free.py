"""A block is freed inside the loop over rows and used in the next iteration."""

import ctypes

import arm_client as hb
from arm_client.sample import check

NAMED = "use-after-free"
ROW = bytes(4096)


def wrong() -> None:
    row = hb.hbSysMem()
    check(hb.hbSysAllocMem(row, len(ROW)), "hbSysAllocMem")
    for _ in range(2):
        ctypes.memmove(row.virAddr, ROW, len(ROW))
        hb.hbSysFreeMem(row)


def corrected() -> None:
    row = hb.hbSysMem()
    check(hb.hbSysAllocMem(row, len(ROW)), "hbSysAllocMem")
    for _ in range(2):
        ctypes.memmove(row.virAddr, ROW, len(ROW))
    hb.hbSysFreeMem(row)
