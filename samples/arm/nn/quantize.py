"""Quantize a float32 image to int8 on the DSP, with a scale and a zero point for each channel.

python quantize.py [DIRECTORY] writes quantize.npy into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import check

IMAGE = np.random.default_rng(0).normal(0.0, 1.0, (1, 3, 224, 224)).astype(np.float32)  # NCHW
CHANNEL_AXIS = 1
SCALES = np.array([0.018, 0.0175, 0.017], np.float32)
ZERO_POINTS = np.array([-10, 0, 12], np.int32)


def main(output_dir: str = ".") -> Any:
    """Returns IMAGE as int8."""
    src, scales, zero_points, dst, block = (hb.hbSysMem() for _ in range(5))
    check(hb.hbSysAllocMem(src, IMAGE.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(scales, SCALES.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(zero_points, ZERO_POINTS.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, IMAGE.size), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPQuantizeParam)), "hbSysAllocMem")
    src.array(np.float32, IMAGE.shape)[:] = IMAGE
    scales.array(np.float32)[:] = SCALES
    zero_points.array(np.int32)[:] = ZERO_POINTS

    block.view()[:] = bytes(block.memSize)  # new memory of a board keeps its old contents
    param = hb.hbDSPQuantizeParam.from_buffer(block.view())
    param.input = src.phyAddr  # the DSP cannot follow virAddr
    param.set_shape(IMAGE.shape)
    param.axis = CHANNEL_AXIS
    param.quanti_type = hb.QUANTI_SCALE
    param.tensor_type = hb.HB_DNN_TENSOR_TYPE_S8
    param.scale_data = scales.phyAddr
    param.zero_point_data = zero_points.phyAddr

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_QUANTIZE
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.int8, IMAGE.shape).copy()
    for mem in (src, scales, zero_points, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    np.save(f"{output_dir}/quantize.npy", result)
    print(f"Wrote {output_dir}/quantize.npy")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
