"""Find the corners of a picture on the DSP.

python corner_harris.py [PICTURE [DIRECTORY]] writes corner_harris.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture

BLOCK_SIZE, KERNEL_SIZE, SENSITIVITY = 3, 3, 0.04


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the responses, int32."""
    picture = read_picture(input_file, is_gray=True)
    height, width = picture.shape[:2]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, height * width * 4), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvCornerHarrisParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvCornerHarrisParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_S32C1, width, height, width * 4)
    param.dst.dataPhyAddr = dst.phyAddr
    param.blockSize, param.kernelSize = BLOCK_SIZE, KERNEL_SIZE
    param.sensitivity = SENSITIVITY
    param.borderType = hb.HB_VP_BORDER_REPLICATE

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_CORNER_HARRIS
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.int32, (height, width)).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    # Gray is flat, white is a corner, black is an edge; the cube root makes weak responses visible.
    shown = np.clip(np.cbrt(result / np.abs(result).max()) * 127 + 128, 0, 255).astype(np.uint8)
    write_picture(f"{output_dir}/corner_harris.png", shown)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
