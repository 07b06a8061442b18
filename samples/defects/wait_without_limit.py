"""A program waits forever: if a core hangs, it waits until the watchdog ends the op, and a board has none."""

import arm_client as hb
from arm_client.sample import check

NAMED = "endless-wait"


def wrong() -> None:
    ping(0)


def corrected() -> None:
    ping(60_000)


def ping(timeout_ms: int) -> None:
    """A task that does nothing."""
    ctrl, task = hb.hbDSPRpcCtrlParam(rpcCmd=hb.HB_DSP_RPC_CMD_PING), hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, None, None, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, timeout_ms), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
