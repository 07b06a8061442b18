"""Arithmetic on matrices of asymmetric uint8: products and sums in int32, and back to uint8. Pure.

A real number r is stored as q with r = scale * (q - zero_point). Products and sums of stored numbers are int32 with a
scale and no zero point; ``requantize`` converts them to uint8 with a multiplier and a shift. Numbers in brackets are
equations of the account.

Source: Youdao's account of speech recognition on a DSP, 4.2.1, https://segmentfault.com/a/1190000039169471
Emulator: the account does not define rounding: R(x) is floor(x + 0.5), and the division by L adds L / 2 first;
``Division`` has alternatives. The range of a matrix includes 0, so that its zero point is a uint8. Scales are float64.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbrt.quantize import numbers as rules

LEVELS: Final = 255
MAX_TERMS: Final = 33_025
"""Number of uint8 products whose sum always fits an int32."""
MIN_L: Final = 1 << 8
MAX_L: Final = 1 << 16
THREADS: Final = 4
"""Hardware threads of the DSP: each handles part of the columns."""
BLOCK_ROWS: Final = 4
BLOCK_COLUMNS: Final = 32
"""Block of sums: 4 x 32."""
BLOCK_TERMS: Final = 4
"""Products added by one instruction to each of 32 sums."""
COLUMNS: Final = THREADS * BLOCK_COLUMNS
"""Model sizes are multiples of this, so that each thread has whole blocks."""

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]


class Division(StrEnum):
    """How an int32 is divided by L, a power of two."""

    TRUNCATE = "truncate"  # toward 0, like C's division
    FLOOR = "floor"  # like an arithmetic shift
    NEAREST = "nearest"  # L / 2 is added before the shift


class Matrix(NamedTuple):
    """Real numbers as uint8, of any shape: r = scale * (q - zero_point)."""

    values: Bytes
    scale: float
    zero_point: int

    def real(self) -> NDArray[np.float32]:
        """Return the real numbers [2], float32."""
        return rules.dequantize(self.values, np.array(self.scale, np.float32), np.array(self.zero_point, np.int32))


class Sums(NamedTuple):
    """Real numbers as int32, of any shape: r = scale * q [6]."""

    values: Ints
    scale: float

    def real(self) -> NDArray[np.float64]:
        """Return the real numbers, float64."""
        return self.values.astype(np.float64) * self.scale


def parameters(low: float, high: float) -> tuple[float, int]:
    """Return scale and zero point for numbers from ``low`` to ``high`` [3, 4]; 1 and 0 if all are 0.

    The range is widened to include 0.
    """
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if low == high:
        return 1.0, 0
    scale = (high - low) / LEVELS
    return scale, int(np.clip(np.floor(-low / scale + 0.5), 0, LEVELS))


def quantize(values: ArrayLike, bounds: tuple[float, float] | None = None) -> Matrix:
    """Quantize real numbers to uint8 [1].

    Args:
        values: Finite numbers of any shape.
        bounds: Minimum and maximum; None for those of ``values``. Numbers outside are clamped.

    Raises:
        ValueError: a number is infinite or NaN, or there are no numbers.
    """
    real = np.atleast_1d(np.asarray(values, np.float32))
    if not real.size:
        raise ValueError("No values, so no range for quantization: at least one is needed.")
    if not np.isfinite(real).all():
        raise ValueError("The values contain an infinity or NaN, which no scale covers; remove it first.")
    scale, zero = parameters(*(bounds or (real.min(), real.max())))
    stored = rules.quantize(
        real, np.array(scale, np.float32), np.array(zero, np.int32), np.dtype(np.uint8), half_away=True
    )
    return Matrix(stored, scale, zero)


def matmul(a: Matrix, b: Matrix) -> Sums:
    """Compute the product of (n, k) and (k, m) directly: the sum over k of (qa - Za)(qb - Zb) [5, 6].

    Raises:
        ValueError: shapes do not match, or more terms than MAX_TERMS.
    """
    _check_product(a, b)
    return Sums(_centered(a) @ _centered(b), a.scale * b.scale)


def matmul_blocked(a: Matrix, b: Matrix) -> Sums:
    """Compute the same like a DSP: columns divided among threads, blocks of 4 x 32 sums, four terms at a time.

    No zero point is subtracted inside: sum(qa qb) - Zb sum(qa) - Za sum(qb) + k Za Zb.

    Args:
        a: (n, k).
        b: (k, m), k a multiple of 4 and m one of 128.

    Raises:
        ValueError: shapes do not match or are not such multiples, or more terms than MAX_TERMS.
    """
    _check_product(a, b)
    terms, columns = b.values.shape
    if terms % BLOCK_TERMS or columns % COLUMNS:
        raise ValueError(
            f"The second matrix is {terms} x {columns}: blocks need a multiple of {BLOCK_TERMS} rows and of {COLUMNS} "
            "columns; pad it with its zero point."
        )
    left, right = a.values.astype(np.int32), b.values.astype(np.int32)
    of_columns = right.sum(0, dtype=np.int32) * np.int32(a.zero_point)
    found = np.empty((len(left), columns), np.int32)
    for thread in range(THREADS):
        first = thread * columns // THREADS
        for column in range(first, first + columns // THREADS, BLOCK_COLUMNS):
            across = slice(column, column + BLOCK_COLUMNS)
            for row in range(0, len(left), BLOCK_ROWS):
                down = slice(row, row + BLOCK_ROWS)
                block = np.zeros((len(left[down]), BLOCK_COLUMNS), np.int32)
                for term in range(0, terms, BLOCK_TERMS):
                    some = slice(term, term + BLOCK_TERMS)
                    block += left[down, some] @ right[some, across]
                of_rows = left[down].sum(1, dtype=np.int32)[:, None] * np.int32(b.zero_point)
                found[down, across] = block - of_rows - of_columns[across] + terms * a.zero_point * b.zero_point
    return Sums(found, a.scale * b.scale)


def add(a: Matrix, b: Matrix, denominator: int = MAX_L) -> Sums:
    """Add two matrices whose shapes broadcast [9, 10].

    For S1 >= S2: L1 (q1 - Z1) + L (q2 - Z2) at scale S2 / L, with L1 = trunc(L S1 / S2).

    Raises:
        ValueError: ``denominator`` is not a power of two from 2^8 to 2^16, or the scales are so far apart that a sum
            may overflow int32.
    """
    check_denominator(denominator)
    if b.scale > a.scale:
        a, b = b, a
    multiplier = int(denominator * a.scale / b.scale)
    if LEVELS * (multiplier + denominator) >= 1 << 31:
        raise ValueError(
            f"The scales {a.scale:g} and {b.scale:g} are {a.scale / b.scale:.0f} times apart: with L = {denominator} "
            "a sum may overflow int32. Use a smaller L, or requantize the smaller one."
        )
    return Sums(np.int32(multiplier) * _centered(a) + np.int32(denominator) * _centered(b), b.scale / denominator)


def multiply(a: Matrix, b: Matrix) -> Sums:
    """Multiply the elements of two matrices whose shapes broadcast [11]."""
    return Sums(_centered(a) * _centered(b), a.scale * b.scale)


def scaled(factor: float, a: Matrix) -> Matrix:
    """Multiply a matrix by a number [12]: the scale changes, the stored numbers do not.

    A negative factor mirrors the stored numbers, which is exact; 0 gives zeros at the scale 1.
    """
    if factor > 0:
        return a._replace(scale=factor * a.scale)
    if factor == 0:
        return Matrix(np.zeros_like(a.values), 1.0, 0)
    return Matrix(LEVELS - a.values, -factor * a.scale, LEVELS - a.zero_point)


def relu(a: Matrix) -> Matrix:
    """Return the maximum of each number and 0: no stored number is below the zero point."""
    return a._replace(values=np.maximum(a.values, np.uint8(a.zero_point)))


def multiplier_of(low: int, high: int, denominator: int) -> int:
    """Return L1 for numbers from ``low`` to ``high`` [8], trunc(s32 / S3 L); scales cancel: 255 L / (high - low)."""
    low, high = min(int(low), 0), max(int(high), 0)
    return LEVELS * denominator // (high - low) if high > low else denominator


def requantize(
    sums: Sums,
    denominator: int = MAX_L,
    division: Division = Division.NEAREST,
    *,
    is_exact: bool = False,
) -> Matrix:
    """Convert int32 to uint8, using the range of the actual numbers [7, 8]: q3 = L1 q / L + Z3.

    Args:
        sums: Sums of any shape.
        denominator: L, a power of two from 2^8 to 2^16. The result's scale is off by up to 1 part in L1 + 1, since L1
            is truncated.
        division: How L1 q is divided by L.
        is_exact: The result's scale follows the truncated L1, s32 L / L1, which removes that error. Not in the account.

    Raises:
        ValueError: ``denominator`` is invalid, or so small for these numbers that L1 is 0.
    """
    check_denominator(denominator)
    low, high = min(int(sums.values.min()), 0), max(int(sums.values.max()), 0)
    if low == high:
        return Matrix(np.zeros(sums.values.shape, np.uint8), 1.0, 0)
    multiplier = multiplier_of(low, high, denominator)
    if not multiplier:
        raise ValueError(
            f"The numbers span {low} to {high}: with L = {denominator} their multiplier, 255 L / {high - low}, is "
            "truncated to 0, and all would be lost. Use a larger L."
        )
    span = high - low
    zero = (2 * LEVELS * -low + span) // (2 * span)  # floor(-min / S3 + 0.5)
    product = sums.values * np.int32(multiplier)  # at most 255 L in size
    if division is Division.NEAREST:
        product += denominator // 2
    elif division is Division.TRUNCATE:
        product[product < 0] += denominator - 1
    quotient = product // denominator
    scale = sums.scale * denominator / multiplier if is_exact else sums.scale * span / LEVELS
    return Matrix(np.clip(quotient + zero, 0, LEVELS).astype(np.uint8), scale, zero)


def check_denominator(denominator: int) -> None:
    """Refuse an L that is not a power of two from 2^8 to 2^16.

    Raises:
        ValueError: it is invalid.
    """
    if not MIN_L <= denominator <= MAX_L or denominator & (denominator - 1):
        raise ValueError(f"L is {denominator}, but must be a power of two from {MIN_L} to {MAX_L}.")


def _centered(a: Matrix) -> Ints:
    return a.values.astype(np.int32) - np.int32(a.zero_point)


def _check_product(a: Matrix, b: Matrix) -> None:
    if a.values.ndim != 2 or b.values.ndim != 2 or a.values.shape[1] != b.values.shape[0]:
        raise ValueError(f"Matrices of shapes {a.values.shape} and {b.values.shape} cannot be multiplied.")
    if len(b.values) > MAX_TERMS:
        raise ValueError(f"A sum of {len(b.values)} products may overflow int32, which holds {MAX_TERMS} of them.")
