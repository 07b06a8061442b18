"""CenterPoint and PointPillars on a board: both plans and the CPU reference against a slow voxelizer of this file."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from numpy.typing import NDArray

from arm_client import nn
from arm_client.arrays import BoardArray
from arm_client.client import Board
from arm_client.errors import CallerError, OpFailedError
from arm_client.nn.pointcloud import pointcloud
from arm_client.nn.pointcloud.config import PillarConfig
from arm_client.nn.pointcloud.reference import preprocess
from arm_client.nn.pointcloud.voxels import Voxelizer, coordinates
from hbrt.jit import Kernel, numba_module
from hbrt.nn_types import POINTCLOUD_TRANSPOSE
from tests.waiting import until

NAN, INF = math.nan, math.inf
# Four by three cells of 1 m, few places, so that every limit is met by a dozen points.
SMALL = PillarConfig(
    point_cloud_range=(-2.0, -1.5, -1.0, 2.0, 1.5, 1.0),
    voxel_size=(1.0, 1.0),
    intensity_range=(0.0, 10.0),
    dims=5,
    slot_major=True,
    max_voxels=3,
    max_points=2,
    max_input_points=64,
)
SMALLS = {
    "centerpoint": SMALL,
    "pointpillars": SMALL.changed(dims=4, slot_major=False),
    "pillar-major, 5 numbers": SMALL.changed(slot_major=False),
    "slot-major, 4 numbers": SMALL.changed(dims=4, scale=0.3),
}


class Expected(NamedTuple):
    features: NDArray[np.int8]
    coordinates: list[list[int]]
    counts: list[int]


def oracle(points: NDArray[np.float32], config: PillarConfig) -> Expected:
    """Point by point and number by number, in scalars of float32."""
    f32 = np.float32
    back, right, bottom, front, left, top = map(f32, config.point_cloud_range)
    lower, upper = map(f32, config.intensity_range)
    pillars: dict[tuple[int, int], int] = {}
    rows: list[list[int]] = []
    counts: list[int] = []
    features = np.zeros(config.feature_shape[1:], np.int8)
    with np.errstate(all="ignore"):
        for point in points:
            x, y, z = point[:3]
            if not (back <= x < front and right <= y < left and bottom <= z < top):
                continue
            at = int((x - back) / f32(config.voxel_size[0])), int((y - right) / f32(config.voxel_size[1]))
            if at[0] >= config.grid[0] or at[1] >= config.grid[1]:
                continue
            if at not in pillars:
                if len(rows) < config.max_voxels:
                    rows.append([0, 0, at[1], at[0]])
                    counts.append(0)
                pillars[at] = len(rows) - 1
            pillar = pillars[at]
            if counts[pillar] == config.max_points:
                continue
            encoded = [(x - back) / (front - back), (y - right) / (left - right), (z - bottom) / (top - bottom)]
            encoded += [(point[3] - lower) / (upper - lower), *point[4:]]
            for dim, value in enumerate(encoded):
                steps = float(value / f32(config.scale))
                number = 0 if math.isnan(steps) else round(min(max(steps, -128.0), 127.0))
                place = (counts[pillar], pillar) if config.slot_major else (pillar, counts[pillar])
                features[(dim, *place)] = number
            counts[pillar] += 1
    return Expected(features, rows, counts)


def same(got: Any, expected: Expected) -> None:
    count = len(expected.coordinates)
    assert got.voxel_count == count
    assert got.num_points_per_voxel.tolist() == expected.counts
    assert got.coordinates.shape == (1, 1, len(got.coordinates[0, 0]), 4)
    assert got.coordinates[0, 0, :count].tolist() == expected.coordinates
    assert (np.asarray(got.coordinates)[0, 0, count:] == -1).all()
    assert got.features.dtype == np.int8
    assert np.array_equal(got.features[0], expected.features)


def identical(got: Any, expected: Any) -> None:
    for mine, theirs in zip(got, expected, strict=True):
        assert np.array_equal(mine, theirs)


def cloud(rows: list[list[float]], config: PillarConfig) -> NDArray[np.float32]:
    return np.array(rows, np.float32).reshape(-1, 5)[:, : config.dims]


def numbers() -> st.SearchStrategy[float]:
    borders = [-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, -0.0, float(np.nextafter(np.float32(1), np.float32(0)))]
    return st.one_of(
        st.sampled_from([*borders, NAN, INF, -INF, 3.4e38]), st.floats(-2.5, 2.5, width=32), st.floats(width=32)
    )


CLOUDS = st.lists(st.lists(numbers(), min_size=5, max_size=5), max_size=24)


@pytest.fixture
def arm_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How this process voxelizes; the cores of the board decide for themselves."""
    if request.param == "numpy":
        monkeypatch.setattr(Kernel, "compiled", lambda _: None)
    elif numba_module() is None:
        pytest.skip("numba is not installed (extra pointcloud)")
    return str(request.param)


