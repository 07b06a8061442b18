"""CPU reference of point-cloud pre-processing in numpy; both plans on the board must match it bit for bit.

It follows the manual's order: voxelize; encode and quantize in one step; transpose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.nn.arrays import as_array
from arm_client.nn.pointcloud.config import PillarConfig
from arm_client.nn.pointcloud.voxels import Voxelizer


class ReferencePillars(NamedTuple):
    """Like `pointcloud.Pillars`, in ordinary memory."""

    features: NDArray[np.int8]
    coordinates: NDArray[np.int32]
    voxel_count: int
    num_points_per_voxel: NDArray[np.int32]


def preprocess(points: ArrayLike, config: PillarConfig) -> ReferencePillars:
    """Pre-process a sweep on the CPU.

    Args:
        points: (n, dims) numbers.
        config: The model.

    Raises:
        CallerError: not real numbers, wrong shape, or more points than the model takes.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.2, the CPU reference of CenterPoint.
    """
    with np.errstate(over="ignore"):
        sweep = np.ascontiguousarray(as_array(points), np.float32)
    config.need_sweep(sweep.shape)
    coordinates = np.empty((config.max_voxels, 4), np.int32)
    voxelizer = Voxelizer(config, coordinates, compiled=False)
    voxels = np.full((config.places, config.dims), np.nan, np.float32)
    voxelizer.add_points(sweep, voxels)
    is_taken = ~np.isnan(voxels[:, 0])  # x is never NaN for a point in a pillar
    quantized = np.zeros(voxels.shape, np.int8)
    quantized[is_taken] = encode_and_quantize(voxels[is_taken], config)
    features = np.ascontiguousarray(quantized.T).reshape(config.feature_shape)
    return ReferencePillars(features, coordinates.reshape(1, 1, -1, 4), voxelizer.count, voxelizer.num_points_per_voxel)


def encode_and_quantize(points: NDArray[np.float32], config: PillarConfig) -> NDArray[np.int8]:
    """Return clip(nearbyint((P - low) / (high - low) / scale)) in float32, ties to even, NaN as 0: (n, dims) int8."""
    with np.errstate(all="ignore"):
        encoded = (points - config.lows) / (config.highs - config.lows)
        steps = np.rint(encoded / np.float32(config.scale))
    return np.where(np.isnan(steps), 0, np.clip(steps, -128, 127)).astype(np.int8)
