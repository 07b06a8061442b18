"""Widen the bright parts of a picture on the DSP.

python dilate.py [PICTURE [DIRECTORY]] writes dilate.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture

MASK = np.ones((5, 5), np.uint8)


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the result."""
    picture = read_picture(input_file, is_gray=True)
    height, width = picture.shape[:2]

    src, dst, block, kernel = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvDilateParam)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(kernel, MASK.nbytes), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture
    kernel.array(np.uint8, MASK.shape)[:] = MASK

    param = hb.hbDSPCvDilateParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.dst.dataPhyAddr = dst.phyAddr
    rows, columns = MASK.shape
    param.kernel = hb.hbVPFilterKernel(columns, rows, hb.HB_VP_IMAGE_TYPE_U8C1, kernel.phyAddr)
    param.borderType = hb.HB_VP_BORDER_CONSTANT

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_DILATE
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, picture.shape).copy()
    for mem in (src, dst, block, kernel):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/dilate.png", result)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
