"""How two ranges differ, held against a plain loop."""

from __future__ import annotations

import math
import struct

from hypothesis import given, strategies as st

from hbrt.recording.compare import difference
from tests.each import each


@given(st.lists(st.tuples(st.integers(-128, 127), st.integers(-128, 127)), max_size=40), st.integers(0, 255))
def test_integers_against_a_loop(pairs: list[tuple[int, int]], tolerance: int) -> None:
    old, new = (struct.pack(f"{len(pairs)}b", *(pair[side] for pair in pairs)) for side in (0, 1))
    found = difference(old, new, "int8", tolerance)
    differing = [at for at, (one, two) in enumerate(pairs) if abs(one - two) > tolerance]
    if not differing:
        assert found is None
        return
    assert found is not None
    first = differing[0]
    assert (found.byte, found.element, (found.recorded, found.replayed)) == (first, first, pairs[first])
    assert (found.differing, found.elements) == (len(differing), len(pairs))
    assert found.largest_error == max(abs(one - two) for one, two in pairs)


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@each("value", [math.nan, math.inf, -math.inf, 0.0, -0.0])
def test_special_values_equal_themselves(value: float) -> None:
    assert difference(floats(1.0, value), floats(1.5, value), "float32", 1.0) is None


@each("old, new", [(math.nan, 1.0), (math.inf, 1.0), (math.inf, -math.inf)])
def test_special_values_differ_from_others_by_any_tolerance(old: float, new: float) -> None:
    found = difference(floats(1.0, old), floats(1.0, new), "float32", 1e30)
    assert found is not None
    assert (found.byte, found.element, found.differing) == (4, 1, 1)


def test_large_integers_are_exact_and_a_rest_is_bytes() -> None:
    old, new = struct.pack("<Q", (1 << 64) - 1) + b"\1", struct.pack("<Q", (1 << 64) - 2) + b"\1"
    found = difference(old, new, "uint64")
    assert found is not None
    assert (found.recorded, found.replayed, found.largest_error) == ((1 << 64) - 1, (1 << 64) - 2, 1.0)
    found = difference(old, old[:8] + b"\2", "uint64")
    assert found is not None
    assert (found.byte, found.recorded, found.replayed) == (8, 1, 2)
