"""Comparing an op with a reference over generated inputs: the cases, and the first difference. No sockets here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# One element, the widths of a vector (16 float32 lanes) and their neighbours, and more than one TCM tile.
SIZES = (1, 2, 15, 16, 17, 31, 32, 33, 1000, 25_600, 25_601, 60_000)
KINDS = ("normal", "uniform", "constant", "zeros", "large", "small", "ramp")

_MOST_APART = (1 << 63) - 1


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


def first_difference(
    got: NDArray[Any], expected: NDArray[Any], most_ulp: int, atol: float = 0.0
) -> tuple[Difference | None, int]:
    """The first element that differs by more than is allowed, or None; and the largest difference in ulp.

    Allowed is what is at most ``most_ulp`` representable values apart, and what differs by at most ``atol``.

    NaN equals NaN. Integers are compared as they are: one apart is one ulp.
    """
    flat_got, flat_expected = got.ravel(), expected.ravel()
    if flat_got.size != flat_expected.size:
        return Difference(min(flat_got.size, flat_expected.size), flat_got.size, flat_expected.size, None), 0
    if not flat_got.size:
        return None, 0
    apart = ulp_apart(flat_got, flat_expected)
    is_wrong = (apart > most_ulp) | (apart < 0)
    if atol:
        with np.errstate(all="ignore"):  # inf - inf, which is no small difference
            far = np.abs(flat_got.astype(np.float64) - flat_expected.astype(np.float64))
        is_wrong &= ~(far <= atol)
    wrong = np.flatnonzero(is_wrong)
    largest = int(apart.max(initial=0))
    if not wrong.size:
        return None, largest
    at = int(wrong[0])
    return Difference(at, flat_got[at], flat_expected[at], int(apart[at]) if apart[at] >= 0 else None), largest


def ulp_apart(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """How many representable values lie between two arrays' elements; -1 where one of them only is NaN.

    Of types of up to 8 bytes. More than an int64 holds is the most that it holds.
    """
    one, other = _places(left), _places(right.astype(left.dtype))
    apart = np.minimum(np.where(one > other, one - other, other - one), np.uint64(_MOST_APART)).astype(np.int64)
    if left.dtype.kind != "f":
        return apart
    is_nan = np.isnan(left), np.isnan(right)
    result: NDArray[np.int64] = np.where(is_nan[0] & is_nan[1], 0, np.where(is_nan[0] ^ is_nan[1], -1, apart))
    return result


def _places(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Where each value stands on one line of all values of its type, the lowest first."""
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    ordered = values.astype(np.int64) if values.dtype.kind == "i" else _ordered(values)
    return ordered.view(np.uint64) ^ np.uint64(1 << 63)


def _ordered(values: NDArray[Any]) -> NDArray[np.int64]:
    bits = np.dtype(f"i{values.dtype.itemsize}")
    raw = np.ascontiguousarray(values).view(bits).astype(np.int64)
    # Negative floats run backwards in their bits; put all on one line, with -0 and +0 on one point.
    ordered: NDArray[np.int64] = np.where(raw < 0, np.int64(np.iinfo(bits).min) - raw, raw)
    return ordered


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
