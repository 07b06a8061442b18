"""Sum all pixels above and to the left of each pixel on the DSP.

python integral.py [PICTURE [DIRECTORY]] writes integral.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the sums, int32."""
    picture = read_picture(input_file, is_gray=True)
    height, width = picture.shape[:2]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, (height + 1) * (width + 1) * 4), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvIntegralParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvIntegralParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_Y, hb.HB_VP_IMAGE_TYPE_S32C1, width + 1, height + 1, (width + 1) * 4)
    param.dst.dataPhyAddr = dst.phyAddr

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_INTEGRAL
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.int32, (height + 1, width + 1)).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/integral.png", (result / result.max() * 255).astype(np.uint8))
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
