"""Cut regions out of a picture, and scale them to one size, on the DSP.

python roi_resize.py [PICTURE [DIRECTORY]] writes roi_resize.png into DIRECTORY.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.sample import PICTURE, check, read_picture, write_picture

WIDTH, HEIGHT = 160, 160


def main(input_file: str = PICTURE, output_dir: str = ".") -> Any:
    """Returns the regions, (count, height, width, 3)."""
    picture = read_picture(input_file)
    height, width = picture.shape[:2]
    rois = regions(width, height)

    src, dst, block, table = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(src, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst, len(rois) * HEIGHT * WIDTH * 3), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPCvRoiResizeParam)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(table, rois.nbytes), "hbSysAllocMem")
    src.array(np.uint8, picture.shape)[:] = picture
    table.array(np.int32, rois.shape)[:] = rois

    param = hb.hbDSPCvRoiResizeParam.from_buffer(block.view())
    param.src = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, width, height, width * 3)
    param.src.dataPhyAddr = src.phyAddr  # the DSP cannot follow virAddr
    param.dst = hb.hbVPImage(hb.HB_VP_IMAGE_FORMAT_BGR, hb.HB_VP_IMAGE_TYPE_U8C3, WIDTH, HEIGHT, WIDTH * 3)
    param.dst.dataPhyAddr = dst.phyAddr
    param.roiPhyAddr = table.phyAddr
    param.roiCount = len(rois)
    param.dstStep = WIDTH * HEIGHT * 3  # param.dst is the first result; the next one starts this many bytes later
    param.interpolation = hb.HB_VP_INTER_LINEAR

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_CV_ROI_RESIZE
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, dst, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")

    result = dst.array(np.uint8, (len(rois), HEIGHT, WIDTH, 3)).copy()
    for mem in (src, dst, block, table):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    write_picture(f"{output_dir}/roi_resize.png", np.hstack(list(result)))
    return result


def regions(width: int, height: int) -> Any:
    """Left, top, right and bottom, all inclusive: the quarters of the picture, and its middle."""
    x, y, right, bottom = width // 2, height // 2, width - 1, height - 1
    quarters = [(0, 0, x, y), (x, 0, right, y), (0, y, x, bottom), (x, y, right, bottom)]
    return np.array([*quarters, (width // 4, height // 4, width * 3 // 4, height * 3 // 4)], np.int32)


if __name__ == "__main__":
    main(*sys.argv[1:])