@pytest.fixture
def pipelines(request: pytest.FixtureRequest, dsp_board: Board) -> list[nn.PillarPipeline]:
    """One for each plan, and one for both: all examples of a test go through the same buffers."""
    return [nn.PillarPipeline(dsp_board, SMALLS[request.param]) for _ in range(3)]


@pytest.mark.parametrize(
    ("arm_way", "pipelines"), [*(("compiled", name) for name in SMALLS), ("numpy", "centerpoint")], indirect=True
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=CLOUDS, plan=st.sampled_from([1, 2]), from_ddr=st.booleans())
@example(rows=[], plan=1, from_ddr=False)
@example(rows=[[0.1, 0.2, 0.3, 4, 0.5]], plan=2, from_ddr=False)  # one point
@example(rows=[[0.1, 0.2, 0.3, i, 0.5] for i in range(9)], plan=1, from_ddr=False)  # all in one cell
@example(rows=[[x - 1.5, y - 1.0, 0, 1, 0] for y in range(3) for x in range(4)], plan=2, from_ddr=True)  # many cells
@example(rows=[[NAN] * 5, [INF] * 5, [-INF] * 5, [0, 0, 0, NAN, INF]], plan=1, from_ddr=True)
def test_three_ways_and_a_slow_voxelizer_agree(
    arm_way: str, pipelines: list[nn.PillarPipeline], rows: list[list[float]], plan: pointcloud.Plan, *, from_ddr: bool
) -> None:
    config = pipelines[0].config
    points = cloud(rows, config)
    expected = oracle(points, config)
    same(preprocess(points, config), expected)
    same(pipelines[0].process(points, plan=1), expected)
    same(pipelines[1].process(points, plan=2), expected)
    same(pipelines[2].process(points, plan=plan, from_ddr=from_ddr), expected)


@settings(max_examples=60)
@given(rows=CLOUDS, cuts=st.lists(st.integers(0, 24), max_size=4), name=st.sampled_from(list(SMALLS)))
def test_a_sweep_may_come_in_parts(rows: list[list[float]], cuts: list[int], name: str) -> None:
    config = SMALLS[name]
    points = cloud(rows, config)
    expected = oracle(points, config)
    for is_compiled in {False, numba_module() is not None}:
        table = np.empty((config.max_voxels, 4), np.int32)
        voxelizer = Voxelizer(config, table, compiled=is_compiled)
        places = np.zeros((config.places, config.dims), np.float32)
        edges = [0, *sorted(cuts), len(points)]
        for start, end in pairwise(edges):
            voxelizer.add_points(points[start:end], places)
        assert table[: voxelizer.count].tolist() == expected.coordinates
        assert voxelizer.num_points_per_voxel.tolist() == expected.counts


@pytest.fixture(scope="module")
def sweep() -> NDArray[np.float32]:
    return nn.lidar_sweep(1, sweeps=2, azimuths=600)


# Fewer pillars and places than the sweep wants, and more than one task per step.
CENTERPOINT = nn.CENTERPOINT.changed(max_voxels=4000, max_points=6)
POINTPILLARS = nn.POINTPILLARS.changed(max_voxels=2500, max_points=6, intensity_range=(0.0, 255.0))


