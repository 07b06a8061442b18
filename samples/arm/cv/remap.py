"""Look at a picture through a wave on the DSP.

python remap.py [PICTURE [DIRECTORY]] writes remap.png into DIRECTORY.
"""

import ctypes
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import arm_client as hb

PICTURE = Path(__file__).resolve().parent / "data" / "input.png"
AMPLITUDE, PERIOD = 6.0, 40.0  # pixels


def main(input_file: str = str(PICTURE), output_dir: str = ".") -> Any:
    """Returns the result."""
    picture = cv2.imread(input_file, cv2.IMREAD_COLOR)
    if picture is None:
        sys.exit(f"{input_file} is not a picture that OpenCV can read.")
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
    file = f"{output_dir}/remap.png"
    if not cv2.imwrite(file, result):
        sys.exit(f"{file} could not be written.")
    print("Wrote", file)
    return result


def wave(width: int, height: int) -> Any:
    """Where each pixel of the result comes from: x and y, (height, width, 2)."""
    rows, columns = np.indices((height, width), np.float64)
    return np.dstack([columns + AMPLITUDE * np.sin(rows / PERIOD * 2 * np.pi), rows])


def check(status: int, call: str) -> None:
    """Ends the program when a call failed."""
    if status != 0:
        sys.exit(f"{call} returned {status}: {hb.last_error()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
