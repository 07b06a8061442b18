"""An urgent task is pinned to a core that is busy with a long task of lower priority, while the other core is free."""

import time

from calls import MAX_MS, blocks, free

import arm_client as hb
from arm_client.sample import check

NAMED = "priority-inversion"
HOLD, NOTHING = 0x10FC, 0x10FD


def hold(input: memoryview, output: memoryview, tm: object) -> int:
    """Report the start, and keep the core busy for a while."""
    del input, tm
    output[0] = 1
    time.sleep(0.8)
    return 0


def nothing(input: memoryview, output: memoryview, tm: object) -> int:
    """Do nothing."""
    del input, output, tm
    return 0


OPS = {HOLD: hold, NOTHING: nothing}


def wrong() -> None:
    long_and_urgent(core=1)


def corrected() -> None:
    long_and_urgent(core=0)  # any


def long_and_urgent(core: int) -> None:
    """A long task on core 0, which is mask 1; then an urgent one."""
    (begun,) = blocks(64)
    begun.view()[0] = 0  # a new block keeps its old contents
    long = submit(HOLD, priority=1, core=1, output=begun)
    while not begun.view()[0]:
        time.sleep(0.001)
    urgent = submit(NOTHING, priority=200, core=core)
    for task in (urgent, long):
        check(hb.hbDSPWaitTaskDone(task, MAX_MS), "hbDSPWaitTaskDone")
        check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
    free(begun)


def submit(cmd: int, priority: int, core: int, output: hb.hbSysMem | None = None) -> hb.hbDSPTask_t:
    """Queue a task."""
    ctrl, task = hb.hbDSPRpcCtrlParam(rpcCmd=cmd, priority=priority, dspCoreId=core), hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, None, output, ctrl), "hbDSPRpc")
    return task
