"""A program ignores the status of a failed allocation, and writes to the block's address."""

import ctypes

import arm_client as hb
from arm_client.sample import check

NAMED = "null-pointer"
FRAME = bytes(4096)


def wrong() -> None:
    frame = hb.hbSysMem()
    hb.hbSysAllocMem(frame, 0)
    ctypes.memmove(frame.virAddr or 0, FRAME, len(FRAME))


def corrected() -> None:
    frame = hb.hbSysMem()
    check(hb.hbSysAllocMem(frame, len(FRAME)), "hbSysAllocMem")
    ctypes.memmove(frame.virAddr, FRAME, len(FRAME))
    hb.hbSysFreeMem(frame)
