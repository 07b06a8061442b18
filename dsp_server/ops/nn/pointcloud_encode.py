"""The arithmetic of the point-cloud ops: pseudo-image coordinates, encoding and quantisation of points.

All of it is float32, each operation rounded on its own, so that every way of computing it gives the same bits:

- P0' = (P0 - back) / (front - back), P1' and P2' alike, P3' = (P3 - lower) / (upper - lower), P4' = P4
- Q = clip(nearbyint(P' / scale), -128, 127), ties to even; NaN becomes 0
- x cell = floor((P0 - back) / voxel_x), y cell = floor((P1 - right) / voxel_y)

P4' is computed as (P4 - 0) / 1, which changes no bit. There is a compiled loop and, without numba, the same in
numpy. Source: DSP sample package, CenterPoint pre-processing (J5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hbrt.kernels import Kernel
from hbrt.pointcloud_types import NO_CELL, hbDSPPointCloudParam

BLOCK = 256
"""Points that the compiled loop takes apart at a time: their numbers, by dimension, fit the host's first cache."""

ROUNDER = np.float32(12582912.0)
"""1.5 * 2^23: adding it and taking it away rounds what lies within 2^22 to a whole number, ties to even."""

LOWEST, HIGHEST = np.float32(-128), np.float32(127)

_NO_WORDS, _NO_PLACES = np.empty(0, np.int32), np.empty(0, np.int8)


