"""The packaged NN ops as Python calls: numpy or board arrays in, board arrays out."""

from __future__ import annotations

from arm_client.nn.pointcloud.config import CENTERPOINT, POINTPILLARS, PillarConfig
from arm_client.nn.pointcloud.picture import birds_eye, captioned, write_png
from arm_client.nn.pointcloud.pointcloud import PillarPipeline, Pillars, centerpoint, pointpillars
from arm_client.nn.pointcloud.reference import ReferencePillars, preprocess
from arm_client.nn.pointcloud.sweep import lidar_sweep, read_kitti, read_nuscenes
from arm_client.nn.pointcloud.voxels import Voxelizer
from arm_client.nn.quanti import dequantize, dequantize_shift, quantize, quantize_shift
from arm_client.nn.rows import softmax

__all__ = [
    "CENTERPOINT",
    "POINTPILLARS",
    "PillarConfig",
    "PillarPipeline",
    "Pillars",
    "ReferencePillars",
    "Voxelizer",
    "birds_eye",
    "captioned",
    "centerpoint",
    "dequantize",
    "dequantize_shift",
    "lidar_sweep",
    "pointpillars",
    "preprocess",
    "quantize",
    "quantize_shift",
    "read_kitti",
    "read_nuscenes",
    "softmax",
    "write_png",
]
