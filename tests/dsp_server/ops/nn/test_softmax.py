"""softmax through both paths, against a float64 oracle and the table of special values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from dsp_server.hardware.tcm import OutOfTcm
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.ops.nn import softmax, tiles
from dsp_server.ops.nn.softmax import hb_dsp_softmax, make_softmax, softmax_row
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.status import Status
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.nn.conftest import FakeDdr

FLOAT32 = np.dtype(np.float32)
PATHS: list[Literal["ping_pong", "ddr"]] = ["ping_pong", "ddr"]
INF, NAN = math.inf, math.nan


def oracle(values: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        exponentials = np.exp(values.astype(np.float64) - values.max())
    result: NDArray[np.float64] = exponentials / exponentials.sum()
    return result


def run(ddr: FakeDdr, values: NDArray[np.float32], path: Literal["ping_pong", "ddr"] = "ping_pong") -> NDArray[Any]:
    param = hbDSPSoftmaxParam(data_size=values.nbytes, input=ddr.put(values))
    return ddr.run(make_softmax(path), param, len(values), FLOAT32)


def row(count: int, spread: float = 4.0) -> NDArray[np.float32]:
    return (np.random.default_rng(count).standard_normal(count) * spread).astype(np.float32)


# What fits a bank of 103 KiB in whole blocks, results in the place of their input.
TILE = 103 * 1024 // 4 // tiles.BLOCK_ELEMENTS * tiles.BLOCK_ELEMENTS


@each("count, expected", [(TILE - 1, 1), (TILE, 1), (TILE + 1, 2), (2 * TILE + 1, 3)])
def test_the_sizes_below_lie_around_a_tile(count: int, expected: int) -> None:
    seen: list[int] = []
    values = np.zeros(count, np.float32)
    tiles.run_pass(TileManager(), "ping_pong", values, values, lambda _, __, first: seen.append(first))
    assert seen == [TILE * i for i in range(expected)]


@each(
    "count",
    [
        1,
        2,
        15,
        1023,
        1024,
        1025,
        TILE - 1,
        TILE,
        TILE + 1,
        2 * TILE,
        2 * TILE + 1,
        tiles.DDR_TILE_ELEMENTS + 1,
        70_001,
    ],
)
def test_both_paths_give_the_same_bits_near_the_oracle(ddr: FakeDdr, count: int) -> None:
    values = row(count)
    by_ping_pong, from_ddr = (run(ddr, values, path) for path in PATHS)
    assert by_ping_pong.tobytes() == from_ddr.tobytes()
    np.testing.assert_allclose(by_ping_pong, oracle(values), rtol=2e-7, atol=0)
    assert by_ping_pong.sum(dtype=np.float64) == pytest.approx(1.0, abs=3e-7)


def test_the_result_does_not_depend_on_the_size_of_tcm() -> None:
    values = row(20_000)
    results = []
    for pool_bytes in (5 * 1024, 20 * 1024, 103 * 1024):
        results.append(np.empty_like(values))
        softmax_row(TileManager(pool_bytes, pool_bytes), "ping_pong", values, results[-1])
    assert len({result.tobytes() for result in results}) == 1


@pytest.mark.long
def test_sixteen_million_elements() -> None:
    values = row(1 << 24)
    by_ping_pong, from_ddr = np.empty_like(values), np.empty_like(values)
    softmax_row(TileManager(), "ping_pong", values, by_ping_pong)
    softmax_row(TileManager(), "ddr", values, from_ddr)
    np.testing.assert_array_equal(by_ping_pong.view(np.uint32), from_ddr.view(np.uint32))
    np.testing.assert_allclose(by_ping_pong[::97], oracle(values)[::97], rtol=2e-7, atol=0)


@pytest.mark.parametrize("path", PATHS)
def test_no_elements(ddr: FakeDdr, path: Literal["ping_pong", "ddr"]) -> None:
    assert make_softmax(path)(memoryview(bytearray(hbDSPSoftmaxParam())), memoryview(b""), ddr.tile_manager) == 0


@each("path", PATHS)
@each(
    "values, expected",
    [
        ([0.0], [1.0]),
        ([3.4e38], [1.0]),
        ([7.0] * 4, [0.25] * 4),
        ([100.0, 99.0], oracle(np.array([100.0, 99.0])).tolist()),  # above 88.7, where exp alone overflows
        ([3.4e38, -3.4e38], [1.0, 0.0]),  # the difference does not fit float32
        ([0.0, -104.0, -128.0, -1000.0], [1.0, 0.0, 0.0, 0.0]),
        ([0.0, -100.0], [1.0, float(np.float32(math.exp(-100)))]),  # a subnormal result
        ([0.0, -INF], [1.0, 0.0]),
        ([-0.0, 0.0], [0.5, 0.5]),
        ([-INF], [NAN]),
        ([-INF, -INF], [NAN, NAN]),
        ([INF], [NAN]),
        ([INF, 0.0, -INF], [NAN, NAN, NAN]),
        ([NAN, 0.0], [NAN, NAN]),
        ([0.0, 1.0, NAN], [NAN, NAN, NAN]),
        ([NAN, INF, -INF], [NAN, NAN, NAN]),
    ],
)
def test_special_values(
    ddr: FakeDdr, values: list[float], expected: list[float], path: Literal["ping_pong", "ddr"]
) -> None:
    got = run(ddr, np.array(values, np.float32), path)
    np.testing.assert_allclose(got, np.array(expected, np.float32), rtol=2e-7, atol=0)


def test_a_nan_in_any_tile_reaches_all(ddr: FakeDdr) -> None:
    for position in (0, TILE, 3 * TILE - 1):
        values = row(3 * TILE)
        values[position] = NAN
        assert np.isnan(run(ddr, values)).all()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=hnp.arrays(np.float32, st.integers(1, 50), elements=st.floats(width=32)))
def test_agrees_with_a_plain_float64_softmax(ddr: FakeDdr, values: NDArray[np.float32]) -> None:
    ddr.used_bytes = 0
    with np.errstate(over="ignore", under="ignore"):
        expected = oracle(values).astype(np.float32)
    smallest_normal = float(np.finfo(np.float32).smallest_normal)
    got = run(ddr, values)
    np.testing.assert_allclose(got, expected, rtol=2e-7, atol=2**-22 * smallest_normal)


def test_in_place(ddr: FakeDdr) -> None:
    values = row(3 * TILE + 5)
    expected = run(ddr, values)
    for path in PATHS:
        phy_addr, block = ddr.take(values.nbytes)
        block[:] = values.tobytes()
        param = hbDSPSoftmaxParam(data_size=values.nbytes, input=phy_addr)
        assert make_softmax(path)(memoryview(bytearray(param)), block, ddr.tile_manager) == 0
        assert bytes(block) == expected.tobytes()


def test_an_output_across_its_input_is_refused(ddr: FakeDdr) -> None:
    phy_addr, block = ddr.take(4096)
    param = hbDSPSoftmaxParam(data_size=2048, input=phy_addr)
    with pytest.raises(ValueError, match=r"^The output block overlaps the input data"):
        hb_dsp_softmax(memoryview(bytearray(param)), block[4:], ddr.tile_manager)


def test_an_address_outside_every_block(ddr: FakeDdr) -> None:
    param = memoryview(bytearray(hbDSPSoftmaxParam(data_size=64, input=0x1000)))
    assert hb_dsp_softmax(param, memoryview(bytearray(64)), ddr.tile_manager) == Status.HB_ERR_MMAP_FAILED


REMEDY = "allocate a block of that size and fill in the structure there."


@pytest.mark.parametrize(
    ("data_size", "address", "param_bytes", "output_bytes", "message"),
    [
        (-4, 0, 16, 64, "Invalid data_size -4: must be 4 bytes per float32 value."),
        (10, 0, 16, 64, "Invalid data_size 10: must be 4 bytes per float32 value."),
        (
            64,
            2,
            16,
            64,
            "The float32 data at 0x800000002 is not aligned: its address must be a multiple of 4.",
        ),
        (
            64,
            0,
            16,
            60,
            "The output block has 60 bytes, but 16 float32 results take 64: allocate a larger one.",
        ),
        (
            64,
            0,
            12,
            64,
            f"The input block has 12 bytes, but hbDSPSoftmaxParam has 16: {REMEDY}",
        ),
    ],
)
def test_refusals(
    ddr: FakeDdr, data_size: int, address: int, param_bytes: int, output_bytes: int, message: str
) -> None:
    base, _ = ddr.take(128)
    param = memoryview(bytearray(hbDSPSoftmaxParam(data_size=data_size, input=base + address)))[:param_bytes]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared below
        hb_dsp_softmax(param, memoryview(bytearray(output_bytes)), ddr.tile_manager)
    assert str(caught.value) == message


def test_without_room_in_tcm(ddr: FakeDdr) -> None:
    ddr.tile_manager = TileManager(2048, 2048)
    with pytest.raises(OutOfTcm):
        run(ddr, row(5000))
    assert len(run(ddr, row(5000), "ddr")) == 5000


@each("pool_bytes", [4 * 5000, 4 * 5000 + 64, 103 * 1024])
def test_a_row_that_fits_a_bank_crosses_the_bus_once(ddr: FakeDdr, pool_bytes: int) -> None:
    values = row(5000)
    expected = run(ddr, values, "ddr")
    ddr.tile_manager = TileManager(pool_bytes, pool_bytes)
    np.testing.assert_array_equal(run(ddr, values), expected, strict=True)
    assert ddr.tile_manager.live_count == 0


def test_the_path_comes_from_the_op_then_set_path(ddr: FakeDdr, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    original = softmax.softmax_row

    def spy(tm: Any, path: Any, *rest: Any) -> None:
        taken.append(path)
        original(tm, path, *rest)

    monkeypatch.setattr(softmax, "softmax_row", spy)

    def path_of(op: Any) -> str:
        ddr.run(op, hbDSPSoftmaxParam(data_size=8, input=ddr.put(row(2))), 2, FLOAT32)
        return taken.pop()

    try:
        assert path_of(hb_dsp_softmax) == "ping_pong"
        softmax.set_path("ddr")
        assert path_of(hb_dsp_softmax) == "ddr"
        assert path_of(make_softmax("ping_pong")) == "ping_pong"
    finally:
        softmax.set_path(None)
    assert path_of(hb_dsp_softmax) == "ping_pong"


@pytest.mark.parametrize("choose", [softmax.set_path, make_softmax])
def test_a_path_that_does_not_exist(choose: Any) -> None:
    with pytest.raises(ValueError, match=r"^Unknown data path 'tcm': use 'ping_pong' or 'ddr'\.$"):
        choose("tcm")
