"""The command is never set: the initial value in the structure lists the registered ops into the output."""

from calls import ECHO, MAX_MS, blocks, free

import arm_client as hb
from arm_client.sample import check

SAYS = "rpcCmd is HB_DSP_RPC_CMD_BUTT"


def wrong() -> None:
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    echo(ctrl)


def corrected() -> None:
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = ECHO
    echo(ctrl)


def echo(ctrl: hb.hbDSPRpcCtrlParam) -> None:
    """One call."""
    src, dst = blocks(4096, 4096)
    src.view()[:] = bytes(4096)
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, src, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, MAX_MS), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
    free(src, dst)
