"""Comparing an op with a reference over generated inputs: the cases, and the first difference. No sockets here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# One element, the widths of a vector (16 float32 lanes) and their neighbors, and more than one TCM tile.
SIZES = (1, 2, 15, 16, 17, 31, 32, 33, 1000, 25_600, 25_601, 60_000)
KINDS = ("normal", "uniform", "constant", "zeros", "large", "small", "ramp")

MAX_ELEMENTS = 1 << 26
"""Elements of the largest input: float64 that they are made from takes 512 MiB."""

_MAX_APART = (1 << 63) - 1
_SIDE = re.compile(r"([0-9]+)(?:-([0-9]+)(?:/([0-9]+))?)?", re.ASCII)
_MAX_SIDES = 64  # numpy's limit
_TYPES = tuple(np.dtype(name) for name in ("f4", "f2", "f8", "u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8"))


class Side(NamedTuple):
    """Lengths that one side of an input may have: least, most, and the step from one to the next."""

    least: int
    most: int
    step: int


class Shape(NamedTuple):
    """Shapes that an input may have, a Side for each dimension."""

    sides: tuple[Side, ...]

    def of(self, number: int, rng: np.random.Generator) -> tuple[int, ...]:
        """The shape of the n-th input: the smallest sides, then the largest, then random ones."""
        if number == 0:
            return tuple(side.least for side in self.sides)
        if number == 1:
            return tuple(side.most for side in self.sides)
        return tuple(
            int(rng.integers(0, (side.most - side.least) // side.step + 1)) * side.step + side.least
            for side in self.sides
        )


def to_shape(text: str) -> Shape:
    """Shape from its text: sides with x between them, each a length, LEAST-MOST or LEAST-MOST/STEP.

    Raises:
        ValueError: invalid syntax, or too many elements.
    """
    matches = [_SIDE.fullmatch(side) for side in text.split("x")]
    sides = []
    for match in matches:
        if match is None:
            raise ValueError(
                f"Invalid shape {text!r}: expected sides with x between them, each a length or a range, as in 48x64x3, "
                "1-48x1-64 or 2-48/2x2-64/2 (even lengths)."
            )
        least = int(match[1])
        most, step = int(match[2] or least), int(match[3] or 1)
        if not 1 <= least <= most or step < 1:
            raise ValueError(
                f"Invalid side {match[0]} in {text!r}: lengths and steps must be 1 or more, and ranges ascending."
            )
        sides.append(Side(least, least + (most - least) // step * step, step))
    if len(sides) > _MAX_SIDES:
        raise ValueError(f"{text!r} has {len(sides)} sides: the maximum is {_MAX_SIDES}.")
    if (elements := math.prod(side.most for side in sides)) > MAX_ELEMENTS:
        raise ValueError(f"{text!r} has up to {elements} elements: the maximum is {MAX_ELEMENTS}.")
    return Shape(tuple(sides))


class Case(NamedTuple):
    """One generated input."""

    number: int
    kind: str
    data: NDArray[Any]

    def __str__(self) -> str:
        return f"case {self.number} ({'x'.join(map(str, self.data.shape))} {self.data.dtype}, {self.kind})"


class Difference(NamedTuple):
    """Where an output and its reference first differ by more than is allowed."""

    at: int
    got: Any
    expected: Any
    ulp: int | None  # representable values apart; None where that says nothing: a NaN, another shape
    place: tuple[int, ...] = ()  # its index in each dimension; empty where there is one dimension


def cases(
    count: int, dtype: np.dtype[Any], seed: int, *, special: bool = False, shapes: Sequence[Shape] = ()
) -> Iterator[Case]:
    """Generated inputs, the same for the same seed: every size or shape with every kind in turn, then random ones.

    Args:
        count: How many.
        dtype: A floating-point or integer type.
        seed: Of the generator.
        special: Put NaN and infinities into some floating-point cases.
        shapes: Shapes for the inputs in turn, instead of one dimension with SIZES.
    """
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        kind = KINDS[number % len(KINDS)]
        if shapes:
            shape = shapes[number % len(shapes)].of(number // len(shapes), rng)
        else:
            shape = (SIZES[number % len(SIZES)] if number < 2 * len(SIZES) else int(rng.integers(1, 70_000)),)
        size = math.prod(shape)
        data = _values(kind, size, dtype, rng)
        if special and dtype.kind == "f" and number % 3 == 0:
            data[rng.integers(0, size, max(1, size // 50))] = rng.choice([np.nan, np.inf, -np.inf])
        yield Case(number, kind, data.reshape(shape))


def first_difference(
    got: NDArray[Any], expected: NDArray[Any], most_ulp: int, atol: float = 0.0
) -> tuple[Difference | None, int]:
    """The first element that differs by more than is allowed, or None; and the largest difference in ulp.

    Allowed are differences of at most ``most_ulp`` representable values, or of at most ``atol``.

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
        with np.errstate(all="ignore"):  # inf - inf, which is not a small difference
            far = np.abs(flat_got.astype(np.float64) - flat_expected.astype(np.float64))
        is_wrong &= ~(far <= atol)
    wrong = np.flatnonzero(is_wrong)
    largest = int(apart.max(initial=0))
    if not wrong.size:
        return None, largest
    at = int(wrong[0])
    place = tuple(map(int, np.unravel_index(at, expected.shape))) if expected.ndim > 1 else ()
    return Difference(at, flat_got[at], flat_expected[at], int(apart[at]) if apart[at] >= 0 else None, place), largest


