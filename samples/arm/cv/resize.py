"""Shrink an NV12 picture on the DSP.

python resize.py [PICTURE [DIRECTORY]] writes resize.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import cv2
import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture

WIDTH, HEIGHT = 320, 240


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the rows of Y, followed by the pairs of U and V."""
    picture = read_picture(input_file)
    height, width = picture.shape[:2]
    height, width = height // 2 * 2, width // 2 * 2  # NV12 has even sides
    frame = nv12(picture[:height, :width])

    src, dst, block = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, frame.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, WIDTH * HEIGHT * 3 // 2), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvResizeParam)), "hbSysAllocMem")
    src.array(np.uint8, frame.shape)[:] = frame

    param = hb.hbDSPCvResizeParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_NV12, hb.HB_VP_IMAGE_TYPE_U8C1, width, height, width)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.src.uvPhyAddr, param.src.uvStride = src.phyAddr + width * height, width
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_NV12, hb.HB_VP_IMAGE_TYPE_U8C1, WIDTH, HEIGHT, WIDTH)
    param.dst.dataPhyAddr = dst.phyAddr
    param.dst.uvPhyAddr, param.dst.uvStride = dst.phyAddr + WIDTH * HEIGHT, WIDTH
    param.interpolation = hb.HB_VP_INTER_LINEAR

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_RESIZE
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, (HEIGHT * 3 // 2, WIDTH)).copy()
    for mem in (src, dst, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    pairs = result[HEIGHT:].reshape(HEIGHT // 2, WIDTH // 2, 2)
    shown = cv2.cvtColorTwoPlane(result[:HEIGHT], pairs, cv2.COLOR_YUV2BGR_NV12)
    write_picture(f"{output_dir}/resize.png", shown)
    return result


def nv12(picture: Any) -> Any:
    """The picture as a camera provides it: the rows of Y, then the pairs of U and V."""
    height, width = picture.shape[:2]
    planar = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
    pairs = planar[height:].reshape(2, -1).T
    return np.vstack([planar[:height], pairs.reshape(height // 2, width)])


if __name__ == "__main__":
    main(*sys.argv[1:])