@pytest.mark.parametrize(("call", "config"), [(nn.centerpoint, CENTERPOINT), (nn.pointpillars, POINTPILLARS)])
@pytest.mark.parametrize("plan", [1, 2])
@pytest.mark.parametrize("options", [{}, {"from_ddr": True}, {"core": 2, "priority": 7, "timeout": 30.0}])
def test_a_sweep_of_many_parts(
    dsp_board: Board,
    monkeypatch: pytest.MonkeyPatch,
    sweep: NDArray[np.float32],
    call: Any,
    config: PillarConfig,
    plan: int,
    options: dict[str, Any],
) -> None:
    monkeypatch.setattr(pointcloud, "PART_POINTS", 7680)
    points = sweep[:, : config.dims]
    expected = preprocess(points, config)
    assert expected.voxel_count == config.max_voxels
    assert expected.num_points_per_voxel.max() == config.max_points
    got = call(dsp_board, points, config, plan=plan, **options)
    assert isinstance(got.features, BoardArray)
    identical(got, expected)


@pytest.mark.parametrize(
    ("call", "dims", "shape"), [(nn.centerpoint, 5, (1, 5, 20, 40000)), (nn.pointpillars, 4, (1, 4, 40000, 20))]
)
def test_the_models_own_shapes(dsp_board: Board, call: Any, dims: int, shape: tuple[int, ...]) -> None:
    points = nn.lidar_sweep(2, dims=dims, sweeps=1)
    got = call(dsp_board, points)
    assert (got.features.shape, got.coordinates.shape) == (shape, (1, 1, 40000, 4))
    config = nn.CENTERPOINT if dims == 5 else nn.POINTPILLARS
    expected = preprocess(points, config)
    assert got.voxel_count > 0
    identical(got, expected)


def test_the_cores_without_numba_give_the_same_bits(
    dsp_board_factory: Any, monkeypatch: pytest.MonkeyPatch, sweep: NDArray[np.float32]
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    expected = preprocess(sweep, CENTERPOINT)
    with dsp_board_factory(fresh=True) as board:
        plan: pointcloud.Plan
        for plan in (1, 2):
            identical(nn.centerpoint(board, sweep, CENTERPOINT, plan=plan), expected)


def test_a_board_array_is_used_where_it_is(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = nn.PillarPipeline(dsp_board, SMALL)
    points = np.array([[0.1, 0.2, 0.3, 4, 0.5], [1.1, 0.2, 0.3, 4, 0.5]], np.float32)
    mine = pipeline.points[:2]
    mine[:] = points
    other = dsp_board.from_array(points)
    pipeline.points[:] = NAN
    same(pipeline.process(other), oracle(points, SMALL))
    assert np.isnan(pipeline.points).all()  # nothing was copied there
    mine[:] = points
    same(pipeline.process(mine), oracle(points, SMALL))
    same(pipeline.process(points.tolist()), oracle(points, SMALL))
    same(pipeline.process(other[::-1]), oracle(points[::-1], SMALL))
    del pipeline, mine, other


def test_what_an_earlier_sweep_left_is_gone(dsp_board: Board, sweep: NDArray[np.float32]) -> None:
    pipeline = nn.PillarPipeline(dsp_board, CENTERPOINT)
    plan: pointcloud.Plan
    for count, plan in ((len(sweep), 2), (50, 2), (20, 1), (len(sweep), 1), (50, 1), (0, 2)):
        identical(pipeline.process(sweep[:count], plan=plan), preprocess(sweep[:count], CENTERPOINT))
    del pipeline


def test_nothing_is_left_on_the_board(dsp_board: Board) -> None:
    before = dsp_board.live_bytes()
    got = nn.centerpoint(dsp_board, [[0.1, 0.2, 0.3, 4, 0.5]], SMALL)
    assert got.voxel_count == 1
    del got
    gc.collect()
    assert dsp_board.live_bytes() == before


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((3, 4)), r"points have the shape \(3, 4\), but a sweep for this model is \(n, 5\)\."),
        (np.zeros(5), r"points have the shape \(5,\), but"),
        ([[1.0, 2.0], [3.0]], "^The values are not an array: setting an array element with a sequence"),
        (np.zeros((2, 5), complex), "^The values are of type complex128: use real numbers, such as float32"),
        (np.zeros((2, 5), "M8[s]"), r"^The values are of type datetime64\[s\]: use real numbers"),
        (None, "^The values are of type object: use real numbers"),
        (np.zeros((65, 5)), "65 points exceed max_input_points, 64: pass fewer, or raise it in the conf"),
    ],
)
def test_points_that_do_not_fit(dsp_board: Board, points: Any, message: str) -> None:
    with pytest.raises(CallerError, match=message):
        nn.centerpoint(dsp_board, points, SMALL)
    with pytest.raises(CallerError, match=message):
        preprocess(points, SMALL)


