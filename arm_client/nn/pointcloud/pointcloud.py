"""Pre-processing of point clouds on the board: range filter, pillars, encoding, quantization, one plane per dimension.

Two plans, both bit-identical to `pointcloud_reference.preprocess`:

- plan 1: the CPU voxelizes the points; the DSP encodes and quantizes them in their pillars, then transposes.
- plan 2: the DSP computes coordinates, encodes and quantizes every point; the CPU voxelizes the results, half as many
  bytes, while the DSP works on the next part of the sweep; the DSP transposes.

`centerpoint` and `pointpillars` process one sweep; `PillarPipeline` many, keeping its buffers in device memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import sizeof
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.arrays import BoardArray, is_on_board
from arm_client.checks import deadline_of, need_known, refusal
from arm_client.client import ANY, Board
from arm_client.future import PendingCall
from arm_client.nn.arrays import as_array
from arm_client.nn.pointcloud.config import CENTERPOINT, POINTPILLARS, PillarConfig
from arm_client.nn.pointcloud.voxels import Voxelizer
from hbrt.nn_types import (
    HB_DSP_POINTCLOUD_DDR_PATH,
    POINTCLOUD_ENCODE_PILLARS,
    POINTCLOUD_ENCODE_POINTS,
    POINTCLOUD_TRANSPOSE,
    hbDSPPointCloudParam,
)

Plan: TypeAlias = Literal[1, 2]

PART_POINTS = 20 * 2560
"""Points per task of plan 2, a whole number of the op's tiles: the CPU starts when the first parts arrive."""

MIN_PILLARS = 1024
"""Below this number of pillars, a pillar step is one task: splitting it across cores would cost more than it saves."""


class Options(TypedDict, total=False):
    """Keyword arguments of a call.

    Attributes:
        from_ddr: The ops compute straight from DDR instead of through TCM; the result is the same.
        priority: 0..255, larger first; 0 by default.
        core: Core mask; 0, the default, for any core, in which case both share the work.
        timeout: Seconds for all tasks together; None, the default, for no limit.
    """

    from_ddr: bool
    priority: int
    core: int
    timeout: float | None


class Pillars(NamedTuple):
    """A sweep, ready for the model.

    Attributes:
        features: int8 with the configuration's `feature_shape`. Unused places are 0.
        coordinates: (1, 1, max_voxels, 4) int32, rows (0, 0, y, x); -1 in the rows of unused pillars.
        voxel_count: Number of pillars.
        num_points_per_voxel: (voxel_count,) int32, points in each pillar.
    """

    features: BoardArray
    coordinates: BoardArray
    voxel_count: int
    num_points_per_voxel: NDArray[np.int32]


def centerpoint(
    board: Board, points: ArrayLike, config: PillarConfig = CENTERPOINT, *, plan: Plan = 2, **options: Unpack[Options]
) -> Pillars:
    """Pre-process a sweep for CenterPoint with op 0x403.

    Args:
        board: Connection to a board.
        points: (n, 5) numbers: x, y, z in meters, intensity, time. A float32 board array in C order is used in place,
            anything else is copied.
        config: The model; its features are slot-major, (1, 5, 20, 40000) by default.
        plan: 2, which is faster, or 1; the result is the same.
        **options: See Options.

    Returns:
        New arrays in device memory.

    Raises:
        CallerError: arguments do not match. TimeoutError. OpFailedError: carries the op's text.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.5 and 10.4.5.7, CenterPoint and PointPillars.
    Emulator: docs/pointcloud.md lists what the public text does not specify.
    """
    return PillarPipeline(board, config).process(points, plan=plan, **options)


def pointpillars(
    board: Board, points: ArrayLike, config: PillarConfig = POINTPILLARS, *, plan: Plan = 2, **options: Unpack[Options]
) -> Pillars:
    """Pre-process a scan for PointPillars with op 0x404: (n, 4) points, features (1, 4, 40000, 20) by default.

    Arguments, errors and source are those of `centerpoint`.
    """
    return PillarPipeline(board, config).process(points, plan=plan, **options)


