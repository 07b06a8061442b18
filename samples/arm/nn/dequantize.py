"""Convert the int8 output of a model back to float32 on the DSP.

python dequantize.py [DIRECTORY] writes dequantize.npy into DIRECTORY.

The result is in cached memory, which suits results that the CPU reads often. The DSP writes DDR, so the program drops
the CPU's stale copy with hbSysFlushMem before it reads.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import check

QUANTIZED = np.random.default_rng(0).integers(-128, 128, 50_000, np.int8)
SCALE, ZERO_POINT = 0.043, 7


def main(output_dir: str = ".") -> Any:
    """Returns QUANTIZED as float32."""
    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, QUANTIZED.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocCachedMem(dst, QUANTIZED.size * 4), "hbSysAllocCachedMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPDequantizeParam)), "hbSysAllocMem")
    src.array(np.int8)[:] = QUANTIZED

    block.view()[:] = bytes(block.memSize)  # new memory of a board keeps its old contents
    param = hb.hbDSPDequantizeParam.from_buffer(block.view())
    param.input = src.phyAddr  # the DSP cannot follow virAddr
    param.set_shape(QUANTIZED.shape)
    param.axis = hb.HB_DSP_QUANTI_PER_TENSOR
    param.quanti_type = hb.QUANTI_SCALE
    param.tensor_type = hb.HB_DNN_TENSOR_TYPE_S8
    param.scale, param.zero_point = SCALE, ZERO_POINT

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_DEQUANTIZE
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    check(hb.hbSysFlushMem(dst, hb.HB_SYS_MEM_CACHE_INVALIDATE), "hbSysFlushMem")
    result = dst.array(np.float32).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    np.save(f"{output_dir}/dequantize.npy", result)
    print(f"Wrote {output_dir}/dequantize.npy")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