def test_a_plan_that_is_none(dsp_board: Board) -> None:
    with pytest.raises(CallerError, match=r"Unknown plan 3: use 2 or 1\."):
        nn.pointpillars(dsp_board, np.zeros((0, 5)), SMALL, plan=3)  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="Unknown option prority"):
        nn.pointpillars(dsp_board, np.zeros((0, 5)), SMALL, prority=9)  # type: ignore[call-arg]
    with pytest.raises(CallerError, match="points have the shape"):
        preprocess(np.zeros((3, 4)), SMALL)


@pytest.fixture
def broken_transpose(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    param = PillarConfig.param

    def wrong(self: PillarConfig, step: int, **fields: int) -> Any:
        made = param(self, step, **fields)
        if step == POINTCLOUD_TRANSPOSE:
            made.dims = 3
        return made

    monkeypatch.setattr(PillarConfig, "param", wrong)
    yield
    monkeypatch.undo()


@pytest.mark.usefixtures("broken_transpose")
def test_an_op_that_refuses_leaves_no_task(dsp_board: Board, sweep: NDArray[np.float32]) -> None:
    with pytest.raises(OpFailedError, match="dims is 3"):
        nn.centerpoint(dsp_board, sweep, CENTERPOINT)
    until(lambda: not dsp_board.live_tasks())  # a core may still run what was let go


WAITS_FOR_ITS_POINTS = """
import time
from dsp_server import hb_dsp_env_init, hb_dsp_mem_map, hb_dsp_mem_unmap, hb_dsp_register_fn, hb_dsp_start
from hbrt.nn_types import hbDSPPointCloudParam

def op(input, output, tm):
    points = hb_dsp_mem_map(hbDSPPointCloudParam.from_buffer_copy(input).input, 1)
    while not points[0]:
        time.sleep(0.001)
    hb_dsp_mem_unmap(points)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x403, op, 0)
    hb_dsp_start()
"""


def test_what_a_core_still_uses_outlives_the_timeout(dsp_board_factory: Any, tmp_path: Path) -> None:
    image = tmp_path / "waits.py"
    image.write_text(WAITS_FOR_ITS_POINTS, encoding="utf-8")
    with dsp_board_factory(image=image, fresh=True) as board:
        points = board.empty((3, 5), np.float32)
        with pytest.raises(TimeoutError):
            nn.centerpoint(board, points, SMALL, timeout=0.05)
        gc.collect()
        assert board.live_bytes() > points.nbytes
        points.view(np.uint8)[:] = 1
        until(lambda: not board.live_tasks())
        gc.collect()
        assert board.live_bytes() == points.nbytes
        del points


def test_coordinates_by_loop_and_by_numpy_are_the_same(sweep: NDArray[np.float32]) -> None:
    with_nan = sweep.copy()
    with_nan[::7, :3] = NAN
    by_numpy = coordinates(with_nan, nn.CENTERPOINT, compiled=False)
    assert np.array_equal(coordinates(with_nan, nn.CENTERPOINT), by_numpy)
    assert (by_numpy == -1).sum() > len(sweep) // 8
