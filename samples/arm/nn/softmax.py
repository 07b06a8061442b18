"""Softmax of the rows of a matrix on the DSP, with the C API's names.

    python softmax.py [OUTPUT_DIRECTORY]

Each row is one remote call: the row's physical address travels in an hbDSPSoftmaxParam, and the op at command
0x400 writes the result to the output block. The blocks are allocated once, used for every row, then freed.

`run()` returns op, command, core (the mask that was asked for: 0 any, 1 core 0, 2 core 1), status (0 is success),
max_error (largest difference from a float64 softmax), host_time_us (submit to release, all rows), output_file (a .npy
of the results; empty when there is no OUTPUT_DIRECTORY) and passed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import arm_client as hb
from hbrt.nn_types import hbDSPSoftmaxParam

ROWS, LENGTH = 4, 1000
TOLERANCE = 1e-6


def run(core: int = hb.HB_DSP_CORE_ANY, output_dir: str | None = None) -> dict[str, Any]:
    """Computes every row on the DSP and compares it with numpy."""
    data = np.random.default_rng(0).normal(0.0, 4.0, (ROWS, LENGTH)).astype(np.float32)
    results = np.empty_like(data)

    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_SOFTMAX
    ctrl.dspCoreId = core

    input_mem, output_mem, param_mem = hb.hbSysMem(), hb.hbSysMem(), hb.hbSysMem()
    check(hb.hbSysAllocMem(input_mem, data[0].nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(output_mem, data[0].nbytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(param_mem, ctypes.sizeof(hbDSPSoftmaxParam)), "hbSysAllocMem")

    # The op sees these bytes as its C structure. Addresses in it are physical: the DSP maps them itself.
    param = hbDSPSoftmaxParam.from_buffer(param_mem.view())
    param.data_size = data[0].nbytes
    param.input = input_mem.phyAddr

    status, times_us = 0, []
    for row in (0, *range(ROWS)):  # a core loads an op's libraries with its first call: row 0 goes twice
        input_mem.array(np.float32)[:] = data[row]
        start = time.perf_counter()
        task = hb.hbDSPTask_t()
        check(hb.hbDSPRpc(task, param_mem, output_mem, ctrl), "hbDSPRpc")
        status = hb.hbDSPWaitTaskDone(task, 0)
        check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
        times_us.append((time.perf_counter() - start) * 1e6)
        check(status, "hbDSPWaitTaskDone")
        results[row] = output_mem.array(np.float32)

    for mem in (input_mem, output_mem, param_mem):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")

    exponentials = np.exp(data.astype(np.float64) - data.max(axis=1, keepdims=True))
    reference = exponentials / exponentials.sum(axis=1, keepdims=True)
    max_error = float(np.abs(results - reference).max())
    return {
        "op": "softmax",
        "command": ctrl.rpcCmd,
        "core": core,
        "status": status,
        "max_error": max_error,
        "host_time_us": sum(times_us[1:]),
        "output_file": save(results, output_dir),
        "passed": max_error <= TOLERANCE,
    }


def save(results: np.ndarray[Any, Any], output_dir: str | None) -> str:
    """Writes the results; their file, or nothing when there is no directory for it."""
    if output_dir is None:
        return ""
    file = Path(output_dir) / "softmax.npy"
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
        print(f"softmax: {error}", file=sys.stderr)
        return 1
    print(
        f"softmax: {ROWS} rows of {LENGTH} by command {got['command']:#x}, status {got['status']}, "
        f"largest error {got['max_error']:.1e}, {got['host_time_us']:.0f} us"
    )
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
