"""CenterPoint pre-processing of a LiDAR sweep on the DSP, with the C API's names.

    python centerpoint.py [SWEEP.bin [OUTPUT_DIRECTORY]]

A sweep is a nuScenes file, float32 x, y, z, intensity and a fifth number, or one that is made here when none is named.
Plan 2 of the manual: a first remote call at command 0x403 finds each point's cell and quantises its numbers; the CPU
puts them into pillars; a second call makes one plane of each number: features 1x5x20x40000 int8, coordinates
1x1x40000x4 int32. OUTPUT_DIRECTORY gets a picture of the sweep beside its pillars; output/ when none is named.

`run()` returns op, command, core (the mask that was asked for: 0 any, 1 core 0, 2 core 1), status (0 is success),
max_error (largest difference from the CPU reference, in quantisation steps), host_time_us (first submit to last
release), points, pillars, output_file (empty when there is no picture) and passed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.nn import CENTERPOINT, lidar_sweep, read_nuscenes
from arm_client.nn.pointcloud_picture import birds_eye, write_png
from arm_client.nn.pointcloud_reference import ReferencePillars, preprocess
from arm_client.nn.pointcloud_voxels import Voxeliser
from hbrt.pointcloud_types import (
    HB_DSP_RPC_CMD_NN_CENTERPOINT,
    POINTCLOUD_ENCODE_POINTS,
    POINTCLOUD_TRANSPOSE,
    hbDSPPointCloudParam,
)


def run(
    core: int = hb.HB_DSP_CORE_ANY, points_file: str | None = None, output_dir: str | None = None
) -> dict[str, Any]:
    """Pre-processes the sweep and compares every number with the CPU reference."""
    config = CENTERPOINT
    points = read_nuscenes(points_file) if points_file else lidar_sweep(0, dims=config.dims, sweeps=2)

    points_mem, words_mem, places_mem, features_mem, coordinates_mem, param_mem = (hb.hbSysMem() for _ in range(6))
    word_bytes = len(points) * (config.dims - 2) * 4
    place_bytes = config.places * config.dims
    check(hb.hbSysAllocMem(points_mem, max(points.nbytes, 8)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(words_mem, max(word_bytes, 8)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(places_mem, place_bytes), "hbSysAllocMem")  # a new block is zeroed
    check(hb.hbSysAllocMem(features_mem, place_bytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(coordinates_mem, config.max_voxels * 4 * 4), "hbSysAllocMem")
    check(hb.hbSysAllocMem(param_mem, ctypes.sizeof(hbDSPPointCloudParam)), "hbSysAllocMem")

    points_mem.array(np.float32, points.shape)[:] = points
    words = words_mem.array(np.int32, (len(points), config.dims - 2))
    places = places_mem.array(np.int8, (config.places, config.dims))
    coordinates = coordinates_mem.array(np.int32, (config.max_voxels, 4))

    # Step 1, DSP: the cell and the quantised numbers of every point.
    # The op sees the block as its C structure. Addresses in it are physical: the DSP maps them itself.
    param = config.param(POINTCLOUD_ENCODE_POINTS, input=points_mem.phyAddr, count=len(points))
    param_mem.view()[:] = bytes(param)
    start = time.perf_counter()
    status = call(core, param_mem, words_mem)

    # Step 2, CPU: random access, for which a DSP without a data cache is the wrong place.
    voxeliser = Voxeliser(config, coordinates)
    voxeliser.add_words(words, places)

    # Step 3, DSP: one plane of each number.
    param = config.param(POINTCLOUD_TRANSPOSE, input=places_mem.phyAddr, voxel_count=voxeliser.count)
    param_mem.view()[:] = bytes(param)
    status = call(core, param_mem, features_mem)
    host_time_us = (time.perf_counter() - start) * 1e6

    features = features_mem.array(np.int8, config.feature_shape)
    got = ReferencePillars(
        features.copy(), coordinates.copy().reshape(1, 1, -1, 4), voxeliser.count, voxeliser.num_points_per_voxel
    )
    for mem in (points_mem, words_mem, places_mem, features_mem, coordinates_mem, param_mem):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")

    reference = preprocess(points, config)
    max_error = int(np.abs(got.features.astype(np.int16) - reference.features).max())
    output_file = ""
    if output_dir is not None:
        output_file = str(Path(output_dir) / "centerpoint.png")
        write_png(output_file, birds_eye(points, got, config))
    return {
        "op": "centerpoint",
        "command": HB_DSP_RPC_CMD_NN_CENTERPOINT,
        "core": core,
        "status": status,
        "max_error": max_error,
        "host_time_us": host_time_us,
        "points": len(points),
        "pillars": got.voxel_count,
        "output_file": output_file,
        "passed": max_error == 0 and np.array_equal(got.coordinates, reference.coordinates),
    }


def call(core: int, param_mem: hb.hbSysMem, output_mem: hb.hbSysMem) -> int:
    """One remote call, from submit to release."""
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = HB_DSP_RPC_CMD_NN_CENTERPOINT
    ctrl.dspCoreId = core
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, param_mem, output_mem, ctrl), "hbDSPRpc")
    status = hb.hbDSPWaitTaskDone(task, 0)
    reason = hb.last_error()
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")
    check(status, "hbDSPWaitTaskDone", reason)
    return status


def check(status: int, call: str, reason: str = "") -> None:
    """Stops with the call's name and the runtime's sentence when a call failed."""
    if status != 0:
        raise RuntimeError(f"{call} returned {status}: {reason or hb.last_error() or hb.hbDSPGetErrorDesc(status)}")


def main() -> int:
    """Prints one line; 0 when the results are right."""
    points_file = sys.argv[1] if len(sys.argv) > 1 else None
    output_dir = sys.argv[2] if len(sys.argv) > 2 else "output"
    try:
        got = run(points_file=points_file, output_dir=output_dir)
    except (OSError, RuntimeError) as error:
        print(f"centerpoint: {error}", file=sys.stderr)
        return 1
    print(
        f"centerpoint: {got['points']} points into {got['pillars']} pillars by command {got['command']:#x}, "
        f"status {got['status']}, largest error {got['max_error']} steps, {got['host_time_us']:.0f} us, "
        f"see {got['output_file']}"
    )
    return 0 if got["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
