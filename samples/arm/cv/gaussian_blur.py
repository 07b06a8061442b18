"""Blur a picture on the DSP.

python gaussian_blur.py [PICTURE [DIRECTORY]] writes gaussian_blur.png into DIRECTORY.
"""

import ctypes
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import arm_client as hb

PICTURE = Path(__file__).resolve().parent / "data" / "input.png"
KERNEL_SIZE = 5


def main(input_file: str = str(PICTURE), output_dir: str = ".") -> Any:
    """Returns the result."""
    picture = cv2.imread(input_file, cv2.IMREAD_GRAYSCALE)
    if picture is None:
        sys.exit(f"{input_file} is not a picture that OpenCV can read.")
    height, width = picture.shape[:2]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvGaussianBlurParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvGaussianBlurParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.dst.dataPhyAddr = dst.phyAddr
    param.kernelSize = KERNEL_SIZE
    param.borderType = hb.HB_VP_BORDER_REPLICATE

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, picture.shape).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    file = f"{output_dir}/gaussian_blur.png"
    if not cv2.imwrite(file, result):
        sys.exit(f"{file} could not be written.")
    print("Wrote", file)
    return result


def check(status: int, call: str) -> None:
    """Ends the program when a call failed."""
    if status != 0:
        sys.exit(f"{call} returned {status}: {hb.last_error()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
