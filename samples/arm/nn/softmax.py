"""Softmax of the rows of a matrix on the DSP, one remote call per row.

python softmax.py [DIRECTORY] writes softmax.npy into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import check

LOGITS = np.random.default_rng(0).normal(0.0, 4.0, (4, 1000)).astype(np.float32)


def main(output_dir: str = ".") -> Any:
    """Returns the softmax of each row of LOGITS."""
    row_bytes = LOGITS[0].nbytes
    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, row_bytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, row_bytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPSoftmaxParam)), "hbSysAllocMem")

    param = hb.hbDSPSoftmaxParam.from_buffer(block.view())
    param.data_size = row_bytes
    param.input = src.phyAddr  # the DSP cannot follow virAddr

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_SOFTMAX

    result = np.empty_like(LOGITS)
    for row, logits in enumerate(LOGITS):
        src.array(np.float32)[:] = logits
        task = hb.hbDSPTask_t()
        check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
        check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
        check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
        result[row] = dst.array(np.float32)

    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    np.save(f"{output_dir}/softmax.npy", result)
    print(f"Wrote {output_dir}/softmax.npy")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
