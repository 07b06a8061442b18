"""The compiled frame does what the iDMA engine does tile by tile: the same bytes everywhere, the same cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray

from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.tile_manager import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1, TileManager
from dsp_server.ops.nn import pointcloud_tiles
from dsp_server.ops.nn.pointcloud_encode import Encoder, encode_pillars, encode_points
from dsp_server.ops.nn.pointcloud_loops import ENCODE_TO_PLACES, ENCODE_TO_WORDS, TAKE_PLANES, frame, take_plane
from dsp_server.ops.nn.pointcloud_tiles import Buffers, Rectangle, Work, at_once, run_rectangle, tile_by_tile
from hbrt.jit import numba_module
from hbrt.profiles.work import LoopCost
from tests.dsp_server.ops.nn.test_pointcloud import param

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(numba_module() is None, reason="numba is not installed (extra pointcloud)")

CONSTANTS = Encoder.of(param(1))
CHANGED = 7  # what every output byte is before


class After(NamedTuple):
    """What a frame leaves behind."""

    target: bytes
    tcm: list[bytes]
    cycles: int
    work: list[int]
    busy_until: int
    next_handle: int
    outstanding: int


@pytest.fixture(autouse=True)
def _own_engines() -> Iterator[None]:
    before = cycles.install(CycleCounter()), descriptors.install(Idma())
    yield
    cycles.install(before[0])
    descriptors.install(before[1])


LOOP = LoopCost(5333, 1500, 1, 2, 3)


def work_of(kind: int, dims: int) -> Work:
    def encode(tile: NDArray[Any], results: NDArray[Any], index: int) -> None:
        del index
        if kind == ENCODE_TO_WORDS:
            encode_points(tile.reshape(-1, dims), results.reshape(-1, dims - 2), CONSTANTS)
        else:
            encode_pillars(tile.reshape(-1, dims), results.reshape(-1, dims), CONSTANTS)

    def take(tile: NDArray[Any], results: NDArray[Any], index: int) -> None:
        take_plane.loop(tile, results, dims, index)

    return Work(take if kind == TAKE_PLANES else encode, kind, dims, CONSTANTS.all, 16, LOOP)


def arrays_of(kind: int, dims: int, places: int) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(places)
    if kind == TAKE_PLANES:
        source: NDArray[Any] = random.integers(-128, 128, (places, dims)).astype(np.int8)
        return source, np.full((dims, places, 1), CHANGED, np.int8)
    source = random.normal(0, 5, (places, dims)).astype(np.float32)
    if kind == ENCODE_TO_PLACES:
        return source, np.full((1, places, dims), CHANGED, np.int8)
    return source, np.full((1, places, dims - 2), CHANGED, np.int32)


def run(kind: int, dims: int, rectangle: Rectangle, most_places: int, started: int, *, compiled: bool) -> After:
    counter, tm = CycleCounter(started), TileManager()
    idma = Idma(counter, tm)
    cycles.install(counter)
    descriptors.install(idma)
    idma.wait(idma.copy(bytearray(5), b"12345"))  # the engine has worked before
    source, target = arrays_of(kind, dims, rectangle.first + rectangle.rows * rectangle.pitch)
    work = work_of(kind, dims)
    sizes = (source[0].nbytes, target[0][0].nbytes)
    colors = (XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1)
    ins, outs = ([tm.allocate(most_places * size, color) for color in colors] for size in sizes)
    if compiled:
        function = frame.compiled()
        assert function is not None
        at_once(function, source, target, rectangle, most_places, Buffers(ins, outs), work)
    else:
        tile_by_tile(source, target, list(rectangle.cut(most_places)), Buffers(ins, outs), work)
    now, work_done, busy_until, outstanding = counter.cycles, counter.take_work(), idma.busy_until, idma.outstanding
    next_handle = idma.copy(bytearray(1), b"1")
    return After(
        target.tobytes(), [bytes(view) for view in ins + outs], now, work_done, busy_until, next_handle, outstanding
    )


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from([ENCODE_TO_WORDS, ENCODE_TO_PLACES, TAKE_PLANES]),
    dims=st.sampled_from([4, 5]),
    first=st.integers(0, 9),
    rows=st.integers(1, 7),
    columns=st.integers(1, 40),
    gap=st.integers(0, 5),
    most_places=st.integers(1, 90),
    tiles_a_call=st.integers(1, 5),
    started=st.integers(0, 500),
)
def test_the_compiled_frame_and_the_engine_leave_the_same_behind(
    kind: int,
    dims: int,
    first: int,
    rows: int,
    columns: int,
    gap: int,
    most_places: int,
    tiles_a_call: int,
    started: int,
) -> None:
    rectangle = Rectangle(first, rows, columns, columns + gap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pointcloud_tiles, "TILES_A_CALL", tiles_a_call)
        by_frame = run(kind, dims, rectangle, most_places, started, compiled=True)
    assert by_frame == run(kind, dims, rectangle, most_places, started, compiled=False)


def test_what_a_rectangle_leaves_out_keeps_what_it_was() -> None:
    rectangle = Rectangle(first=3, rows=2, columns=4, pitch=6)
    left = run(ENCODE_TO_PLACES, 4, rectangle, 3, 0, compiled=True).target
    places = np.frombuffer(left, np.int8).reshape(-1, 4)
    inside = [3, 4, 5, 6, 9, 10, 11, 12]
    assert (np.delete(places, inside, axis=0) == CHANGED).all()
    assert not (places[inside] == CHANGED).all(axis=1).any()


def test_an_op_with_transfers_under_way_goes_by_the_engine() -> None:
    tm, dims = TileManager(), 4
    idma = Idma(cycles.current(), tm)
    descriptors.install(idma)
    arrived = bytearray(3)
    idma.copy(arrived, b"abc")
    source, target = arrays_of(ENCODE_TO_WORDS, dims, 5)
    run_rectangle(tm, "ping_pong", source, target, Rectangle(0, 1, 5, 5), 2, work_of(ENCODE_TO_WORDS, dims))
    assert arrived == b"abc"  # issued before, so done before: handles follow one another
    assert idma.outstanding == 0
    assert tm.live() == []
