"""The arithmetic of quantize and dequantize, against tables and numpy oracles, with no board."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from dsp_server.ops.nn import quanti
from hbrt.quantize import dequantize, quantize, round_half_away
from tests.each import each

DTYPES = [np.dtype(name) for name in ("int8", "uint8", "int16", "uint16", "int32")]
NARROW = DTYPES[:4]


def one(value: float, scale: float = 1.0, zero_point: int = 0, dtype: str = "int8", *, half_away: bool = False) -> int:
    result = quantize(
        np.array([value], np.float32),
        np.array([scale], np.float32),
        np.array([zero_point], np.int32),
        np.dtype(dtype),
        half_away=half_away,
    )
    assert result.dtype == dtype
    return int(result[0])


@each(
    "value, even, away",
    [
        (0.5, 0, 1),
        (1.5, 2, 2),
        (2.5, 2, 3),
        (-0.5, 0, -1),
        (-1.5, -2, -2),
        (-2.5, -2, -3),
        (0.49999997, 0, 0),  # the float32 just below the tie: adding 0.5 to it gives 1
        (0.50000006, 1, 1),
        (-126.5, -126, -127),
    ],
)
def test_ties(value: float, even: int, away: int) -> None:
    assert one(value) == even
    assert one(value, half_away=True) == away


def test_the_zero_point_is_added_before_the_rounding() -> None:
    assert one(0.5, zero_point=1) == 2  # 1.5 goes to 2; rounding first would give 0 + 1
    assert one(1.5, zero_point=1) == 2


@each("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@each("half_away", [False, True])
def test_saturation_and_infinities(dtype: str, half_away: bool) -> None:  # noqa: FBT001 - a pytest parameter
    limits = np.iinfo(dtype)
    for low in (float(limits.min) * 2 - 1, -3e38, -math.inf):
        assert one(low, dtype=dtype, half_away=half_away) == limits.min
    for high in (float(limits.max) * 2, 3e38, math.inf):
        assert one(high, dtype=dtype, half_away=half_away) == limits.max
    assert one(3e38, scale=1e-30, dtype=dtype, half_away=half_away) == limits.max  # the division overflows


@each("zero_point", [0, 7, 127])
def test_nan_becomes_the_zero_point(zero_point: int) -> None:
    assert one(math.nan, scale=0.1, zero_point=zero_point) == zero_point
    assert one(math.nan, scale=0.1, zero_point=zero_point, half_away=True) == zero_point


def test_the_division_is_float32() -> None:
    # 0.15 / 0.1 is a tie, 1.5, in float32, and not quite in exact arithmetic of the same two numbers.
    x, scale = np.float32(0.15), np.float32(0.1)
    assert float(x) / float(scale) != 1.5
    assert one(0.15, scale=0.1) == int(np.rint(x / scale))


@given(
    values=hnp.arrays(np.float32, st.integers(0, 40), elements=st.floats(width=32)),
    scale=st.floats(2.0**-100, 2.0**100, width=32),
    dtype=st.sampled_from(NARROW),
    data=st.data(),
)
def test_quantize_agrees_with_numpy(
    values: NDArray[np.float32], scale: float, dtype: np.dtype[Any], data: st.DataObject
) -> None:
    limits = np.iinfo(dtype)
    zero_point = data.draw(st.integers(limits.min, limits.max))
    with np.errstate(all="ignore"):
        steps = np.rint(values / np.float32(scale) + np.float32(zero_point))
        expected = np.where(np.isnan(values), zero_point, np.clip(steps, limits.min, limits.max)).astype(dtype)
    got = quantize(values, np.array([scale], np.float32), np.array([zero_point], np.int32), dtype)
    np.testing.assert_array_equal(got, expected, strict=True)


@given(values=hnp.arrays(np.float32, st.integers(0, 40), elements=st.floats(width=32, allow_nan=False)))
def test_round_half_away_agrees_with_exact_arithmetic(values: NDArray[np.float32]) -> None:
    def exact(value: float) -> float:
        if math.isinf(value):
            return value
        return math.copysign(math.floor(abs(value) + 0.5), value)  # float64 holds the sum exactly below 2^28

    small = values[np.abs(values) < 1 << 28]
    np.testing.assert_array_equal(round_half_away(small), [exact(float(value)) for value in small])


@each("dtype", DTYPES)
def test_dequantize_every_limit(dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.min + 1, 0, 1, limits.max], dtype)
    for zero_point in (limits.min, 0, limits.max):
        got = dequantize(values, np.array([0.1], np.float32), np.array([zero_point], np.int32))
        expected = np.array([int(value) - zero_point for value in values]).astype(np.float32) * np.float32(0.1)
        np.testing.assert_array_equal(got, expected, strict=True)


@each("dtype", NARROW)
@each("shift", [0, 1, 7, 31, 126])
def test_a_shift_is_exact_both_ways(dtype: np.dtype[Any], shift: int) -> None:
    scale = np.ldexp(np.float32(1), np.array([-shift]))
    limits = np.iinfo(dtype)
    values = np.linspace(limits.min, limits.max, 300).astype(dtype)
    zero = np.zeros(1, np.int32)
    real = dequantize(values, scale, zero)
    np.testing.assert_array_equal(real, values / 2.0**shift)
    np.testing.assert_array_equal(quantize(real, scale, zero, dtype), values, strict=True)


@given(
    channels=st.integers(1, 7),
    inner=st.integers(1, 9),
    start=st.integers(0, 100),
    count=st.integers(1, 60),
    is_long=st.booleans(),
)
def test_each_element_gets_its_channel(channels: int, inner: int, start: int, count: int, is_long: bool) -> None:  # noqa: FBT001 - given by hypothesis
    values = np.arange(channels) * 10
    expected = [values[(i // inner) % channels] for i in range(start, start + count)]
    with pytest.MonkeyPatch.context() as patch:
        if is_long:  # a period that is not written out
            patch.setattr(quanti, "LONGEST_PERIOD", 0)
        got = quanti.Channels(values, inner, start + count).of(start, count)
    np.testing.assert_array_equal(np.broadcast_to(got, count), expected)
