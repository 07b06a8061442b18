"""Distort a picture with a wave on the DSP.

python remap.py [PICTURE [DIRECTORY]] writes remap.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture

AMPLITUDE, PERIOD = 6.0, 40.0  # pixels


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the result."""
    picture = read_picture(input_file)
    height, width = picture.shape[:2]
    places = wave(width, height)

    src, dst, block, table = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvRemapParam)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(table, places.nbytes), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture
    table.array(np.float64, places.shape)[:] = places

    param = hb.hbDSPCvRemapParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.dst.dataPhyAddr = dst.phyAddr
    param.mapPhyAddr = table.phyAddr
    param.mapWidth, param.mapHeight = width, height
    param.dataType = hb.HB_VP_IMAGE_TYPE_F64C2
    param.interpolation = hb.HB_VP_INTER_LINEAR
    param.borderType = hb.HB_VP_BORDER_CONSTANT
    param.borderValue = 0

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_REMAP
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, picture.shape).copy()
    for mem in (src, dst, block, table):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/remap.png", result)
    return result


def wave(width: int, height: int) -> Any:
    """Where each pixel of the result comes from: x and y, (height, width, 2)."""
    rows, columns = np.indices((height, width), np.float64)
    return np.dstack([columns + AMPLITUDE * np.sin(rows / PERIOD * 2 * np.pi), rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
