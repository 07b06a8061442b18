"""CenterPoint pre-processing of a LiDAR sweep on the DSP.

python centerpoint.py [SWEEP.bin [DIRECTORY]] writes three files into DIRECTORY: centerpoint_features.npy,
centerpoint_coordinates.npy, and centerpoint.png, which shows the sweep next to its pillars.

A sweep is a nuScenes file: float32 x, y, z, intensity and a fifth number. Without one, the program generates its own.
The DSP finds the cell of each point and quantizes its numbers. The CPU sorts the points into pillars. The DSP then
makes one plane per number: features 1x5x20x40000 int8, coordinates 1x1x40000x4 int32.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.nn import CENTERPOINT, Pillars, Voxelizer, birds_eye, captioned, lidar_sweep, read_nuscenes, write_png
from arm_client.sample import check


def main(points_file: str = "", output_dir: str = ".") -> Pillars:
    """Returns the pillars of the sweep."""
    config, points = CENTERPOINT, load(points_file)
    word_bytes, place_bytes = len(points) * (config.dims - 2) * 4, config.places * config.dims

    src, words, places, features, coordinates, block = (hb.hbSysMem() for _ in range(6))
    check(hb.hbSysAllocMem(src, max(points.nbytes, 8)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(words, max(word_bytes, 8)), "hbSysAllocMem")
    check(hb.hbSysAllocMem(places, place_bytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(features, place_bytes), "hbSysAllocMem")
    check(hb.hbSysAllocMem(coordinates, config.max_voxels * 4 * 4), "hbSysAllocMem")
    check(hb.hbSysAllocMem(block, ctypes.sizeof(hb.hbDSPPointCloudParam)), "hbSysAllocMem")
    src.array(np.float32, points.shape)[:] = points
    for mem in (places, features):  # the DSP writes only existing points; new memory of a board keeps its old contents
        mem.view()[:] = bytes(mem.memSize)

    # Step 1, DSP: the cell and the quantized numbers of every point.
    param = config.param(hb.POINTCLOUD_ENCODE_POINTS, input=src.phyAddr, count=len(points))
    block.view()[:] = bytes(param)
    call(block, words)

    # Step 2, CPU: random access, which is slow on a DSP without a data cache.
    voxelizer = Voxelizer(config, coordinates.array(np.int32, (config.max_voxels, 4)))
    words_of_points = words.array(np.int32, (len(points), config.dims - 2))
    voxelizer.add_words(words_of_points, places.array(np.int8, (config.places, config.dims)))

    # Step 3, DSP: one plane per number.
    param = config.param(hb.POINTCLOUD_TRANSPOSE, input=places.phyAddr, voxel_count=voxelizer.count)
    block.view()[:] = bytes(param)
    call(block, features)

    planes: Any = features.array(np.int8, config.feature_shape).copy()
    rows: Any = coordinates.array(np.int32, (1, 1, config.max_voxels, 4)).copy()
    result = Pillars(planes, rows, voxelizer.count, voxelizer.num_points_per_voxel)
    for mem in (src, words, places, features, coordinates, block):
        check(hb.hbSysFreeMem(mem), "hbSysFreeMem")
    np.save(f"{output_dir}/centerpoint_features.npy", result.features)
    np.save(f"{output_dir}/centerpoint_coordinates.npy", result.coordinates)
    write_png(f"{output_dir}/centerpoint.png", captioned(birds_eye(points, result, config), config))
    print(f"Wrote centerpoint_features.npy, centerpoint_coordinates.npy and centerpoint.png into {output_dir}")
    return result


def load(points_file: str) -> Any:
    """The sweep, (points, 5) float32."""
    return read_nuscenes(points_file) if points_file else lidar_sweep(0, dims=5, sweeps=2)


def call(block: hb.hbSysMem, output: hb.hbSysMem) -> None:
    """One remote call, from submit to release."""
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_CENTERPOINT
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, output, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")


if __name__ == "__main__":
    main(*sys.argv[1:])
