"""Voxelization, the CPU's part of point-cloud pre-processing: finds each point's pillar and place.

Pillars are numbered in the order in which points first fall into their cell. When all are taken, a point in a new cell
goes into the last one. A full pillar skips the point. There is a compiled loop and, without numba, the same in numpy; a
sweep may arrive in successive parts.

Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.1.1, the steps of voxelization.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arm_client.nn.pointcloud.config import PillarConfig
from hbrt.behavior import NO_CELL
from hbrt.jit import Kernel

_NO_POINTS, _NO_BYTES = np.empty(0, np.float32), np.empty(0, np.uint8)


class Voxelizer:
    """Numbers a sweep's pillars and puts its points in their places.

    Args:
        config: The model.
        coordinates: (max_voxels, 4) int32, written in place: rows (0, 0, y, x), and -1 for unused pillars.
        compiled: Use the compiled loops if available; the result is the same.

    Attributes:
        count: Number of pillars so far.
    """

    def __init__(self, config: PillarConfig, coordinates: NDArray[np.int32], *, compiled: bool = True) -> None:
        grid_x, grid_y = config.grid
        self._config = config
        self._coordinates = coordinates
        self._pillar_of = np.full(grid_x * grid_y, -1, np.int32)
        self._taken = np.zeros(config.max_voxels, np.int32)
        self._is_compiled = compiled
        self._coordinates[:] = -1
        self.count = 0

    @property
    def num_points_per_voxel(self) -> NDArray[np.int32]:
        """Return a copy of the number of points per pillar, (count,)."""
        return self._taken[: self.count].copy()

    def restart(self) -> None:
        """Start a new sweep."""
        self._pillar_of.fill(-1)
        self._taken[: self.count] = 0
        self._coordinates[: self.count] = -1
        self.count = 0

    def add_words(self, words: NDArray[np.int32], places: NDArray[np.int8]) -> None:
        """Place the sweep's next points, already encoded by the DSP.

        Args:
            words: (n, dims - 2) int32, C order: the coordinate, then the quantized numbers.
            places: (max_voxels * max_points, dims) int8, C order.
        """
        dims = self._config.dims
        if not self._add_compiled(words.reshape(-1), dims - 2, len(words), _NO_POINTS, places.reshape(-1), _NO_POINTS):
            self._add(words[:, 0], words[:, 1:].copy().view(np.int8)[:, :dims], places)

    def add_points(self, points: NDArray[np.float32], places: NDArray[np.float32]) -> None:
        """Place the sweep's next points unchanged.

        Args:
            points: (n, dims) float32, C order.
            places: (max_voxels * max_points, dims) float32, C order.
        """
        cells = coordinates(points, self._config, compiled=self._is_compiled)
        if not self._add_compiled(
            cells, 1, len(cells), points.reshape(-1), _NO_BYTES.view(np.int8), places.reshape(-1)
        ):
            self._add(cells, points, places)

    def _add_compiled(
        self,
        words: NDArray[np.int32],
        stride: int,
        count: int,
        points: NDArray[np.float32],
        bytes_out: NDArray[np.int8],
        points_out: NDArray[np.float32],
    ) -> bool:
        """Run the compiled loop; return False if there is none."""
        compiled = _voxelize.compiled() if self._is_compiled else None
        if compiled is None:
            return False
        config = self._config
        self.count = compiled(
            count,
            words,
            stride,
            points,
            config.dims,
            bytes_out,
            points_out,
            self._pillar_of,
            self._taken,
            self._coordinates,
            config.grid[0],
            config.max_points,
            *config.strides,
            self.count,
        )
        return True

    def _add(self, cells: NDArray[np.int32], records: NDArray[Any], places: NDArray[Any]) -> None:
        """Do the same in numpy: cells (n,), records (n, dims)."""
        is_inside = cells != NO_CELL
        pillars, slots = self._assign(cells[is_inside])
        has_room = slots < self._config.max_points
        slot_stride, pillar_stride = self._config.strides
        places[slots[has_room] * slot_stride + pillars[has_room] * pillar_stride] = records[is_inside][has_room]

    def _assign(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pillar and slot of each point; a slot of max_points or more means none."""
        x, y = cells >> 16, cells & 0xFFFF
        flat = y * self._config.grid[0] + x
        self._number_new(flat, x, y)
        pillars = self._pillar_of[flat].astype(np.int64)
        in_pillar_order = np.argsort(pillars, kind="stable")
        ordered = pillars[in_pillar_order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        lengths = np.diff(starts, append=len(ordered))
        slots = np.empty(len(pillars), np.int64)
        slots[in_pillar_order] = np.arange(len(ordered)) - np.repeat(starts, lengths)
        slots += self._taken[pillars]
        present = ordered[starts]
        self._taken[present] = np.minimum(self._taken[present] + lengths, self._config.max_points)
        return pillars, slots

    def _number_new(self, flat: NDArray[np.int32], x: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        """Assign each new cell a pillar, or the last one, in order of appearance."""
        unseen = np.flatnonzero(self._pillar_of[flat] < 0)
        first = np.sort(unseen[np.unique(flat[unseen], return_index=True)[1]])
        numbers = np.minimum(self.count + np.arange(len(first)), self._config.max_voxels - 1)
        self._pillar_of[flat[first]] = numbers
        new = first[: self._config.max_voxels - self.count]
        rows = self._coordinates[self.count : self.count + len(new)]
        rows[:, :2] = 0
        rows[:, 2], rows[:, 3] = y[new], x[new]
        self.count += len(new)


def coordinates(points: NDArray[np.float32], config: PillarConfig, *, compiled: bool = True) -> NDArray[np.int32]:
    """Return each point's coordinate word, x cell << 16 | y cell, or NO_CELL outside the range: (n,) int32.

    A cell is floor((value - low) / size), in float32. A cell that rounding puts outside the grid counts as none, as in
    public voxelizers.

    Args:
        points: (n, dims) float32, C order.
        config: The model.
        compiled: Use the compiled loop if available; the result is the same.
    """
    loop = _coordinates.compiled() if compiled else None
    lows, highs = config.lows[:3], config.highs[:3]
    sizes = np.array(config.voxel_size, np.float32)
    words = np.empty(len(points), np.int32)
    if loop is not None:
        loop(points.reshape(-1), config.dims, lows, highs, sizes, *config.grid, words)
        return words
    is_inside = np.ones(len(points), bool)
    for axis in range(3):
        values = points[:, axis]
        is_inside &= (values >= lows[axis]) & (values < highs[axis])
    for axis, (shift, cells) in enumerate(zip((16, 0), config.grid, strict=True)):
        with np.errstate(over="ignore"):
            quotient = np.where(is_inside, points[:, axis] - lows[axis], np.float32(0)) / sizes[axis]
        is_inside &= quotient < cells
        cell = quotient.astype(np.int32) << shift
        words = cell if axis == 0 else words | cell
    words[~is_inside] = NO_CELL
    return words


# Unsigned indices, because a negative one would mean "from the end" and need a test each time.


@Kernel
def _voxelize(
    total: int,
    words: NDArray[np.int32],
    stride: int,
    points: NDArray[np.float32],
    dims: int,
    bytes_out: NDArray[np.int8],
    points_out: NDArray[np.float32],
    pillar_of: NDArray[np.int32],
    taken: NDArray[np.int32],
    coordinates: NDArray[np.int32],
    grid_x: int,
    max_points: int,
    slot_stride: int,
    pillar_stride: int,
    count: int,
) -> int:
    """Place points: coordinates are words[stride * i], values come from flat `points` or, without it, the words."""
    for i in range(total):
        here = np.uint64(stride * i)
        cell = words[here]
        if cell < 0:
            continue
        x, y = cell >> 16, cell & 0xFFFF
        flat = np.uint32(y * grid_x + x)
        pillar = pillar_of[flat]
        if pillar < 0:
            if count < taken.shape[0]:
                pillar = count
                count += 1
                coordinates[pillar, 0] = 0
                coordinates[pillar, 1] = 0
                coordinates[pillar, 2] = y
                coordinates[pillar, 3] = x
            else:
                pillar = taken.shape[0] - 1
            pillar_of[flat] = pillar
        slot = taken[np.uint32(pillar)]
        if slot >= max_points:
            continue
        taken[np.uint32(pillar)] = slot + 1
        at = np.uint64(dims * (slot * slot_stride + pillar * pillar_stride))
        if points.shape[0] > 0:
            for k in range(dims):
                points_out[at + np.uint64(k)] = points[dims * i + k]
        else:
            four = words[here + np.uint64(1)]
            bytes_out[at] = four
            bytes_out[at + np.uint64(1)] = four >> 8
            bytes_out[at + np.uint64(2)] = four >> 16
            bytes_out[at + np.uint64(3)] = four >> 24
            if dims == 5:
                bytes_out[at + np.uint64(4)] = words[here + np.uint64(2)]
    return count


@Kernel
def _coordinates(
    points: NDArray[np.float32],
    dims: int,
    lows: NDArray[np.float32],
    highs: NDArray[np.float32],
    sizes: NDArray[np.float32],
    grid_x: int,
    grid_y: int,
    words: NDArray[np.int32],
) -> None:
    for i in range(words.shape[0]):
        x, y, z = points[dims * i], points[dims * i + 1], points[dims * i + 2]
        words[i] = -1
        if lows[0] <= x < highs[0] and lows[1] <= y < highs[1] and lows[2] <= z < highs[2]:
            cell_x, cell_y = np.int32((x - lows[0]) / sizes[0]), np.int32((y - lows[1]) / sizes[1])
            if cell_x < grid_x and cell_y < grid_y:
                words[i] = (cell_x << 16) | cell_y
