"""The arithmetic of the point-cloud ops: pseudo-image coordinates, encoding and quantization of points.

Everything is float32, each operation rounded separately, so that every way of computing it gives the same bits:

- P0' = (P0 - back) / (front - back), P1' and P2' alike, P3' = (P3 - lower) / (upper - lower), P4' = P4
- Q = clip(nearbyint(P' / scale), -128, 127), ties to even; NaN becomes 0
- x cell = floor((P0 - back) / voxel_x), y cell = floor((P1 - right) / voxel_y)

P4' is computed as (P4 - 0) / 1, which does not change any bits. There is a compiled loop and, for when numba is not
installed, the same in numpy.

Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.4.1, feature encoding of CenterPoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.nn.pointcloud_loops import HIGHEST, LANES, LOWEST, QUANTIZED, encode
from hbrt.behavior import NO_CELL
from hbrt.nn_types import hbDSPPointCloudParam

_NO_WORDS, _NO_PLACES = np.empty(0, np.int32), np.empty(0, np.int8)


@dataclass(frozen=True)
class Encoder:
    """The constants of a parameter structure, as float32 arrays that both the loop and numpy read.

    Attributes:
        lows: (5,) subtracted from each number of a point.
        highs: (3,) upper ends of the ranges of x, y and z.
        spans: (5,) divisors of the differences.
        cells: (4,) cell size along x and y, number of cells along x and y.
        scale: (1,) quantization scale.
        all: (18,) all of the above, in this order: one argument for the loop.
    """

    lows: NDArray[np.float32]
    highs: NDArray[np.float32]
    spans: NDArray[np.float32]
    cells: NDArray[np.float32]
    scale: NDArray[np.float32]
    all: NDArray[np.float32]

    @classmethod
    def of(cls, param: hbDSPPointCloudParam) -> Encoder:
        """Return a structure's constants, which are not checked here. They are cached, as a program has only a few."""
        return _encoder(
            param.back,
            param.right,
            param.bottom,
            param.lower,
            param.front,
            param.left,
            param.top,
            param.upper,
            param.voxel_x,
            param.voxel_y,
            param.grid_x,
            param.grid_y,
            param.scale,
        )


@lru_cache(maxsize=32)
def _encoder(*values: float) -> Encoder:
    lows, ends = np.array([*values[:4], 0], np.float32), np.array([*values[4:8], 1], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        spans = ends - lows
    cells, scale = np.array(values[8:12], np.float32), np.array(values[12:], np.float32)
    return Encoder(lows, ends[:3], spans, cells, scale, np.concatenate([lows, ends[:3], spans, cells, scale]))


def encode_points(points: NDArray[np.float32], words: NDArray[np.int32], constants: Encoder) -> None:
    """Encode points as words.

    Args:
        points: (n, 4) or (n, 5) float32, C order.
        words: (n, 2) or (n, 3) int32, C order: x cell << 16 | y cell, or NO_CELL for a point that is outside; four
            int8, the first in the lowest byte; the fifth number's int8 in the lowest byte, the other bytes 0.
        constants: Constants of the parameter structure.
    """
    if _encode_compiled(points, words.reshape(-1), _NO_PLACES, constants):
        return
    count, dims = points.shape
    numbers = np.zeros((count, 4 * words.shape[1] - 4), np.int8)
    numbers[:, :dims] = quantize(points, constants)
    words[:, 0] = coordinates(points, constants)
    words[:, 1:] = numbers.view("<i4")


def encode_pillars(points: NDArray[np.float32], places: NDArray[np.int8], constants: Encoder) -> None:
    """Convert places that hold points to places that hold the points' quantized numbers.

    Args:
        points: (n, 4) or (n, 5) float32, C order. A place is empty if its point is outside the range; NaN is outside.
        places: (n, 4) or (n, 5) int8, C order; an empty place becomes 0.
        constants: Constants of the parameter structure.
    """
    if not _encode_compiled(points, _NO_WORDS, places.reshape(-1), constants):
        is_empty = coordinates(points, constants) == NO_CELL
        places[:] = np.where(is_empty[:, np.newaxis], np.int8(0), quantize(points, constants))


def quantize(points: NDArray[np.float32], constants: Encoder) -> NDArray[np.int8]:
    """Encode and quantize every number of every point: (n, dims) int8."""
    dims = points.shape[1]
    with np.errstate(all="ignore"):
        steps = (points - constants.lows[:dims]) / constants.spans[:dims] / constants.scale
        np.clip(steps, LOWEST, HIGHEST, out=steps)
        np.rint(steps, out=steps)
    steps[np.isnan(steps)] = 0
    return steps.astype(np.int8)


def coordinates(points: NDArray[np.float32], constants: Encoder) -> NDArray[np.int32]:
    """Return the coordinate word of every point: (n,) int32."""
    position = points[:, :3]
    with np.errstate(all="ignore"):
        cells = (position[:, :2] - constants.lows[:2]) / constants.cells[:2]
        is_inside = ((position >= constants.lows[:3]) & (position < constants.highs)).all(axis=1)
        is_inside &= (cells < constants.cells[2:]).all(axis=1)
    cells[~is_inside] = 0
    x, y = cells.astype(np.int32).T
    result: NDArray[np.int32] = np.where(is_inside, x << 16 | y, np.int32(NO_CELL))
    return result


def _encode_compiled(
    points: NDArray[np.float32], words: NDArray[np.int32], places: NDArray[np.int8], constants: Encoder
) -> bool:
    """Run the compiled loop; False without numba."""
    compiled = encode.compiled()
    if compiled is None:
        return False
    compiled(points.reshape(-1), words, places, points.shape[1], constants.all, LANES, QUANTIZED)
    return True
