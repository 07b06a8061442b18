"""The point-cloud ops as a core runs them: words, pillars and planes, shares of TCM, refusals, without a board."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray

from dsp_server.hardware import cycles
from dsp_server.hardware.tcm import OutOfTcm
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.nn.pointcloud import hb_dsp_centerpoint, hb_dsp_pointpillars
from dsp_server.ops.nn.pointcloud_tiles import Rectangle
from hbrt.jit import Kernel, numba_module
from hbrt.nn_types import hbDSPPointCloudParam
from hbrt.status import Status
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.nn.conftest import FakeDdr, Op

POINTS, PILLARS, TRANSPOSE = 1, 2, 3
INT8, INT32 = np.dtype(np.int8), np.dtype(np.int32)
NAN, INF = math.nan, math.inf
OPS = [hb_dsp_centerpoint, hb_dsp_pointpillars]


@pytest.fixture(params=["compiled", "numpy"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(Kernel, "compiled", lambda _: None)
    elif numba_module() is None:
        pytest.skip("numba is not installed (extra pointcloud)")


both_ways = pytest.mark.usefixtures("_way")


def param(step: int, **fields: Any) -> hbDSPPointCloudParam:
    values: dict[str, Any] = {
        "dims": 5,
        "max_voxels": 6,
        "max_points": 3,
        "back": -8,
        "front": 8,
        "right": -4,
        "left": 4,
        "bottom": -2,
        "top": 2,
        "lower": 0,
        "upper": 100,
        "voxel_x": 0.5,
        "voxel_y": 1,
        "scale": 0.01,
        "grid_x": 32,
        "grid_y": 8,
        **fields,
    }
    return hbDSPPointCloudParam(step=step, **values)


def encoded(ddr: FakeDdr, rows: list[list[float]], **fields: Any) -> list[list[int]]:
    points = np.array(rows, np.float32)
    dims = points.shape[1]
    asked = param(POINTS, dims=dims, count=len(points), input=ddr.put(points), **fields)
    words = [ddr.run(op, asked, len(points) * (dims - 2), INT32) for op in OPS]
    assert words[0].tolist() == words[1].tolist()  # this step has no places, so both commands do the same
    return words[0].reshape(len(points), -1).tolist()


def word(*numbers: int) -> int:
    return int.from_bytes(bytes(number & 255 for number in numbers), "little", signed=True)


def cell(x: int, y: int) -> int:
    return x << 16 | y


def test_the_layout_of_the_structure() -> None:
    assert ctypes.sizeof(hbDSPPointCloudParam) == 96
    names = [field[0] for field in hbDSPPointCloudParam._fields_]
    assert [getattr(hbDSPPointCloudParam, name).offset for name in names] == [0, *range(8, 92, 4)]
    address = 0xFEDC_BA98_7654_3210
    assert bytes(hbDSPPointCloudParam(input=address))[:8] == address.to_bytes(8, "little")


@both_ways
def test_words_of_points(ddr: FakeDdr) -> None:
    got = encoded(
        ddr,
        [
            [-8, -4, -2, 0, 0],  # the near corner is inside
            [7.9, 3.9, 1.9, 100, 0.5],
            [0, 0, 0, 50, -0.25],
            [0.1, 0.2, 0.3, 1000, 7],  # beyond what int8 holds
            [0.1, 0.2, 0.3, -1000, -7],
            [0.1, 0.2, 0.3, INF, -INF],
            [0.1, 0.2, 0.3, NAN, NAN],
        ],
    )
    inside = word(51, 52, 58)
    assert got == [
        [cell(0, 0), 0, 0],
        [cell(31, 7), word(99, 99, 98, 100), 50],
        [cell(16, 4), word(50, 50, 50, 50), word(-25) & 255],
        [cell(16, 4), inside | word(0, 0, 0, 127), 127],
        [cell(16, 4), inside | word(0, 0, 0, -128), 128],
        [cell(16, 4), inside | word(0, 0, 0, 127), 128],
        [cell(16, 4), inside, 0],
    ]


@both_ways
@each(
    "outside",
    [
        [8, 0, 0],  # the far end is outside
        [0, 4, 0],
        [0, 0, 2],
        [-8.001, 0, 0],
        [0, 0, -2.001],
        [NAN, 0, 0],
        [0, NAN, 0],
        [0, 0, NAN],
        [INF, 0, 0],
        [0, -INF, 0],
        [3.4e38, 0, 0],
    ],
)
def test_points_outside_have_no_cell(ddr: FakeDdr, outside: list[float]) -> None:
    (first, *_), (second, *_) = encoded(ddr, [[*outside, 1], [0, 0, 0, 1]])
    assert (first, second) == (-1, cell(16, 4))


@both_ways
def test_a_cell_that_rounding_puts_beyond_the_grid_is_none(ddr: FakeDdr) -> None:
    below = float(np.nextafter(np.float32(8), np.float32(0)))
    quotient = (np.float32(below) - np.float32(-8)) / np.float32(0.5)
    assert quotient == 32.0  # rounded up to the number of cells
    ((coordinate, *_),) = encoded(ddr, [[below, 0, 0, 0]])
    assert coordinate == -1


@both_ways
def test_ties_of_quantization_go_to_even(ddr: FakeDdr) -> None:
    rows = [[0, 0, 0, value] for value in (0.5, 1.5, 2.5, -0.5, -1.5)]
    got = encoded(ddr, rows, lower=0, upper=1, scale=1)
    assert [row[1] >> 24 for row in got] == [0, 2, 2, 0, -2]


def floats() -> st.SearchStrategy[float]:
    return st.one_of(
        st.floats(width=32, allow_nan=True, allow_infinity=True),
        st.sampled_from([-8.0, 8.0, -4.0, 4.0, -2.0, 2.0, 0.5, 1.0, -0.0]),
        st.floats(-9, 9, width=32),
    )


@pytest.mark.skipif(numba_module() is None, reason="numba is not installed (extra pointcloud)")
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), dims=st.sampled_from([4, 5]))
def test_loop_numpy_tcm_and_ddr_give_the_same_bits(ddr: FakeDdr, data: st.DataObject, dims: int) -> None:
    rows = data.draw(st.lists(st.lists(floats(), min_size=dims, max_size=dims), min_size=1, max_size=12))
    points = np.array(rows, np.float32)
    scale = data.draw(st.sampled_from([0.01, 1 / 127, 1.0, 1e-30]))
    results = set()
    for flags in (0, 1):
        for is_compiled in (True, False):
            ddr.used_bytes = 0
            with pytest.MonkeyPatch.context() as patch:
                if not is_compiled:
                    patch.setattr(Kernel, "compiled", lambda _: None)
                address = ddr.put(points)
                asked = param(POINTS, dims=dims, count=len(points), input=address, scale=scale, flags=flags)
                words = ddr.run(hb_dsp_centerpoint, asked, len(points) * (dims - 2), INT32)
                asked = param(PILLARS, dims=dims, input=address, scale=scale, flags=flags)
                asked.max_voxels, asked.max_points, asked.voxel_count = len(points), 1, len(points)
                places = ddr.run(hb_dsp_centerpoint, asked, points.size, INT8)
            results.add((words.tobytes(), places.tobytes()))
            # The two steps agree with each other: an empty place is 0, any other has the words' numbers.
            numbers = words.reshape(len(points), -1)[:, 1:].copy().view(np.int8)[:, :dims]
            numbers[words.reshape(len(points), -1)[:, 0] == -1] = 0
            assert places.reshape(-1, dims).tolist() == numbers.tolist()
    assert len(results) == 1


def planes(values: NDArray[np.int8], op: Op, voxels: int, points: int) -> NDArray[np.int8]:
    """The whole transpose, by numpy's own."""
    order = (points, voxels) if op is hb_dsp_centerpoint else (voxels, points)
    return values.reshape(*order, -1).transpose(2, 0, 1)


