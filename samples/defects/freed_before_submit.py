"""A task is given a block that has already been freed."""

from calls import ECHO, blocks, free

import arm_client as hb
from arm_client.sample import check

NAMED = "use-after-free"


def wrong() -> None:
    src, dst = blocks(4096, 4096)
    src.view()[:] = bytes(4096)
    free(src)
    submit(src, dst)
    free(dst)


def corrected() -> None:
    src, dst = blocks(4096, 4096)
    src.view()[:] = bytes(4096)
    submit(src, dst)
    free(src, dst)


def submit(src: hb.hbSysMem, dst: hb.hbSysMem) -> None:
    """A call that checks errors, as it should."""
    ctrl, task = hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = ECHO
    if hb.hbDSPRpc(task, src, dst, ctrl) != 0:
        print(hb.last_error())
        return
    check(hb.hbDSPWaitTaskDone(task, 60_000), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
