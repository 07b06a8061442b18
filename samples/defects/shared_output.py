"""Two concurrent tasks write one block: the result depends on their timing."""

from typing import Any

from calls import ECHO, blocks, free

import arm_client as hb
from arm_client.sample import check

NAMED = "shared-block"


def wrong() -> None:
    src, dst = blocks(4096, 4096)
    src.view()[:] = bytes(4096)
    both(src, dst, dst)
    free(src, dst)


def corrected() -> None:
    src, dst, other = blocks(4096, 4096, 4096)
    src.view()[:] = bytes(4096)
    both(src, dst, other)
    free(src, dst, other)


def both(src: Any, first: Any, second: Any) -> None:
    """Two concurrent tasks."""
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = ECHO
    tasks = [hb.hbDSPTask_t(), hb.hbDSPTask_t()]
    for task, dst in zip(tasks, (first, second), strict=True):
        check(hb.hbDSPRpc(task, src, dst, ctrl), "hbDSPRpc")
    for task in tasks:
        check(hb.hbDSPWaitTaskDone(task, 60_000), "hbDSPWaitTaskDone")
        check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
