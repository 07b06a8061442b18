"""Generated cases and the first difference, with no board."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arm_client.commands.op import cases
from tests.each import each

F32 = np.dtype(np.float32)


def test_cases_are_the_same_for_the_same_seed() -> None:
    first, again = (list(cases.cases(30, F32, 7)) for _ in range(2))
    assert [(case.number, case.kind, case.data.tobytes()) for case in first] == [
        (case.number, case.kind, case.data.tobytes()) for case in again
    ]
    assert {case.data.size for case in first} >= set(cases.SIZES)
    assert {case.kind for case in first} == set(cases.KINDS)
    assert all(np.isfinite(case.data).all() for case in first)


@each("dtype", ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_cases_have_the_type_asked_for(dtype: str) -> None:
    assert {case.data.dtype for case in cases.cases(14, np.dtype(dtype), 0)} == {np.dtype(dtype)}


def test_special_values_are_put_in_when_asked_for() -> None:
    made = list(cases.cases(30, F32, 0, special=True))
    assert any(np.isnan(case.data).any() for case in made)
    assert any(np.isinf(case.data).any() for case in made)


def test_shapes_are_taken_in_turn_the_ends_of_ranges_first() -> None:
    shapes = [cases.to_shape("3x5x2"), cases.to_shape("1-9x2-9/3")]
    made = list(cases.cases(40, np.dtype(np.uint8), 0, shapes=shapes))
    assert {case.data.shape for case in made[::2]} == {(3, 5, 2)}
    assert [case.data.shape for case in made[1:4:2]] == [(1, 2), (9, 8)]
    rows, columns = zip(*(case.data.shape for case in made[1::2]), strict=True)
    assert len(set(rows)) > 3
    assert set(rows) <= set(range(1, 10))
    assert set(columns) == {2, 5, 8}
    assert str(made[0]) == "case 0 (3x5x2 uint8, normal)"
    again = cases.cases(40, np.dtype(np.uint8), 0, shapes=shapes)
    assert [case.data.tobytes() for case in again] == [case.data.tobytes() for case in made]


@each(
    "text, sentence",
    [
        ("", "Invalid shape '': expected sides with x between them"),
        ("4x", "Invalid shape '4x'"),
        ("4,5", "Invalid shape '4,5'"),
        ("-3x4", "Invalid shape '-3x4'"),
        ("4x0", "Invalid side 0 in '4x0': lengths and steps must be 1 or more, and ranges ascending."),
        ("9-3", "Invalid side 9-3 in '9-3': "),
        ("1-9/0", "Invalid side 1-9/0 in '1-9/0': "),
        ("x".join("1" * 65), " has 65 sides: the maximum is 64."),
        ("9000x9000", "'9000x9000' has up to 81000000 elements: the maximum is 67108864."),
    ],
)
def test_a_text_that_is_no_shape_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        cases.to_shape(text)


def in_a_block_for(reference: NDArray[Any], written: NDArray[Any]) -> NDArray[Any]:
    """What an op leaves in a block of zeros, read as the reference's type."""
    block = np.zeros(reference.nbytes, np.uint8)
    block[: written.nbytes] = written.ravel().view(np.uint8)
    return block.view(reference.dtype).reshape(reference.shape)


@each(
    "returned, written, usual",
    [
        ("float64", "float32", "float32"),
        ("float64", "float16", "float16"),
        ("float64", "int8", "float32"),
        ("float32", "int8", "float32"),
        ("int64", "uint8", "uint8"),
        ("int64", "int32", "uint8"),
        ("float32", "int32", "float32"),
    ],
)
@each("shape", [(40,), (5, 8)])
def test_the_type_that_an_op_wrote_is_seen_in_its_bytes(
    returned: str, written: str, usual: str, shape: tuple[int, ...]
) -> None:
    lowest = 0 if written == "uint8" else -100
    numbers = np.random.default_rng(0).integers(lowest, 100, shape)
    reference = numbers.astype(returned)
    numbers.ravel()[-1] += 1  # the op is wrong, too
    found = cases.written_type(in_a_block_for(reference, numbers.astype(written)), reference, np.dtype(usual))
    assert found == written


@each("dtype", ["float64", "float32", "int64", "int32", "uint8"])
def test_an_op_of_the_references_type_is_never_taken_for_another(dtype: str) -> None:
    for case in cases.cases(30, np.dtype(dtype), 3, special=True):
        got = case.data.copy()
        got[::2] += np.array(1, dtype)
        got[len(got) // 2 :] = 0
        assert cases.written_type(got, case.data, F32) is None
        assert cases.written_type(np.zeros_like(got), case.data, F32) is None


def test_one_element_is_enough_to_tell_the_floats() -> None:
    reference = np.ones(1)
    assert cases.written_type(in_a_block_for(reference, np.ones(1, F32)), reference, F32) == F32


@each(
    "left, right, apart",
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
    assert cases.ulp_apart(np.array([left], F32), np.array([right], F32))[0] == apart


def test_integers_are_apart_by_their_difference() -> None:
    left, right = np.array([-128, 127], np.int8), np.array([127, -128], np.int8)
    assert list(cases.ulp_apart(left, right)) == [255, 255]


@each("dtype", ["int64", "uint64", "float64"])
def test_the_ends_of_the_widest_types_are_far_apart(dtype: str) -> None:
    limits = np.finfo(dtype) if dtype == "float64" else np.iinfo(dtype)
    ends = np.array([limits.min, limits.max], dtype)
    assert cases.ulp_apart(ends, ends[::-1]).min() > 1 << 62
    assert list(cases.ulp_apart(ends, ends)) == [0, 0]


def test_a_difference_that_is_small_enough_passes_however_many_ulp_it_is() -> None:
    expected, got = np.array([0.0, 1.0, np.inf, np.nan], F32), np.array([1e-9, 1.0, np.inf, np.nan], F32)
    assert cases.first_difference(got, expected, 0, 1e-8)[0] is None
    found, _ = cases.first_difference(got, expected, 0, 1e-10)
    assert found is not None
    assert found.at == 0
    got[2] = 1.0
    found, _ = cases.first_difference(got, expected, 0, 1e-8)
    assert found is not None
    assert found.at == 2


def test_the_first_difference_is_found_and_the_largest_distance_said() -> None:
    expected = np.ones(10, F32)
    got = expected.copy()
    got[3] = np.nextafter(np.float32(1), np.float32(2))
    assert cases.first_difference(got, expected, 1) == (None, 1)
    got[7] = 2
    difference, largest = cases.first_difference(got, expected, 1)
    assert difference == cases.Difference(7, np.float32(2), np.float32(1), 8388608)
    assert largest == 8388608


def test_another_length_is_a_difference() -> None:
    difference, _ = cases.first_difference(np.ones(3, F32), np.ones(4, F32), 0)
    assert difference == cases.Difference(3, 3, 4, None)