@dataclass(frozen=True)
class Encoder:
    """The constants of a parameter structure, as float32 arrays that the loop and numpy read alike.

    Attributes:
        lows: (5,) what is subtracted from each number of a point.
        highs: (3,) ends of the ranges of x, y and z.
        spans: (5,) what each difference is divided by.
        cells: (4,) size of a cell along x and y, number of cells along x and y.
        scale: (1,) quantisation scale.
        all: (18,) all of them, in this order: one argument for the loop.
    """

    lows: NDArray[np.float32]
    highs: NDArray[np.float32]
    spans: NDArray[np.float32]
    cells: NDArray[np.float32]
    scale: NDArray[np.float32]
    all: NDArray[np.float32]

    @classmethod
    def of(cls, param: hbDSPPointCloudParam) -> Encoder:
        """The constants of a structure; it is not checked here."""
        lows = np.array([param.back, param.right, param.bottom, param.lower, 0], np.float32)
        ends = np.array([param.front, param.left, param.top, param.upper, 1], np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            spans = ends - lows
        cells = np.array([param.voxel_x, param.voxel_y, param.grid_x, param.grid_y], np.float32)
        scale = np.array([param.scale], np.float32)
        return cls(lows, ends[:3], spans, cells, scale, np.concatenate([lows, ends[:3], spans, cells, scale]))


def encode_points(points: NDArray[np.float32], words: NDArray[np.int32], constants: Encoder) -> None:
    """Points to words.

    Args:
        points: (n, 4) or (n, 5) float32, C order.
        words: (n, 2) or (n, 3) int32, C order: x cell << 16 | y cell, or NO_CELL for a point that is outside; four
            int8, the first in the lowest byte; the fifth number's int8 in the lowest byte, the others 0.
        constants: Of the parameter structure.
    """
    if _encode_compiled(points, words.reshape(-1), _NO_PLACES, constants):
        return
    count, dims = points.shape
    numbers = np.zeros((count, 4 * words.shape[1] - 4), np.int8)
    numbers[:, :dims] = quantise(points, constants)
    words[:, 0] = coordinates(points, constants)
    words[:, 1:] = numbers.view("<i4")


def encode_pillars(points: NDArray[np.float32], places: NDArray[np.int8], constants: Encoder) -> None:
    """Places that hold points to places that hold their quantised numbers.

    Args:
        points: (n, 4) or (n, 5) float32, C order. A place is empty when its point is outside the range, as NaN is.
        places: (n, 4) or (n, 5) int8, C order; an empty place becomes 0.
        constants: Of the parameter structure.
    """
    if not _encode_compiled(points, _NO_WORDS, places.reshape(-1), constants):
        is_empty = coordinates(points, constants) == NO_CELL
        places[:] = np.where(is_empty[:, np.newaxis], np.int8(0), quantise(points, constants))


def quantise(points: NDArray[np.float32], constants: Encoder) -> NDArray[np.int8]:
    """Encode and quantise every number of every point: (n, dims) int8."""
    dims = points.shape[1]
    with np.errstate(all="ignore"):
        steps = (points - constants.lows[:dims]) / constants.spans[:dims] / constants.scale
        np.clip(steps, LOWEST, HIGHEST, out=steps)
        np.rint(steps, out=steps)
    steps[np.isnan(steps)] = 0
    return steps.astype(np.int8)


def coordinates(points: NDArray[np.float32], constants: Encoder) -> NDArray[np.int32]:
    """The coordinate word of every point: (n,) int32."""
    position = points[:, :3]
    with np.errstate(all="ignore"):
        cells = (position[:, :2] - constants.lows[:2]) / constants.cells[:2]
        is_inside = ((position >= constants.lows[:3]) & (position < constants.highs)).all(axis=1)
        is_inside &= (cells < constants.cells[2:]).all(axis=1)
    cells[~is_inside] = 0
    x, y = cells.astype(np.int32).T
    result: NDArray[np.int32] = np.where(is_inside, x << 16 | y, np.int32(NO_CELL))
    return result


# Where the compiled loop keeps a block: nothing else runs on a core while it does.
_LANES, _STEPS = np.empty((5, BLOCK), np.float32), np.empty((6, BLOCK), np.int32)


def _encode_compiled(
    points: NDArray[np.float32], words: NDArray[np.int32], places: NDArray[np.int8], constants: Encoder
) -> bool:
    """Run the compiled loop; False without numba."""
    compiled = _encode.compiled()
    if compiled is None:
        return False
    compiled(points.reshape(-1), words, places, points.shape[1], constants.all, _LANES, _STEPS)
    return True


@Kernel
def _encode(  # noqa: C901, PLR0912 - one dimension after the other, as on the chip
    points: NDArray[np.float32],
    words: NDArray[np.int32],
    places: NDArray[np.int8],
    dims: int,
    constants: NDArray[np.float32],
    lanes: NDArray[np.float32],
    steps: NDArray[np.int32],
) -> None:
    """Flat points to flat words, or to flat places when there are no words; one of the two is empty.

    Short straight loops, of which the compiler makes vectors: constant strides, a select for a condition, no call.
    """
    lows, highs, spans, cells, scale = constants[:5], constants[5:8], constants[8:13], constants[13:17], constants[17]
    p0, p1, p2, p3, p4 = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    q0, q1, q2, q3, q4, coordinate = steps[0], steps[1], steps[2], steps[3], steps[4], steps[5]
    total = points.shape[0] // dims
    for first in range(0, total, 256):
        n = min(256, total - first)
        tile = points[first * dims : (first + n) * dims]
        if dims == 5:
            for i in range(n):
                p0[i] = tile[5 * i]
                p1[i] = tile[5 * i + 1]
                p2[i] = tile[5 * i + 2]
                p3[i] = tile[5 * i + 3]
                p4[i] = tile[5 * i + 4]
        else:
            for i in range(n):
                p0[i] = tile[4 * i]
                p1[i] = tile[4 * i + 1]
                p2[i] = tile[4 * i + 2]
                p3[i] = tile[4 * i + 3]
        for i in range(n):
            x, y, z = p0[i], p1[i], p2[i]
            cell_x, cell_y = (x - lows[0]) / cells[0], (y - lows[1]) / cells[1]
            inside = (x >= lows[0]) & (x < highs[0]) & (y >= lows[1]) & (y < highs[1]) & (z >= lows[2]) & (z < highs[2])
            inside &= (cell_x < cells[2]) & (cell_y < cells[3])
            coordinate[i] = (np.int32(cell_x) << 16) | np.int32(cell_y) if inside else np.int32(-1)
        for d in range(dims):
            lane, step = lanes[d], steps[d]
            low, span = lows[d], spans[d]
            for i in range(n):
                value = (lane[i] - low) / span / scale
                clipped = value if value > LOWEST else LOWEST  # noqa: FURB136 - min and max are no vectors
                clipped = clipped if clipped < HIGHEST else HIGHEST  # noqa: FURB136
                whole = np.int32((clipped + ROUNDER) - ROUNDER)
                step[i] = whole if value == value else np.int32(0)  # noqa: PLR0124 - false for NaN
        if words.shape[0] == 0:
            out = places[first * dims : (first + n) * dims]
            for i in range(n):
                keep = ~(coordinate[i] >> 31)  # 0 for no cell
                for d in range(dims):
                    out[dims * i + d] = steps[d, i] & keep
        elif dims == 5:
            out5 = words[first * 3 : (first + n) * 3]
            for i in range(n):
                out5[3 * i] = coordinate[i]
                out5[3 * i + 1] = (q0[i] & 255) | ((q1[i] & 255) << 8) | ((q2[i] & 255) << 16) | (q3[i] << 24)
                out5[3 * i + 2] = q4[i] & 255
        else:
            out4 = words[first * 2 : (first + n) * 2]
            for i in range(n):
                out4[2 * i] = coordinate[i]
                out4[2 * i + 1] = (q0[i] & 255) | ((q1[i] & 255) << 8) | ((q2[i] & 255) << 16) | (q3[i] << 24)
