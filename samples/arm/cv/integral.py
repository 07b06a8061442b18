"""Summing up all pixels above and to the left of each on the DSP, with the C API's names.

    python integral.py [PICTURE [OUTPUT_DIRECTORY]]

The picture is any file that OpenCV reads, or the one beside the samples when none is named. OUTPUT_DIRECTORY gets
integral.png; output/ when none is named.

`run()` returns op, command, core (the mask that was asked for: 0 any, 1 core 0, 2 core 1), status (0 is success),
max_error (largest difference from the same on the CPU), host_time_us (submit to release), output_file (empty when
there is no OUTPUT_DIRECTORY) and passed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import arm_client as hb
from hbrt.cv_types import (
    HB_DSP_RPC_CMD_CV_INTEGRAL,
    HB_VP_IMAGE_FORMAT_Y,
    HB_VP_IMAGE_TYPE_S32C1,
    HB_VP_IMAGE_TYPE_U8C1,
    hbDSPCvIntegralParam,
    hbVPImage,
)

PICTURE = Path(__file__).resolve().parent / "data" / "input.png"


def run(core: int = hb.HB_DSP_CORE_ANY, input_file: str | None = None, output_dir: str | None = None) -> dict[str, Any]:
    """Runs Integral on the DSP and compares every pixel with the CPU."""
    file = Path(input_file or PICTURE)
    if not file.is_file():
        raise RuntimeError(f"There is no picture {file}: name one, as in python integral.py PICTURE.")
    picture = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise RuntimeError(f"{file} is not a picture that OpenCV can read.")
    height, width = picture.shape[:2]
    new_width, new_height = width + 1, height + 1
    result = np.empty((new_height, new_width), np.int32)

    src_mem, dst_mem, param_mem = (hb.hbSysMem() for _ in range(3))
    check(hb.hbSysAllocMem(src_mem, picture.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(dst_mem, result.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(param_mem, ctypes.sizeof(hbDSPCvIntegralParam)), "hbSysAllocMem")

    src_mem.array(np.uint8, picture.shape)[:] = picture

    # The op sees these bytes as its C structure. Addresses in it are physical: the DSP maps them itself.
    param = hbDSPCvIntegralParam.from_buffer(param_mem.view())
    param.src = image(src_mem, width, height, 1, HB_VP_IMAGE_FORMAT_Y, HB_VP_IMAGE_TYPE_U8C1)
    param.dst = image(dst_mem, new_width, new_height, 4, HB_VP_IMAGE_FORMAT_Y, HB_VP_IMAGE_TYPE_S32C1)

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = HB_DSP_RPC_CMD_CV_INTEGRAL
    ctrl.dspCoreId = core

    start = time.perf_counter()
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, param_mem, dst_mem, ctrl), "hbDSPRpc")
    status = hb.hbDSPWaitTaskDone(task, 0)
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
    host_time_us = (time.perf_counter() - start) * 1e6
    check(status, "hbDSPWaitTaskDone")

    result[:] = dst_mem.array(np.int32, result.shape)
    for mem in (src_mem, dst_mem, param_mem):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")

    reference = np.pad(picture.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    max_error = float(np.abs(result.astype(np.float64) - reference).max())
    # Scaled to what a picture can show.
    shown = (result / result.max() * 255).astype(np.uint8)
    return {
        "op": "integral",
        "command": ctrl.rpcCmd,
        "core": core,
        "status": status,
        "max_error": max_error,
        "host_time_us": host_time_us,
        "output_file": save(shown, output_dir),
        "passed": max_error == 0,
    }


def image(mem: hb.hbSysMem, width: int, height: int, pixel_bytes: int, format: int, type: int) -> hbVPImage:
    """Descriptor of an image at the start of a block, its rows one after the other."""
    return hbVPImage(
        imageFormat=format,
        imageType=type,
        width=width,
        height=height,
        stride=width * pixel_bytes,
        dataVirAddr=mem.virAddr,
        dataPhyAddr=mem.phyAddr,
    )


def save(shown: Any, output_dir: str | None) -> str:
    """Writes the picture; its file, or nothing when there is no directory for it."""
    if output_dir is None:
        return ""
    file = Path(output_dir) / "integral.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(file), shown):
        raise RuntimeError(f"{file} could not be written.")
    return str(file)


def check(status: int, call: str) -> None:
    """Stops with the call's name and the runtime's sentence when a call failed."""
    if status != 0:
        raise RuntimeError(f"{call} returned {status}: {hb.last_error() or hb.hbDSPGetErrorDesc(status)}")


def main() -> int:
    """Prints one line; 0 when the result is right."""
    input_file = sys.argv[1] if len(sys.argv) > 1 else None
    output_dir = sys.argv[2] if len(sys.argv) > 2 else "output"
    try:
        got = run(input_file=input_file, output_dir=output_dir)
    except (OSError, RuntimeError) as error:
        print(f"integral: {error}", file=sys.stderr)
        return 1
    print(
        f"integral: command {got['command']:#x}, status {got['status']}, largest error {got['max_error']:g}, "
        f"{got['host_time_us']:.0f} us, {got['output_file']}"
    )
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
