"""Compute the derivative of a picture along its rows on the DSP.

python sobel.py [PICTURE [DIRECTORY]] writes sobel.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the slopes, int16."""
    picture = read_picture(input_file, is_gray=True)
    height, width = picture.shape[:2]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, height * width * 2), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvSobelParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvSobelParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_S16C1, width, height, width * 2)
    param.dst.dataPhyAddr = dst.phyAddr
    param.scale, param.delta = 1.0, 0.0
    param.dx, param.dy = 1, 0
    param.kernelSize = 3
    param.borderType = hb.HB_VP_BORDER_REPLICATE

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_SOBEL
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.int16, (height, width)).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/sobel.png", np.clip(result / 4 + 128, 0, 255).astype(np.uint8))
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
