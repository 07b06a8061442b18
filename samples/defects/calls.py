"""Shared by the defects: blocks, a complete call, and an op that copies."""

from typing import Any

import arm_client as hb
from arm_client.sample import check, problem

MAX_MS = 60_000
ECHO = 0x10FF


def echo(src: memoryview, dst: memoryview, tm: object) -> int:
    """Copy the input."""
    del tm
    dst[:] = src
    return 0


OPS = {ECHO: echo}


def call(cmd: int, src: Any, dst: Any) -> int:
    """Submit, wait, release; returns what the wait returned."""
    ctrl, task = hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = cmd
    check(hb.hbDSPRpc(task, src, dst, ctrl), "hbDSPRpc")
    status = hb.hbDSPWaitTaskDone(task, MAX_MS)
    if status != 0:
        print(problem(status, "hbDSPWaitTaskDone"))
    hb.hbDSPReleaseTask(task)
    return status


def blocks(*sizes: int, cached: bool = False) -> list[Any]:
    """Allocate blocks of these sizes in bytes."""
    mems = [hb.hbSysMem() for _ in sizes]
    alloc = hb.hbSysAllocCachedMem if cached else hb.hbSysAllocMem
    for mem, size_bytes in zip(mems, sizes, strict=True):
        check(alloc(mem, size_bytes), "hbSysAllocMem")
    return mems


def free(*mems: Any) -> None:
    """Free blocks."""
    for mem in mems:
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")


def copy_by(cmd: int) -> None:
    """Copy a block of ones with a command."""
    src, dst = blocks(4096, 4096)
    src.view()[:] = bytes([1]) * 4096
    call(cmd, src, dst)
    free(src, dst)
