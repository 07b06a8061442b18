"""Mirror a picture left to right on the DSP.

python flip.py [PICTURE [DIRECTORY]] writes flip.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the result."""
    picture = read_picture(input_file)
    height, width = picture.shape[:2]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvFlipParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvFlipParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.dst.dataPhyAddr = dst.phyAddr
    param.flipCode = hb.HB_VP_FLIP_HORIZONTAL

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_FLIP
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, picture.shape).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/flip.png", result)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
