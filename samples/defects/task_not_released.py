"""A task is waited for but never released: its slot and handle stay in use."""

import arm_client as hb
from arm_client.sample import check

NAMED = "leak"


def wrong() -> None:
    task = ping()
    check(hb.hbDSPWaitTaskDone(task, 60_000), "hbDSPWaitTaskDone")


def corrected() -> None:
    task = ping()
    check(hb.hbDSPWaitTaskDone(task, 60_000), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")


def ping() -> hb.hbDSPTask_t:
    """A running task."""
    ctrl, task = hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_PING
    check(hb.hbDSPRpc(task, None, None, ctrl), "hbDSPRpc")
    return task