def written_type(got: NDArray[Any], expected: NDArray[Any], usual: np.dtype[Any]) -> np.dtype[Any] | None:
    """The type that an op wrote if its bytes show that it differs from the reference's; otherwise None.

    They show it if most elements match the reference when the block is read as that type from its start, but few match
    otherwise.

    Args:
        got: The output block, read as the reference's type.
        expected: The reference's result.
        usual: The type to try first.
    """
    reference = expected.ravel()
    raw = np.ascontiguousarray(got).ravel().view(np.uint8)
    as_it_stands = _share_near(got.ravel(), reference)
    written, nearest = None, max(0.5, 2 * as_it_stands)
    for dtype in (usual, *_TYPES):
        if dtype == expected.dtype or dtype.itemsize > expected.dtype.itemsize:
            continue
        near = _share_near(raw[: reference.size * dtype.itemsize].view(dtype), reference)
        if near > nearest or (near == nearest and written is None):
            written, nearest = dtype, near
    return written


def _share_near(values: NDArray[Any], reference: NDArray[Any]) -> float:
    """Share of the reference's elements that the values match: within 2%, integers also within 1.

    Elements close to 0 are left out, since an unwritten block contains 0.
    """
    least = 0.0 if values.dtype.kind == "f" else 1.0
    with np.errstate(all="ignore"):  # NaN and infinities, which are near to nothing
        wanted, had = reference.astype(np.float64), values.astype(np.float64)
        is_near = np.abs(had - wanted) <= np.maximum(0.02 * np.abs(wanted), least)
    counts = (np.abs(wanted) > least) & np.isfinite(wanted)
    return float(is_near[counts].mean()) if counts.any() else 0.0


def ulp_apart(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """The number of representable values between two arrays' elements; -1 if only one is NaN.

    Of types of up to 8 bytes. Larger numbers are clamped to the int64 maximum.
    """
    one, other = _places(left), _places(right.astype(left.dtype))
    apart = np.minimum(np.where(one > other, one - other, other - one), np.uint64(_MAX_APART)).astype(np.int64)
    if left.dtype.kind != "f":
        return apart
    is_nan = np.isnan(left), np.isnan(right)
    result: NDArray[np.int64] = np.where(is_nan[0] & is_nan[1], 0, np.where(is_nan[0] ^ is_nan[1], -1, apart))
    return result


def _places(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Each value's rank among all values of its type, lowest first."""
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
            drawn_as = np.uint64 if dtype == np.uint64 else np.int64
            return np.full(size, rng.integers(limits.min, limits.max, dtype=drawn_as, endpoint=True), dtype)
        if kind == "ramp":
            span = min(size, int(limits.max) - int(limits.min) + 1)  # of 64 bits it would fit no int64
            return (np.arange(size) % span + limits.min).astype(dtype)
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
