"""Real numbers to integers and back: the vendor's rounding, each type's limits, SHIFT as the SCALE that it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, strategies as st

from arm_client.dnn.spec.dtypes import LIMITS
from hbrt.dnn_types import hbDNNDataType
from hbrt.models.spec.quantization import as_shift, dequantize, quantize
from hbrt.models.spec.spec import Quantization, QuantizationKind
from tests.each import each

SCALE, SHIFT = QuantizationKind.SCALE, QuantizationKind.SHIFT


def rule(*scales: float, zero: tuple[int, ...] = (0,), axis: int = 0) -> Quantization:
    return Quantization(SCALE, np.array(scales, np.float32), np.array(zero, np.int32), axis=axis)


def half_to_even(value: Fraction) -> int:
    return round(value)  # Python's own, exact on fractions


@given(
    st.lists(st.integers(-(1 << 12), 1 << 12), min_size=1, max_size=20),
    st.integers(-4, 6),
    st.integers(-128, 127),
)
def test_rounds_half_to_even_after_the_zero_point_was_added(eighths: list[int], exponent: int, zero: int) -> None:
    scale = Fraction(2) ** exponent
    values = [Fraction(eighth, 8) * scale for eighth in eighths]  # exact in float32, many of them ties
    stored = quantize([float(value) for value in values], rule(float(scale), zero=(zero,)), np.int8)
    assert stored.tolist() == [min(127, max(-128, half_to_even(value / scale + zero))) for value in values]


def test_ties_where_onnx_ends_elsewhere() -> None:
    values, odd = [0.25, -0.25, 0.75], rule(0.5, zero=(1,))  # x / scale is 0.5, -0.5, 1.5
    assert quantize(values, odd, np.int8).tolist() == [2, 0, 2]
    onnx = np.rint(np.array(values) / 0.5) + 1
    assert onnx.tolist() == [1, 1, 3]


def test_ties_away_from_zero() -> None:
    values = [0.5, -0.5, 2.5, -2.5, 0.49999997]
    assert quantize(values, rule(1.0), np.int8, half_away=True).tolist() == [1, -1, 3, -3, 0]


@each("tensor_type", list(LIMITS))
def test_limits_infinities_and_nan(tensor_type: hbDNNDataType) -> None:
    low, high = LIMITS[tensor_type]
    dtype = np.int64  # wider than each: the limits alone clip
    stored = quantize([np.inf, -np.inf, np.nan, 1e30, 3], rule(1.0, zero=(2,)), dtype, limits=(low, high))
    assert stored.tolist() == [high, low, 2, high, 5]


def test_int32_reaches_its_ends() -> None:
    assert quantize([np.inf, -np.inf], rule(1.0), np.int32).tolist() == [(1 << 31) - 1, -(1 << 31)]


def test_one_scale_for_each_channel() -> None:
    channels = rule(1.0, 0.5, 0.25, zero=(0, 10, -10), axis=1)
    stored = quantize(np.ones((2, 3, 2)), channels, np.int8)
    np.testing.assert_array_equal(stored, np.broadcast_to(np.array([1, 12, -6])[:, None], (2, 3, 2)))
    np.testing.assert_array_equal(dequantize(stored, channels), np.ones((2, 3, 2)))


@given(st.lists(st.integers(0, 126), min_size=1, max_size=5), st.integers(0, 2))
def test_shift_is_the_scale_that_it_stands_for(shifts: list[int], axis: int) -> None:
    scale = rule(*[2.0**-shift for shift in shifts], zero=(0,) * len(shifts), axis=axis)
    shift = as_shift(scale)
    assert (shift.kind, shift.shift.tolist(), shift.axis) == (SHIFT, shifts, axis)
    assert shift.scale.size == shift.zero_point.size == 0
    shape = [2, 2, 2]
    shape[axis] = len(shifts)
    stored = np.arange(np.prod(shape)).reshape(shape).astype(np.int8)
    real = dequantize(stored, scale)
    np.testing.assert_array_equal(dequantize(stored, shift), real)
    np.testing.assert_array_equal(quantize(real, shift, np.int8), stored)


@each("kept", [rule(0.3), rule(0.5, zero=(1,)), rule(2.0), rule(0.5, 0.3, zero=(0, 0))])
def test_what_is_no_shift_stays(kept: Quantization) -> None:
    assert as_shift(kept) is kept


def test_a_difference_that_float32_cannot_form() -> None:
    stored = np.array([(1 << 31) - 1], np.int32)
    assert dequantize(stored, rule(1.0, zero=((1 << 31) - 3,))).tolist() == [2.0]
