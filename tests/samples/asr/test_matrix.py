"""Matrices of uint8: values computed by hand, and the blocked form against the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from recognizer import matrix as qm
from recognizer.matrix import Division, Matrix, Sums
from tests.each import each


def matrix(values: object, scale: float = 1.0, zero_point: int = 0) -> Matrix:
    return Matrix(np.asarray(values, np.uint8), scale, zero_point)


def test_a_range_gives_scale_and_zero_point_and_numbers_go_there_and_back() -> None:
    scale, zero = qm.parameters(-1, 3)
    assert scale == pytest.approx(0.0156862745)
    assert zero == 64
    stored = qm.quantize([-1, 0, 0.5, 3, 5], (-1, 3))
    assert_array_equal(stored.values, [0, 64, 96, 255, 255])
    assert_allclose(stored.real(), [-1.003922, 0, 0.501961, 2.996078, 2.996078], atol=1e-6)


def test_a_range_that_lacks_0_is_widened_and_an_empty_one_is_1_and_0() -> None:
    assert qm.parameters(2, 4) == (4 / 255, 0)
    assert qm.parameters(-4, -2) == (4 / 255, 255)
    assert qm.parameters(0, 0) == (1.0, 0)
    assert_array_equal(qm.quantize([0.0, 0.0]).values, [0, 0])


def test_a_product_subtracts_both_zero_points() -> None:
    a = matrix([[64, 255, 0], [10, 20, 30]], 0.5, 64)
    b = matrix([[10, 200], [20, 0], [30, 7]], 0.25, 15)
    found = qm.matmul(a, b)
    assert_array_equal(found.values, [[-5, -2353], [-460, -9058]])
    assert found.scale == 0.125


REQUANTIZED = {
    (16, Division.TRUNCATE): [1, 51, 254],
    (16, Division.FLOOR): [0, 51, 254],
    (16, Division.NEAREST): [0, 51, 255],
    (12, Division.TRUNCATE): [1, 51, 251],
    (12, Division.FLOOR): [0, 51, 251],
    (12, Division.NEAREST): [1, 51, 251],
    (8, Division.TRUNCATE): [12, 51, 207],
    (8, Division.FLOOR): [11, 51, 207],
    (8, Division.NEAREST): [12, 51, 207],
}


@each("power, division", REQUANTIZED)
def test_requantization_by_a_multiplier_and_a_shift(power: int, division: Division) -> None:
    found = qm.requantize(Sums(np.array([-5000, 0, 20000], np.int32), 0.001), 1 << power, division)
    assert_array_equal(found.values, REQUANTIZED[power, division])
    assert found.zero_point == 51
    assert found.scale == pytest.approx(25 / 255)
    assert qm.multiplier_of(-5000, 20000, 1 << power) == {16: 668, 12: 41, 8: 2}[power]


def test_an_l_that_loses_everything_is_refused_and_the_exact_scale_has_no_bias() -> None:
    sums = Sums(np.array([0, 1_000_000], np.int32), 1e-3)
    with pytest.raises(ValueError, match="255 L / 1000000, is truncated to 0"):
        qm.requantize(sums, 1 << 8)
    assert qm.requantize(sums, 1 << 16).real()[1] == pytest.approx(1000 * 16 / 16.7, rel=0.01)
    assert qm.requantize(sums, 1 << 16, is_exact=True).real()[1] == pytest.approx(1000, rel=0.003)
    with pytest.raises(ValueError, match="L is 1000, but must be a power of two"):
        qm.requantize(sums, 1000)


def test_a_sum_a_product_of_elements_and_a_factor() -> None:
    a, b = matrix([100], 0.02, 128), matrix([200], 0.01, 128)
    for found in (qm.add(a, b, 256), qm.add(b, a, 256)):
        assert_array_equal(found.values, [4096])
        assert found.scale == pytest.approx(3.90625e-5)
        assert found.real() == pytest.approx([0.16])
    assert_array_equal(qm.multiply(a, b).values, [-2016])
    assert qm.multiply(a, b).scale == pytest.approx(2e-4)
    for factor in (0.66, 0.0, -2.0):
        assert_allclose(qm.scaled(factor, a).real(), factor * a.real(), rtol=1e-6)
    assert_array_equal(qm.relu(matrix([3, 128, 200], 1, 128)).values, [128, 128, 200])


def test_a_sum_that_may_leave_int32_is_refused() -> None:
    a, b = matrix([0, 255], 128.0, 0), matrix([0, 255], 1.0, 0)
    with pytest.raises(ValueError, match="128 times apart"):
        qm.add(a, b, 1 << 16)
    assert qm.add(a, b, 1 << 12).real()[1] == 255 * 129


@each("bad", [[np.nan], [np.inf], []])
def test_numbers_that_no_scale_covers_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"for quantization|no scale covers"):
        qm.quantize(bad)


def test_products_that_cannot_be_are_refused() -> None:
    wide = matrix(np.zeros((1, qm.MAX_TERMS + 1)))
    with pytest.raises(ValueError, match="cannot be multiplied"):
        qm.matmul(wide, wide)
    with pytest.raises(ValueError, match="may overflow int32"):
        qm.matmul(wide, wide._replace(values=wide.values.T))
    with pytest.raises(ValueError, match="of 128 columns; pad it"):
        qm.matmul_blocked(matrix(np.zeros((1, 4))), matrix(np.zeros((4, 32))))


def test_the_most_terms_of_the_largest_numbers_fit() -> None:
    a = matrix(np.full((1, qm.MAX_TERMS), 255))
    assert qm.matmul(a, a._replace(values=a.values.T)).values[0, 0] == qm.MAX_TERMS * 65025


@given(st.integers(1, 9), st.integers(1, 12), st.sampled_from([128, 256]), st.integers(0, 2**32))
def test_the_blocked_product_is_the_plain_one_bit_for_bit(rows: int, terms: int, columns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a = matrix(random.integers(0, 256, (rows, 4 * terms)), 0.1, int(random.integers(256)))
    b = matrix(random.integers(0, 256, (4 * terms, columns)), 0.2, int(random.integers(256)))
    assert_array_equal(qm.matmul_blocked(a, b).values, qm.matmul(a, b).values)