@both_ways
@each("op", OPS)
@each("dims", [4, 5])
@each("first, count", [(0, 40), (3, 30), (39, 1), (7, 0)])
@each("pool_bytes", [103 * 1024, 600, 300])
@each("flags", [0, 1])
def test_planes_of_some_pillars(
    ddr: FakeDdr, op: Op, dims: int, first: int, count: int, pool_bytes: int, flags: int
) -> None:
    voxels, points = 40, 7
    values = np.random.default_rng(dims).integers(-128, 128, voxels * points * dims, np.int8)
    asked = param(TRANSPOSE, dims=dims, max_voxels=voxels, max_points=points, flags=flags)
    asked.first_voxel, asked.voxel_count, asked.input = first, count, ddr.put(values)
    ddr.tile_manager = TileManager(pool_bytes, pool_bytes)
    _, output = ddr.take(values.size)
    before = np.frombuffer(output, np.int8)
    before[:] = 99
    assert op(memoryview(bytearray(asked)), output, ddr.tile_manager) == 0
    expected = np.full_like(planes(values, op, voxels, points), 99)
    chosen = slice(first, first + count)
    part = (slice(None), slice(None), chosen) if op is hb_dsp_centerpoint else (slice(None), chosen)
    expected[part] = planes(values, op, voxels, points)[part]
    assert np.array_equal(before.reshape(expected.shape), expected)
    assert ddr.tile_manager.live() == []


