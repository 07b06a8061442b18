"""Rotate and shrink a picture around its center on the DSP.

python warp_affine.py [PICTURE [DIRECTORY]] writes warp_affine.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import cv2
import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture

DEGREES, SCALE = 20.0, 0.8


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the result."""
    picture = read_picture(input_file)
    height, width = picture.shape[:2]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvWarpAffineParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvWarpAffineParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.dst.dataPhyAddr = dst.phyAddr
    param.transformMatrix[:] = matrix(width, height).reshape(-1).tolist()
    param.interpolation = hb.HB_VP_INTER_LINEAR
    param.borderType = hb.HB_VP_BORDER_CONSTANT
    param.borderValue = 0

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_WARP_AFFINE
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, picture.shape).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/warp_affine.png", result)
    return result


def matrix(width: int, height: int) -> Any:
    """(2, 3): maps a point of the picture to the result."""
    return cv2.getRotationMatrix2D((width / 2, height / 2), DEGREES, SCALE)


if __name__ == "__main__":
    main(*sys.argv[1:])
