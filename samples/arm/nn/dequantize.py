"""Turning the int8 output of a model back into float32 on the DSP, with the C API's names.

    python dequantize.py [OUTPUT_DIRECTORY]

The output is cached memory, as for results that the CPU reads often: the DSP writes DDR, so the CPU's stale copy
has to be dropped with hbSysFlushMem before it is read. One scale for the whole tensor lies in the structure itself.

`run()` returns op, command, core (the mask that was asked for: 0 any, 1 core 0, 2 core 1), status (0 is success),
max_error (largest difference from numpy), host_time_us (submit to release),
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
from hbrt.nn_types import HB_DSP_QUANTI_PER_TENSOR, QUANTI_SCALE, hbDSPDequantizeParam

COUNT = 50_000
TENSOR_TYPE_S8 = 8  # hbDNNDataType
SCALE, ZERO_POINT = 0.043, 7


def run(core: int = hb.HB_DSP_CORE_ANY, output_dir: str | None = None) -> dict[str, Any]:
    """Dequantises a tensor on the DSP and compares every element with numpy."""
    quantised = np.random.default_rng(0).integers(-128, 128, COUNT, np.int8)

    input_mem, output_mem, param_mem = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(input_mem, quantised.nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocCachedMem(output_mem, COUNT * 4), "hbSysAllocCachedMem")
    check(hb.hbSysAllocMem(param_mem, ctypes.sizeof(hbDSPDequantizeParam)), "hbSysAllocMem")

    input_mem.array(np.int8)[:] = quantised
    param = hbDSPDequantizeParam.from_buffer(param_mem.view())
    param.input = input_mem.phyAddr
    param.set_shape([COUNT])
    param.axis = HB_DSP_QUANTI_PER_TENSOR
    param.quanti_type = QUANTI_SCALE
    param.tensor_type = TENSOR_TYPE_S8
    param.scale = SCALE
    param.zero_point = ZERO_POINT

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_DEQUANTIZE
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

    check(hb.hbSysFlushMem(output_mem, hb.HB_SYS_MEM_CACHE_INVALIDATE), "hbSysFlushMem")
    results = output_mem.array(np.float32).copy()
    for mem in (input_mem, output_mem, param_mem):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")

    reference = (quantised.astype(np.float32) - ZERO_POINT) * np.float32(SCALE)
    max_error = float(np.abs(results - reference).max())
    return {
        "op": "dequantize",
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
    file = Path(output_dir) / "dequantize.npy"
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
        print(f"dequantize: {error}", file=sys.stderr)
        return 1
    print(
        f"dequantize: {COUNT} int8 by command {got['command']:#x}, status {got['status']}, "
        f"largest error {got['max_error']:g}, {got['host_time_us']:.0f} us"
    )
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
