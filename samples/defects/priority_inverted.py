"""An urgent task is pinned to a core that is busy with a long one of a lower priority, while the other core is free."""

import time

from calls import MOST_MS

import arm_client as hb
from arm_client.sample import check

NAMED = "priority-inversion"
HOLD, NOTHING = 0x10FC, 0x10FD


def hold(input: memoryview, output: memoryview, tm: object) -> int:
    """Keep the core for a while."""
    del input, output, tm
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
    long = submit(HOLD, priority=1, core=1)
    urgent = submit(NOTHING, priority=200, core=core)
    for task in (urgent, long):
        check(hb.hbDSPWaitTaskDone(task, MOST_MS), "hbDSPWaitTaskDone")
        check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")


def submit(cmd: int, priority: int, core: int) -> hb.hbDSPTask_t:
    """Queue a task without blocks."""
    ctrl, task = hb.hbDSPRpcCtrlParam(rpcCmd=cmd, priority=priority, dspCoreId=core), hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, None, None, ctrl), "hbDSPRpc")
    return task
