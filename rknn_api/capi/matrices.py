"""Products of matrices as the NPU computes them: types, layouts by chip, quantisation. Pure.

Source: RKNN API for RKNPU user guide (1.5.2), layouts of matrices, in doc of https://github.com/rockchip-linux/rknpu2
Emulator: the innermost part of A is the chip's C2; two numbers of int4 lie in a byte, the first in its lower half; a
product of integers wraps around at 32 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hbrt.quantize.numbers import quantize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rknn_api.layouts import Rules

MULTIPLE: Final = 32
"""K and N are multiples of it."""


class Kind(NamedTuple):
    """Types of A, B and C by numpy's names; "int4" too."""

    a: str
    b: str
    c: str


KINDS: Final = {
    1: Kind("float16", "float16", "float32"),
    2: Kind("int8", "int8", "int32"),
    3: Kind("int8", "int8", "int8"),
    4: Kind("float16", "float16", "float16"),
    5: Kind("float16", "int8", "float32"),
    6: Kind("float16", "int8", "float16"),
    7: Kind("float16", "int4", "float32"),
    8: Kind("float16", "int4", "float16"),
    9: Kind("int8", "int8", "float32"),
    10: Kind("int4", "int4", "int16"),
    11: Kind("int8", "int4", "int32"),
}
"""By rknn_matmul_type."""


class Sizes(NamedTuple):
    """C of M rows and N columns is A, M by K, times B, K by N."""

    m: int
    k: int
    n: int


class Quantised(NamedTuple):
    """Scale and zero point of a matrix, one or one a column."""

    scale: NDArray[Any]
    zero: NDArray[Any]


PLAIN: Final = Quantised(np.ones(1, np.float32), np.zeros(1, np.int32))


def part_of_b(dtype: str, *, has_cores: bool) -> tuple[int, int]:
    """Rows of N and of K that lie together in B's native layout, by its type and whether the chip has several cores."""
    if dtype == "float16":
        return (16, 32) if has_cores else (8, 16)
    return (32, 32) if has_cores else (16, 32)


def native_dims(which: str, kind: Kind, sizes: Sizes, rules: Rules, *, has_cores: bool) -> tuple[int, ...]:
    """Dimensions of A, B or C in the native layout, rounded up."""
    m, k, n = sizes
    if which == "A":
        part = rules.c2.get(kind.a) or rules.c2["int8"]
        return -(-k // part), m, part
    if which == "B":
        rows, columns = part_of_b(kind.b, has_cores=has_cores)
        return -(-n // rows), -(-k // columns), rows, columns
    return -(-n // 4), m, 4


def plain_dims(which: str, sizes: Sizes) -> tuple[int, int]:
    """Dimensions of A, B or C row by row."""
    m, k, n = sizes
    return {"A": (m, k), "B": (k, n), "C": (m, n)}[which]


def size_of(dims: tuple[int, ...], dtype: str) -> int:
    """Bytes of a matrix."""
    count = int(np.prod(dims, dtype=np.int64))
    return -(-count // 2) if dtype == "int4" else count * np.dtype(dtype).itemsize


def to_native(which: str, matrix: NDArray[Any], dims: tuple[int, ...]) -> NDArray[Any]:
    """A matrix in its native layout; what lies beyond it is zero."""
    if which == "B":
        outer, inner, rows, columns = dims
        wide = np.zeros((outer * rows, inner * columns), matrix.dtype)
        wide[: matrix.shape[1], : matrix.shape[0]] = matrix.T
        return np.ascontiguousarray(wide.reshape(outer, rows, inner, columns).transpose(0, 2, 1, 3))
    outer, m, part = dims
    wide = np.zeros((m, outer * part), matrix.dtype)
    wide[:, : matrix.shape[1]] = matrix
    return np.ascontiguousarray(wide.reshape(m, outer, part).transpose(1, 0, 2))


def from_native(which: str, native: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """The matrix of a shape out of its native layout."""
    if which == "B":
        outer, inner, rows, columns = native.shape
        return native.transpose(0, 2, 1, 3).reshape(outer * rows, inner * columns)[: shape[1], : shape[0]].T
    outer, m, part = native.shape
    return native.transpose(1, 0, 2).reshape(m, outer * part)[:, : shape[1]]


def unpacked(raw: memoryview, dims: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """The elements in memory: of int4 as int8."""
    if dtype != "int4":
        return np.frombuffer(raw, dtype, int(np.prod(dims, dtype=np.int64))).reshape(dims)
    both = np.frombuffer(raw, np.uint8, size_of(dims, dtype))
    halves = np.stack([both & 15, both >> 4], axis=1).reshape(-1)[: int(np.prod(dims, dtype=np.int64))]
    return ((halves.astype(np.int8) ^ 8) - 8).reshape(dims)


def in_type(kind: Kind, sums: NDArray[Any], of: dict[str, Quantised]) -> NDArray[Any]:
    """C in its type.

    Args:
        kind: The types.
        sums: M by N: of integers as float64, exact; of real numbers C itself.
        of: Quantisation by "A", "B", "C".
    """
    if kind.a == "float16":
        return sums
    if kind.c in {"int32", "int16"}:
        whole: NDArray[Any] = sums.astype(np.int64).astype(kind.c)
        return whole
    real: NDArray[Any] = sums * (of["A"].scale * of["B"].scale).astype(np.float64)
    if kind.c == "float32":
        return real.astype(np.float32)
    return quantize(real, of["C"].scale, of["C"].zero, np.dtype(np.int8))