KIB = 1024


@pytest.mark.parametrize(
    ("step", "dims", "shares_kib"),
    [
        (POINTS, 5, (50, 30)),  # 5:3
        (POINTS, 4, (64, 32)),  # 2:1
        (TRANSPOSE, 5, (75, 15)),  # 5:1
        (TRANSPOSE, 4, (72, 18)),  # 4:1
        (PILLARS, 5, (80, 20)),
        (PILLARS, 4, (80, 20)),
    ],
)
def test_shares_of_each_bank(
    ddr: FakeDdr, monkeypatch: pytest.MonkeyPatch, step: int, dims: int, shares_kib: tuple[int, int]
) -> None:
    taken: dict[int, list[int]] = {0: [], 1: []}
    allocate = TileManager.allocate

    def spy(self: TileManager, size_bytes: int, color: int, align: int) -> memoryview:
        taken[color].append(size_bytes)
        return allocate(self, size_bytes, color, align)

    monkeypatch.setattr(TileManager, "allocate", spy)
    count = 30_000
    asked = param(step, dims=dims, count=count, max_voxels=count, max_points=1, voxel_count=count)
    asked.input = ddr.put(np.zeros((count, dims), np.int8 if step == TRANSPOSE else np.float32))
    ddr.run(
        hb_dsp_centerpoint, asked, count * (dims - 2 if step == POINTS else dims), INT32 if step == POINTS else INT8
    )
    assert taken == {0: [share * KIB for share in shares_kib], 1: [share * KIB for share in shares_kib]}


def test_through_tcm_costs_fewer_modeled_cycles_than_straight_from_ddr(ddr: FakeDdr) -> None:
    spent = []
    points = np.zeros((20_000, 5), np.float32)
    address = ddr.put(points)
    for flags in (0, 1):
        before = cycles.current().cycles
        ddr.run(hb_dsp_centerpoint, param(POINTS, count=len(points), input=address, flags=flags), 60_000, INT32)
        spent.append(cycles.current().cycles - before)
    assert spent[0] < spent[1]


@each(
    "rectangle, most",
    [
        (Rectangle(0, 1, 10, 10), 3),
        (Rectangle(5, 4, 3, 20), 7),
        (Rectangle(2, 3, 10, 12), 4),
        (Rectangle(0, 20, 1, 40), 100),
        (Rectangle(0, 5, 0, 10), 4),
        (Rectangle(1, 2, 6, 6), 1),
    ],
)
def test_a_rectangle_is_cut_into_tiles_that_cover_it_once(rectangle: Rectangle, most: int) -> None:
    def places(part: Rectangle) -> list[int]:
        return [part.first + row * part.pitch + column for row in range(part.rows) for column in range(part.columns)]

    tiles = list(rectangle.cut(most))
    assert sorted(place for tile in tiles for place in places(tile)) == sorted(places(rectangle))
    assert all(1 <= tile.rows * tile.columns <= most for tile in tiles)


