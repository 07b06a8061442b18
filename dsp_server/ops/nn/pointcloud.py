"""Preprocessing of point clouds: CenterPoint, command 0x403, and PointPillars, command 0x404.

Each call is one step of a plan; the parameter structure says which. The two commands differ in the order in which
their pillar steps process the places. Between the steps the ARM side voxelizes, because that needs random access, for
which a core without a data cache is the wrong place. docs/pointcloud.md has the steps in order.

Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5.3 to 10.4.5.7, for plans, formulas and shares of TCM.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.errors import ParameterError
from dsp_server.hardware import cycles
from dsp_server.ops.nn.pointcloud_encode import Encoder, encode_pillars, encode_points
from dsp_server.ops.nn.pointcloud_loops import ENCODE_TO_PLACES, ENCODE_TO_WORDS, TAKE_PLANES, take_plane
from dsp_server.ops.nn.pointcloud_tiles import Compute, Rectangle, Work, run_rectangle
from dsp_server.ops.nn.tiles import (
    Path,
    array_at,
    current_path,
    output_array,
    read_param,
    refuse_overlap,
)
from hbrt.behavior import MAX_GRID, MAX_PLACES, POINT_DIMS
from hbrt.nn_types import (
    HB_DSP_POINTCLOUD_DDR_PATH,
    POINTCLOUD_ENCODE_PILLARS,
    POINTCLOUD_ENCODE_POINTS,
    POINTCLOUD_TRANSPOSE,
    hbDSPPointCloudParam,
)
from hbrt.profiles.work import Operations
from hbrt.status import Status

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

KIB = 1024
POINTS_A_TILE = {5: 50 * KIB // 20, 4: 64 * KIB // 16}
"""ENCODE_POINTS: 50 KiB of input and 30 KiB of output per bank (5:3); 64 KiB and 32 KiB (2:1)."""
PLACES_A_TILE = {5: 75 * KIB // 5, 4: 72 * KIB // 4}
"""TRANSPOSE: 75 KiB of input and 15 KiB of output per bank (5:1); 72 KiB and 18 KiB (4:1)."""
PILLAR_POINTS_A_TILE = {5: 80 * KIB // 20, 4: 80 * KIB // 16}
"""ENCODE_PILLARS: 80 KiB of input and 20 KiB of output per bank (4:1)."""

ENCODE_NUMBER = Operations(gather=1, alu=4, divide=2, pack=1)
"""Per number of 16 points: gather, subtract, two divisions, round, two of clip, pack."""
STORE_POINTS = Operations(select=1, store=1)
"""Per 16 encoded points."""
FIND_CELL = Operations(alu=8, divide=2, pack=1, move=1, store=1)
"""Per 16 points: eight comparisons, two divisions, pack, masked move, store."""
TAKE_PLANE = Operations(gather=2, select=1, store=1)
"""Per 64 places of a plane of the transpose: two gathers of 32 lanes, combine, store."""

FLOAT32, INT32, INT8 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int8)
NO_CONSTANTS = np.zeros(18, np.float32)

Op = Callable[[memoryview, memoryview, "TileManager"], int]


def make_pointcloud(name: str, *, slot_major: bool) -> Op:
    """Make an op over places in one order.

    Args:
        name: Name in the list of commands.
        slot_major: The order of the features is (max_points, max_voxels); else (max_voxels, max_points).
    """

    def op(input: memoryview, output: memoryview, tm: TileManager) -> int:
        """Run the step described by an hbDSPPointCloudParam, writing to the output block.

        Returns:
            0; HB_ERR_MMAP_FAILED if the step's input is not inside a single live block.

        Raises:
            ParameterError: a field of the structure is invalid, or the output block is too small or overlaps the input.
            OutOfTcm: a tile does not fit in the banks.
        """
        param = read_param(hbDSPPointCloudParam, input)
        check(param)
        path: Path = "ddr" if param.flags & HB_DSP_POINTCLOUD_DDR_PATH else current_path()
        if param.step == POINTCLOUD_ENCODE_POINTS:
            return _encode_points_step(param, output, tm, path)
        return _pillar_step(param, output, tm, path, _rectangle(param, slot_major=slot_major))

    op.__name__ = op.__qualname__ = name
    return op


hb_dsp_centerpoint = make_pointcloud("hb_dsp_centerpoint", slot_major=True)
hb_dsp_pointpillars = make_pointcloud("hb_dsp_pointpillars", slot_major=False)


def check(param: hbDSPPointCloudParam) -> None:
    """Refuse a structure that does not describe a step.

    Raises:
        ParameterError: names the field and its value.
    """
    if param.step not in STEPS:
        raise ParameterError(f"Unknown step {param.step}: use 1 (encode points), 2 (encode pillars) or 3 (transpose).")
    if param.dims not in POINT_DIMS:
        raise ParameterError(f"dims is {param.dims}, but must be 4 or 5.")
    if param.flags & ~HB_DSP_POINTCLOUD_DDR_PATH:
        raise ParameterError(f"flags {param.flags:#x} has unknown bits set: clear the structure before use.")
    if param.step == POINTCLOUD_ENCODE_POINTS:
        if param.count < 0:
            raise ParameterError(f"Invalid count {param.count}: must be 0 or more points.")
    else:
        _check_places(param)
    if param.step != POINTCLOUD_TRANSPOSE:
        _check_constants(param)


def _check_places(param: hbDSPPointCloudParam) -> None:
    if param.max_voxels < 1 or param.max_points < 1:
        raise ParameterError(f"max_voxels {param.max_voxels} and max_points {param.max_points} must be 1 or more.")
    if param.max_voxels * param.max_points * param.dims > MAX_PLACES:
        raise ParameterError(
            f"max_voxels {param.max_voxels} times max_points {param.max_points} times dims {param.dims} does not fit "
            "in an int32: make one of them smaller."
        )
    last = param.first_voxel + param.voxel_count
    if param.first_voxel < 0 or param.voxel_count < 0 or last > param.max_voxels:
        raise ParameterError(
            f"Pillars {param.first_voxel}..{last} are outside the buffers' {param.max_voxels} pillars: "
            "correct first_voxel and voxel_count."
        )


def _check_constants(param: hbDSPPointCloudParam) -> None:
    spans = Encoder.of(param).spans[:4].tolist()
    for span, name in zip(
        spans, ("back and front", "right and left", "bottom and top", "lower and upper"), strict=True
    ):
        if not (math.isfinite(span) and span > 0):
            raise ParameterError(f"{name} are not a valid float32 range: the second must be larger, and both finite.")
    for name in ("voxel_x", "voxel_y", "scale"):
        value = getattr(param, name)
        if not (math.isfinite(value) and value > 0):
            raise ParameterError(f"{name} is {value}: must be finite and above 0.")
    for name in ("grid_x", "grid_y"):
        if not 1 <= getattr(param, name) <= MAX_GRID:
            raise ParameterError(f"{name} is {getattr(param, name)}: the grid must have 1..{MAX_GRID} cells per axis.")


def _encode_points_step(param: hbDSPPointCloudParam, output: memoryview, tm: TileManager, path: Path) -> int:
    source = array_at(param.input, param.count * param.dims, FLOAT32)
    if source is None:
        return Status.HB_ERR_MMAP_FAILED
    word_count = param.dims - 2
    target = output_array(output, param.count * word_count, INT32)
    if not param.count:
        return 0
    refuse_overlap(source, target)
    constants = Encoder.of(param)

    def compute(points: NDArray[Any], words: NDArray[Any], _index: int) -> None:
        encode_points(points.reshape(-1, param.dims), words.reshape(-1, word_count), constants)

    run_rectangle(
        tm,
        path,
        source.reshape(-1, param.dims),
        target.reshape(1, -1, word_count),
        Rectangle(0, 1, param.count, param.count),
        POINTS_A_TILE[param.dims],
        _encoding(compute, ENCODE_TO_WORDS, param.dims, constants),
    )
    return 0


def _encoding(compute: Compute, kind: int, dims: int, constants: Encoder) -> Work:
    operations = Operations(*(dims * count for count in ENCODE_NUMBER)).plus(STORE_POINTS)
    if kind == ENCODE_TO_WORDS:
        operations = operations.plus(FIND_CELL)
    return Work(compute, kind, dims, constants.all, cycles.LANES_F32, cycles.loop_cost(operations))


def _rectangle(param: hbDSPPointCloudParam, *, slot_major: bool) -> Rectangle:
    """Return the places of the pillars to convert."""
    if slot_major:
        return Rectangle(param.first_voxel, param.max_points, param.voxel_count, param.max_voxels)
    first, columns = param.first_voxel * param.max_points, param.voxel_count * param.max_points
    return Rectangle(first, 1, columns, param.max_voxels * param.max_points)


def _pillar_step(
    param: hbDSPPointCloudParam, output: memoryview, tm: TileManager, path: Path, rectangle: Rectangle
) -> int:
    is_transpose = param.step == POINTCLOUD_TRANSPOSE
    dims, places = param.dims, param.max_voxels * param.max_points
    source = array_at(param.input, places * dims, INT8 if is_transpose else FLOAT32)
    if source is None:
        return Status.HB_ERR_MMAP_FAILED
    target = output_array(output, places * dims, INT8)
    if np.may_share_memory(source, target):
        raise ParameterError("The output block overlaps the input: use a separate block.")
    source = source.reshape(places, dims)
    if is_transpose:
        run_rectangle(tm, path, source, target.reshape(dims, places, 1), rectangle, PLACES_A_TILE[dims], _taking(dims))
        return 0
    constants = Encoder.of(param)

    def encode(tile: NDArray[Any], numbers: NDArray[Any], _index: int) -> None:
        encode_pillars(tile.reshape(-1, dims), numbers.reshape(-1, dims), constants)

    run_rectangle(
        tm,
        path,
        source,
        target.reshape(1, places, dims),
        rectangle,
        PILLAR_POINTS_A_TILE[dims],
        _encoding(encode, ENCODE_TO_PLACES, dims, constants),
    )
    return 0


def _taking(dims: int) -> Work:
    compiled = take_plane.compiled() or _take_plane_in_numpy

    def take(tile: NDArray[Any], plane: NDArray[Any], dim: int) -> None:
        compiled(tile, plane, dims, dim)

    return Work(take, TAKE_PLANES, dims, NO_CONSTANTS, cycles.LANES_8BIT, cycles.loop_cost(TAKE_PLANE))


def _take_plane_in_numpy(places: NDArray[np.int8], plane: NDArray[np.int8], dims: int, dim: int) -> None:
    plane[:] = places[dim::dims]


STEPS = (POINTCLOUD_ENCODE_POINTS, POINTCLOUD_ENCODE_PILLARS, POINTCLOUD_TRANSPOSE)
