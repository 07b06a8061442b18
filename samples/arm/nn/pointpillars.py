"""PointPillars pre-processing of a LiDAR scan on the DSP.

python pointpillars.py [SCAN.bin [DIRECTORY]] writes three files into DIRECTORY: pointpillars_features.npy,
pointpillars_coordinates.npy, and pointpillars.png, which shows the scan next to its pillars.

A scan is a KITTI file: float32 x, y, z and intensity. Without one, the program generates its own.
The DSP finds the cell of each point and quantizes its numbers. The CPU sorts the points into pillars. The DSP then
makes one plane per number: features 1x4x40000x20 int8, coordinates 1x1x40000x4 int32.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import arm_client as hb
from arm_client.nn import POINTPILLARS, Pillars, Voxelizer, birds_eye, captioned, lidar_sweep, read_kitti, write_png
from arm_client.sample import check


def main(points_file: str = "", output_dir: str = ".") -> Pillars:
    """Returns the pillars of the scan."""
    config, points = POINTPILLARS, load(points_file)
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
    np.save(f"{output_dir}/pointpillars_features.npy", result.features)
    np.save(f"{output_dir}/pointpillars_coordinates.npy", result.coordinates)
    write_png(f"{output_dir}/pointpillars.png", captioned(birds_eye(points, result, config), config))
    print(f"Wrote pointpillars_features.npy, pointpillars_coordinates.npy and pointpillars.png into {output_dir}")
    return result


def load(points_file: str) -> Any:
    """The scan, (points, 4) float32."""
    return read_kitti(points_file) if points_file else lidar_sweep(0, dims=4, rings=64, azimuths=2000, sweeps=1)


def call(block: hb.hbSysMem, output: hb.hbSysMem) -> None:
    """One remote call, from submit to release."""
    ctrl = hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_NN_POINTPILLARS
    task = hb.hbDSPTask_t()
    check(hb.hbDSPRpc(task, block, output, ctrl), "hbDSPRpc")
    check(hb.hbDSPWaitTaskDone(task, 0), "hbDSPWaitTaskDone")
    check(hb.hbDSPReleaseTask(task), "hbDSPReleaseTask")


if __name__ == "__main__":
    main(*sys.argv[1:])
