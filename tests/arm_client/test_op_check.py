"""Generated cases and the first difference, with no board."""

from __future__ import annotations

import numpy as np
import pytest

from arm_client import op_check

F32 = np.dtype(np.float32)


def test_cases_are_the_same_for_the_same_seed() -> None:
    first, again = (list(op_check.cases(30, F32, 7)) for _ in range(2))
    assert [(case.number, case.kind, case.data.tobytes()) for case in first] == [
        (case.number, case.kind, case.data.tobytes()) for case in again
    ]
    assert {case.data.size for case in first} >= set(op_check.SIZES)
    assert {case.kind for case in first} == set(op_check.KINDS)
    assert all(np.isfinite(case.data).all() for case in first)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int16", "int32"])
def test_cases_have_the_type_asked_for(dtype: str) -> None:
    assert {case.data.dtype for case in op_check.cases(14, np.dtype(dtype), 0)} == {np.dtype(dtype)}


def test_special_values_are_put_in_when_asked_for() -> None:
    made = list(op_check.cases(30, F32, 0, special=True))
    assert any(np.isnan(case.data).any() for case in made)
    assert any(np.isinf(case.data).any() for case in made)


@pytest.mark.parametrize(
    ("left", "right", "apart"),
    [
        (1.0, 1.0, 0),
        (1.0, np.nextafter(np.float32(1), np.float32(2)), 1),
        (0.0, -0.0, 0),
        (np.float32(1e-45), np.float32(-1e-45), 2),
        (np.nan, np.nan, 0),
        (np.nan, 1.0, -1),
        (1.0, np.nan, -1),
        (np.inf, np.inf, 0),
        (np.inf, np.finfo(np.float32).max, 1),
    ],
)
def test_distance_in_ulp(left: float, right: float, apart: int) -> None:
    assert op_check.ulp_apart(np.array([left], F32), np.array([right], F32))[0] == apart


def test_integers_are_apart_by_their_difference() -> None:
    left, right = np.array([-128, 127], np.int8), np.array([127, -128], np.int8)
    assert list(op_check.ulp_apart(left, right)) == [255, 255]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_the_ends_of_the_widest_types_are_far_apart(dtype: str) -> None:
    limits = np.finfo(dtype) if dtype == "float64" else np.iinfo(dtype)
    ends = np.array([limits.min, limits.max], dtype)
    assert op_check.ulp_apart(ends, ends[::-1]).min() > 1 << 62
    assert list(op_check.ulp_apart(ends, ends)) == [0, 0]


def test_a_difference_that_is_small_enough_passes_however_many_ulp_it_is() -> None:
    expected, got = np.array([0.0, 1.0, np.inf, np.nan], F32), np.array([1e-9, 1.0, np.inf, np.nan], F32)
    assert op_check.first_difference(got, expected, 0, 1e-8)[0] is None
    found, _ = op_check.first_difference(got, expected, 0, 1e-10)
    assert found is not None
    assert found.at == 0
    got[2] = 1.0
    found, _ = op_check.first_difference(got, expected, 0, 1e-8)
    assert found is not None
    assert found.at == 2


def test_the_first_difference_is_found_and_the_largest_distance_said() -> None:
    expected = np.ones(10, F32)
    got = expected.copy()
    got[3] = np.nextafter(np.float32(1), np.float32(2))
    assert op_check.first_difference(got, expected, 1) == (None, 1)
    got[7] = 2
    difference, largest = op_check.first_difference(got, expected, 1)
    assert difference == op_check.Difference(7, np.float32(2), np.float32(1), 8388608)
    assert largest == 8388608


def test_another_length_is_a_difference() -> None:
    difference, _ = op_check.first_difference(np.ones(3, F32), np.ones(4, F32), 0)
    assert difference == op_check.Difference(3, 3, 4, None)
