"""A copy writes past the end of its block: a size was given in elements instead of bytes."""

import ctypes

import numpy as np

import arm_client as hb
from arm_client.sample import check

NAMED = "overrun"
VALUES = np.ones(100, np.float32)


def wrong() -> None:
    mem = hb.hbSysMem()
    check(hb.hbSysAllocMem(mem, VALUES.size), "hbSysAllocMem")
    ctypes.memmove(mem.virAddr, VALUES.ctypes.data, VALUES.nbytes)
    hb.hbSysFreeMem(mem)


def corrected() -> None:
    mem = hb.hbSysMem()
    check(hb.hbSysAllocMem(mem, VALUES.nbytes), "hbSysAllocMem")
    ctypes.memmove(mem.virAddr, VALUES.ctypes.data, VALUES.nbytes)
    hb.hbSysFreeMem(mem)
