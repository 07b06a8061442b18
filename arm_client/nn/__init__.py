"""The packaged NN ops as Python calls: numpy or board arrays in, board arrays out."""

from __future__ import annotations

from arm_client.nn.pointcloud import PillarPipeline, Pillars, centerpoint, pointpillars
from arm_client.nn.pointcloud_config import CENTERPOINT, POINTPILLARS, PillarConfig
from arm_client.nn.pointcloud_picture import birds_eye, write_png
from arm_client.nn.pointcloud_sweep import lidar_sweep, read_kitti, read_nuscenes
from arm_client.nn.pointcloud_voxels import Voxeliser
from arm_client.nn.quanti import dequantize, dequantize_shift, quantize, quantize_shift
from arm_client.nn.rows import softmax

__all__ = [
    "CENTERPOINT",
    "POINTPILLARS",
    "PillarConfig",
    "PillarPipeline",
    "Pillars",
    "Voxeliser",
    "birds_eye",
    "centerpoint",
    "dequantize",
    "dequantize_shift",
    "lidar_sweep",
    "pointpillars",
    "quantize",
    "quantize_shift",
    "read_kitti",
    "read_nuscenes",
    "softmax",
    "write_png",
]