def test_no_points_and_no_pillars(ddr: FakeDdr) -> None:
    assert hb_dsp_centerpoint(memoryview(bytearray(param(POINTS))), memoryview(b""), ddr.tile_manager) == 0
    asked = param(TRANSPOSE, input=ddr.put(np.ones((18, 5), np.int8)))
    assert not ddr.run(hb_dsp_pointpillars, asked, 90, INT8).any()


@each(
    "step, fields, message",
    [
        (0, {}, r"Unknown step 0: use 1 \(encode points\), 2 \(encode pillars\) or 3 \(transpose\)\."),
        (POINTS, {"dims": 3}, r"dims is 3, but must be 4 or 5\."),
        (POINTS, {"flags": 2}, "flags 0x2 has unknown bits set: clear the structure before use."),
        (POINTS, {"count": -1}, "Invalid count -1: must be 0 or more points."),
        (POINTS, {"front": -8}, "back and front are not a valid float32 range"),
        (POINTS, {"left": NAN}, "right and left are not a valid float32 range"),
        (PILLARS, {"bottom": -INF}, "bottom and top are not a valid float32 range"),
        (POINTS, {"lower": 3e38, "upper": -3e38}, "lower and upper are not a valid float32 range"),
        (POINTS, {"voxel_x": 0}, r"voxel_x is 0\.0: must be finite and above 0\."),
        (POINTS, {"scale": INF}, "scale is inf: must be finite and above 0."),
        (POINTS, {"grid_y": 0}, r"grid_y is 0: the grid must have 1\.\.32767 cells per axis\."),
        (POINTS, {"grid_x": 32768}, "grid_x is 32768"),
        (TRANSPOSE, {"max_points": 0}, "max_voxels 6 and max_points 0 must be 1 or more."),
        (TRANSPOSE, {"max_voxels": 1 << 30}, "does not fit in an int32: make one of them smaller."),
        (TRANSPOSE, {"first_voxel": 4, "voxel_count": 3}, r"Pillars 4\.\.7 are outside the buffers' 6 pillars"),
        (PILLARS, {"first_voxel": -1}, r"Pillars -1\.\.-1 are outside"),
    ],
)
def test_a_wrong_field(ddr: FakeDdr, step: int, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hb_dsp_centerpoint(memoryview(bytearray(param(step, **fields))), memoryview(b""), ddr.tile_manager)


@each("step", [POINTS, PILLARS, TRANSPOSE])
def test_blocks_that_do_not_fit(ddr: FakeDdr, step: int) -> None:
    asked = param(step, count=18)
    asked.input = 0x1000
    _, output = ddr.take(18 * 12)
    assert hb_dsp_centerpoint(memoryview(bytearray(asked)), output, ddr.tile_manager) == Status.HB_ERR_MMAP_FAILED
    asked.input = ddr.put(np.zeros((18, 5), np.float32))
    with pytest.raises(ValueError, match="The output block has 8 bytes"):
        hb_dsp_centerpoint(memoryview(bytearray(asked)), output[:8], ddr.tile_manager)
    over = ddr.mem_map(asked.input, 18 * 20)
    assert isinstance(over, memoryview)
    with pytest.raises(ValueError, match="The output block overlaps the input"):
        hb_dsp_centerpoint(memoryview(bytearray(asked)), over[4:], ddr.tile_manager)
    with pytest.raises(ValueError, match="The input block has 95 bytes, but hbDSPPointCloudParam has 96"):
        hb_dsp_centerpoint(memoryview(bytearray(asked))[:95], output, ddr.tile_manager)


def test_no_room_in_tcm(ddr: FakeDdr) -> None:
    tm = TileManager(64, 64)
    address = ddr.put(np.zeros((18, 5), np.float32))
    _, output = ddr.take(18 * 12)
    for step in (POINTS, PILLARS):
        asked = param(step, count=18, voxel_count=6, input=address)
        with pytest.raises(OutOfTcm):
            hb_dsp_centerpoint(memoryview(bytearray(asked)), output, tm)
        assert tm.live() == []
