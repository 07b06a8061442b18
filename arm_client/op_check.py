"""Comparing an op with a reference over generated inputs: the cases, and the first difference. No sockets here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# One element, the widths of a vector (16 float32 lanes) and their neighbours, and more than one TCM tile.
SIZES = (1, 2, 15, 16, 17, 31, 32, 33, 1000, 25_600, 25_601, 60_000)
KINDS = ("normal", "uniform", "constant", "zeros", "large", "small", "ramp")


class Case(NamedTuple):
    """One generated input."""

    number: int
    kind: str
    data: NDArray[Any]

    def __str__(self) -> str:
        return f"case {self.number} ({self.data.size} {self.data.dtype}, {self.kind})"


class Difference(NamedTuple):
    """Where an output and its reference first differ by more than is allowed."""

    at: int
    got: Any
    expected: Any
    ulp: int | None  # representable values apart; None where that says nothing: a NaN, another shape


def cases(count: int, dtype: np.dtype[Any], seed: int, *, special: bool = False) -> Iterator[Case]:
    """Generated inputs, the same for the same seed: every size and kind in turn, then at random.

    Args:
        count: How many.
        dtype: A floating-point or integer type.
        seed: Of the generator.
        special: Put NaN and infinities into some floating-point cases.
    """
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        kind = KINDS[number % len(KINDS)]
        size = SIZES[number % len(SIZES)] if number < 2 * len(SIZES) else int(rng.integers(1, 70_000))
        data = _values(kind, size, dtype, rng)
        if special and dtype.kind == "f" and number % 3 == 0:
            data[rng.integers(0, size, max(1, size // 50))] = rng.choice([np.nan, np.inf, -np.inf])
        yield Case(number, kind, data)


def first_difference(got: NDArray[Any], expected: NDArray[Any], most_ulp: int) -> tuple[Difference | None, int]:
    """The first element that differs by more than ``most_ulp``, or None; and the largest difference in ulp.

    NaN equals NaN. Integers are compared as they are: one apart is one ulp.
    """
    flat_got, flat_expected = got.ravel(), expected.ravel()
    if flat_got.size != flat_expected.size:
        return Difference(min(flat_got.size, flat_expected.size), flat_got.size, flat_expected.size, None), 0
    if not flat_got.size:
        return None, 0
    apart = ulp_apart(flat_got, flat_expected)
    wrong = np.flatnonzero((apart > most_ulp) | (apart < 0))
    largest = int(apart.max(initial=0))
    if not wrong.size:
        return None, largest
    at = int(wrong[0])
    return Difference(at, flat_got[at], flat_expected[at], int(apart[at]) if apart[at] >= 0 else None), largest


def ulp_apart(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """How many representable values lie between two arrays' elements; -1 where one of them only is NaN."""
    if left.dtype.kind != "f":
        return np.abs(left.astype(np.int64) - right.astype(np.int64))
    bits = np.dtype(f"i{left.dtype.itemsize}")
    ordered = []
    for values in (left, right.astype(left.dtype)):
        raw = np.ascontiguousarray(values).view(bits).astype(np.int64)
        # Negative floats run backwards in their bits; put all on one line, with -0 and +0 on one point.
        ordered.append(np.where(raw < 0, np.int64(np.iinfo(bits).min) - raw, raw))
    apart = np.abs(ordered[0] - ordered[1])
    is_nan = np.isnan(left), np.isnan(right)
    result: NDArray[np.int64] = np.where(is_nan[0] & is_nan[1], 0, np.where(is_nan[0] ^ is_nan[1], -1, apart))
    return result


def _values(kind: str, size: int, dtype: np.dtype[Any], rng: np.random.Generator) -> NDArray[Any]:
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        if kind == "zeros":
            return np.zeros(size, dtype)
        if kind == "constant":
            return np.full(size, rng.integers(limits.min, limits.max, endpoint=True), dtype)
        if kind == "ramp":
            return (np.arange(size) % (limits.max - limits.min + 1) + limits.min).astype(dtype)
        return rng.integers(limits.min, limits.max, size, dtype, endpoint=True)
    values: dict[str, Callable[[], NDArray[Any]]] = {
        "normal": lambda: rng.normal(0.0, 1.0, size),
        "uniform": lambda: rng.uniform(-1.0, 1.0, size),
        "constant": lambda: np.full(size, rng.normal(0.0, 10.0)),
        "zeros": lambda: np.zeros(size),
        "large": lambda: rng.normal(0.0, 1000.0, size),
        "small": lambda: rng.normal(0.0, 1e-6, size),
        "ramp": lambda: np.linspace(-50.0, 50.0, size),
    }
    made: NDArray[Any] = values[kind]()
    return made.astype(dtype)