class PillarPipeline:
    """Pre-processes successive sweeps in buffers that stay in device memory. Not thread-safe.

    Args:
        board: Connection to a board.
        config: The model.

    Attributes:
        points: (max_input_points, dims) float32 in device memory. To avoid a copy, write the sweep here and pass
            `pipeline.points[:n]`.
    """

    def __init__(self, board: Board, config: PillarConfig) -> None:
        self.config = config
        self._board = board
        dims = config.dims
        self.points = board.empty((config.max_input_points, dims), np.float32)
        self._words = board.empty((config.max_input_points, dims - 2), np.int32)
        self._places = board.empty((config.places, dims), np.int8)
        self._features = board.empty(config.feature_shape, np.int8)
        self._coordinates = board.empty((1, 1, config.max_voxels, 4), np.int32)
        parts = -(-config.max_input_points // PART_POINTS)
        self._blocks = _parameter_blocks(board, max(parts, board.core_count))
        self._raw_places: BoardArray | None = None
        self._voxelizer = Voxelizer(config, np.asarray(self._coordinates).reshape(-1, 4))
        # Number of pillars that may hold data left by earlier sweeps.
        self._used = {"places": 0, "raw_places": 0, "features": 0}

    def process(self, points: ArrayLike, *, plan: Plan = 2, **options: Unpack[Options]) -> Pillars:
        """Pre-process a sweep.

        Args:
            points: (n, dims) numbers. A float32 board array in C order is used in place, anything else is copied.
            plan: 2 or 1.
            **options: See Options.

        Returns:
            Arrays owned by this object; the next sweep overwrites them.

        Raises:
            CallerError: points do not fit the configuration. TimeoutError. OpFailedError: carries the op's text.
        """
        if plan not in {1, 2}:
            raise refusal(f"Unknown plan {plan!r}: use 2 or 1.")
        need_known(options, Options)
        source = self._in_device_memory(points)
        run = _Run(self._board, self.config.command, self._blocks, options, (source, self))
        self._voxelizer.restart()
        if plan == 2:
            self._clear("places", self._places, 0)
            self._encode_and_voxelize(run, source)
        else:
            self._voxelize_and_encode(run, source)
        count = self._voxelizer.count
        # Pillars that only an earlier sweep used have places of 0, which clears that sweep's features.
        self._convert(run, POINTCLOUD_TRANSPOSE, self._places, self._features, max(count, self._used["features"]))
        self._used["features"] = count
        return Pillars(self._features, self._coordinates, count, self._voxelizer.num_points_per_voxel)

    def _in_device_memory(self, points: ArrayLike) -> BoardArray:
        given = as_array(points)
        self.config.need_sweep(given.shape)
        if is_on_board(given) and given.dtype == np.float32 and given.flags.c_contiguous:
            return given
        mine = cast("BoardArray", self.points[: len(given)])
        with np.errstate(over="ignore"):
            mine[...] = given
        return mine

    def _encode_and_voxelize(self, run: _Run, source: BoardArray) -> None:
        """Plan 2: the DSP encodes parts of the sweep, and the CPU voxelizes each as it arrives."""
        param = self.config.param(POINTCLOUD_ENCODE_POINTS)
        address = source.phy_addr
        places, parts = np.asarray(self._places), []
        with run.tasks() as tasks:
            for index, start in enumerate(range(0, len(source), PART_POINTS)):
                part = cast("BoardArray", self._words[start : min(start + PART_POINTS, len(source))])
                param.count = len(part)
                param.input = address + start * source.strides[0]
                tasks.append(run.submit(index, param, part))
                parts.append(np.asarray(part))
            for encoded in parts:
                run.collect(tasks)
                self._voxelizer.add_words(encoded, places)
        self._used["places"] = self._voxelizer.count

    def _voxelize_and_encode(self, run: _Run, source: BoardArray) -> None:
        """Plan 1: the CPU voxelizes the points, and the DSP encodes them in their places."""
        if self._raw_places is None:
            self._raw_places = self._board.empty(self._places.shape, np.float32)
            self._raw_places[:] = np.nan
        self._clear("raw_places", self._raw_places, np.nan)
        self._voxelizer.add_points(np.asarray(source), np.asarray(self._raw_places))
        count = self._used["raw_places"] = self._voxelizer.count
        # Empty places are encoded as 0, which clears what an earlier sweep left.
        most = max(count, self._used["places"], self._used["features"])
        self._convert(run, POINTCLOUD_ENCODE_PILLARS, self._raw_places, self._places, most)
        self._used["places"] = count

    def _clear(self, name: str, buffer: BoardArray, value: float) -> None:
        """Clear the places of pillars that an earlier sweep used."""
        config, used = self.config, self._used[name]
        by_pillar = np.asarray(buffer).reshape(*config.feature_shape[2:], config.dims)
        (by_pillar[:, :used] if config.slot_major else by_pillar[:used])[...] = value
        self._used[name] = 0

    def _convert(self, run: _Run, step: int, source: BoardArray, target: BoardArray, voxel_count: int) -> None:
        """Run a pillar step, divided among the cores."""
        shares = self._board.core_count if voxel_count >= MIN_PILLARS else 1
        each = -(-voxel_count // shares)
        param = self.config.param(step, input=source.phy_addr)
        with run.tasks() as tasks:
            for index in range(shares if voxel_count else 0):
                param.first_voxel = index * each
                param.voxel_count = min(each, voxel_count - index * each)
                tasks.append(run.submit(index, param, target))
            while tasks:
                run.collect(tasks)


class _Block(NamedTuple):
    """A parameter block in device memory, and its bytes."""

    array: BoardArray
    view: memoryview


def _parameter_blocks(board: Board, count: int) -> list[_Block]:
    blocks: BoardArray = board.empty((count, sizeof(hbDSPPointCloudParam)), np.uint8)
    return [_Block(block, memoryview(block)) for block in blocks]


class _Run:
    """The calls of one sweep: their parameters, how they are submitted, and their time limit."""

    def __init__(self, board: Board, command: int, blocks: list[_Block], options: Options, used: object) -> None:
        self._board, self._command, self._blocks, self._used = board, command, blocks, used
        self._flags = HB_DSP_POINTCLOUD_DDR_PATH if options.get("from_ddr") else 0
        self._priority, self._core = options.get("priority", 0), options.get("core", ANY)
        self._deadline = deadline_of(options.get("timeout"))

    def submit(self, index: int, param: hbDSPPointCloudParam, output: BoardArray) -> PendingCall:
        """Queue a step; `index` names its parameter block, which no running task may use."""
        param.flags = self._flags
        block = self._blocks[index]
        block.view[:] = memoryview(param).cast("B")
        return self._board.post(
            self._command, block.array, output, priority=self._priority, core=self._core, keep=self._used
        )

    def collect(self, tasks: list[PendingCall]) -> None:
        """Wait for the oldest task."""
        left = None if self._deadline is None else max(self._deadline - time.monotonic(), 0)
        tasks.pop(0).finish(left)

    @contextmanager
    def tasks(self) -> Iterator[list[PendingCall]]:
        """Yield a list of pending tasks; tasks left in it after a failure are released."""
        tasks: list[PendingCall] = []
        try:
            yield tasks
        except BaseException:
            while tasks:
                tasks.pop().cancel()
            raise
