"""Convert a picture to NV12, as a camera provides it, on the DSP.

python cvt_color.py [PICTURE [DIRECTORY]] writes cvt_color.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the rows of Y, followed by the pairs of U and V."""
    picture = read_picture(input_file)
    height, width = picture.shape[:2]
    height, width = height // 2 * 2, width // 2 * 2  # NV12 has even sides
    picture = picture[:height, :width]

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, width * height * 3 // 2), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvCvtColorParam)), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture

    param = hb.hbDSPCvCvtColorParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_NV12, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.dst.dataPhyAddr = dst.phyAddr
    param.dst.uvPhyAddr, param.dst.uvStride = dst.phyAddr + width * height, width

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_CVT_COLOR
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, (height * 3 // 2, width)).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/cvt_color.png", result)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
