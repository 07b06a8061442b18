"""Quantising a float32 image to int8 on the DSP, one scale and zero point a channel, with the C API's names.

    python quantize.py [OUTPUT_DIRECTORY]

One remote call does the whole NCHW tensor. The hbDSPQuantizeParam says where the tensor and the arrays of scales
and zero points lie, by physical address, and along which axis the channels run.

`run()` returns op, command, core (the mask that was asked for: 0 any, 1 core 0, 2 core 1), status (0 is success),
max_error (largest difference from numpy, in quantisation steps), host_time_us (submit to release),
output_file (a .npy of the results; empty when there is no OUTPUT_DIRECTORY) and passed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import arm_client as hb
from hbrt.nn_types import QUANTI_SCALE, hbDSPQuantizeParam

SHAPE = (1, 3, 224, 224)  # NCHW
CHANNEL_AXIS = 1
TENSOR_TYPE_S8 = 8  # hbDNNDataType
SCALES = np.array([0.018, 0.0175, 0.017], np.float32)
ZERO_POINTS = np.array([-10, 0, 12], np.int32)


def run(core: int = hb.HB_DSP_CORE_ANY, output_dir: str | None = None) -> dict[str, Any]:
    """Quantises the image on the DSP and compares every element with numpy."""
    image = np.random.default_rng(0).normal(0.0, 1.0, SHAPE).astype(np.float32)

    input_mem, scale_mem, zero_point_mem, output_mem, param_mem = (hb.hbSysMem() for _ in range(5))
    check(hb.hbSysAllocMem(input_mem, image.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(scale_mem, SCALES.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(zero_point_mem, ZERO_POINTS.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(output_mem, image.size), "hbSysAllocMem")
    check(hb.hbSysAllocMem(param_mem, ctypes.sizeof(hbDSPQuantizeParam)), "hbSysAllocMem")

    input_mem.array(np.float32, SHAPE)[:] = image
    scale_mem.array(np.float32)[:] = SCALES
    zero_point_mem.array(np.int32)[:] = ZERO_POINTS

    param = hbDSPQuantizeParam.from_buffer(param_mem.view())
    param.input = input_mem.phyAddr
    param.set_shape(SHAPE)
    param.axis = CHANNEL_AXIS
    param.quanti_type = QUANTI_SCALE
    param.tensor_type = TENSOR_TYPE_S8
    param.scale_data = scale_mem.phyAddr
    param.zero_point_data = zero_point_mem.phyAddr

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_QUANTIZE
    ctrl.dspCoreId = core

    status, host_time_us = 0, 0.0
    for _ in range(2):  # a core loads an op's libraries with its first call: the second is the one to time
        start = time.perf_counter()
        task = hb.hbDSPTask_t()
        check(hb.hbDSPRpc(task, param_mem, output_mem, ctrl), "hbDSPRpc")
        status = hb.hbDSPWaitTaskDone(task, 0)
        check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
        host_time_us = (time.perf_counter() - start) * 1e6
        check(status, "hbDSPWaitTaskDone")

    results = output_mem.array(np.int8, SHAPE).copy()
    for mem in (input_mem, scale_mem, zero_point_mem, output_mem, param_mem):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")

    steps = image / SCALES.reshape(1, 3, 1, 1) + ZERO_POINTS.astype(np.float32).reshape(1, 3, 1, 1)
    reference = np.clip(np.rint(steps), -128, 127)
    max_error = float(np.abs(results - reference).max())
    return {
        "op": "quantize",
        "command": ctrl.rpcCmd,
        "core": core,
        "status": status,
        "max_error": max_error,
        "host_time_us": host_time_us,
        "output_file": save(results, output_dir),
        "passed": max_error == 0,
    }


def save(results: np.ndarray[Any, Any], output_dir: str | None) -> str:
    """Writes the results; their file, or nothing when there is no directory for it."""
    if output_dir is None:
        return ""
    file = Path(output_dir) / "quantize.npy"
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, results)
    return str(file)


def check(status: int, call: str) -> None:
    """Stops with the call's name and the runtime's sentence when a call failed."""
    if status != 0:
        raise RuntimeError(f"{call} returned {status}: {hb.last_error() or hb.hbDSPGetErrorDesc(status)}")


def main() -> int:
    """Prints one line; 0 when the results are right."""
    try:
        got = run(output_dir=sys.argv[1] if len(sys.argv) > 1 else None)
    except (OSError, RuntimeError) as error:
        print(f"quantize: {error}", file=sys.stderr)
        return 1
    print(
        f"quantize: {SHAPE} to int8 by command {got['command']:#x}, status {got['status']}, "
        f"largest error {got['max_error']:g} steps, {got['host_time_us']:.0f} us"
    )
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
