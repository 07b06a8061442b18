"""Matrix products as the NPU computes them: types, layouts by chip, quantization. Pure.

Source: RKNN API for RKNPU user guide (1.5.2), layouts of matrices, in doc of https://github.com/rockchip-linux/rknpu2
Emulator: two int4 numbers share a byte, the first in its lower half; an integer product wraps around at 32 bits; group
scales come column by column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hbrt.quantize.numbers import quantize

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_K: Final = 10240


class MatmulTypes(NamedTuple):
    """Types of A, B and C with numpy's names; also "int4"."""

    a: str
    b: str
    c: str


KINDS: Final = {
    1: MatmulTypes("float16", "float16", "float32"),
    2: MatmulTypes("int8", "int8", "int32"),
    3: MatmulTypes("int8", "int8", "int8"),
    4: MatmulTypes("float16", "float16", "float16"),
    5: MatmulTypes("float16", "int8", "float32"),
    6: MatmulTypes("float16", "int8", "float16"),
    7: MatmulTypes("float16", "int4", "float32"),
    8: MatmulTypes("float16", "int4", "float16"),
    9: MatmulTypes("int8", "int8", "float32"),
    10: MatmulTypes("int4", "int4", "int16"),
    11: MatmulTypes("int8", "int4", "int32"),
    12: MatmulTypes("float16", "int4", "bfloat16"),
    15: MatmulTypes("int8", "int4", "float16"),
}
"""By rknn_matmul_type."""


class Parts(NamedTuple):
    """A chip's rules for a type: required multiples of K and N, and the tiles of native A (K), B (N by K), C (N)."""

    k: int
    n: int
    a: int
    b: tuple[int, int]
    c: int = 4


_PARTS: Final = {
    "rk3588": {
        "int4": Parts(32, 64, 32, (64, 32), 8),
        "int8": Parts(32, 32, 16, (32, 32)),
        "float16": Parts(32, 16, 8, (16, 32)),
    },
    "rk3562": {
        "int4": Parts(32, 16, 16, (16, 32)),
        "int8": Parts(32, 16, 16, (16, 32)),
        "float16": Parts(32, 8, 8, (8, 32)),
    },
    "rk3566": {
        "int4": Parts(32, 16, 8, (16, 32)),
        "int8": Parts(32, 16, 8, (16, 32)),
        "float16": Parts(16, 8, 4, (8, 16)),
    },
}
_LIKE: Final = {"rk3576": "rk3588", "rk3568": "rk3566", "rv1126b": "rk3562"}


def parts_of(chip: str, dtype: str) -> Parts:
    """A chip's rules for numbers of a type."""
    return _PARTS[_LIKE.get(chip, chip)][dtype]


class Sizes(NamedTuple):
    """C (M rows, N columns) is A (M by K) times B (K by N)."""

    m: int
    k: int
    n: int


class Quantized(NamedTuple):
    """Scale and zero point of a matrix, one or one per column."""

    scale: NDArray[Any]
    zero: NDArray[Any]


_STORED: Final = {"bfloat16": "uint16"}
PLAIN: Final = Quantized(np.ones(1, np.float32), np.zeros(1, np.int32))


def wrong_size(kind: MatmulTypes, sizes: Sizes, chip: str) -> str:
    """An error message about the sizes of a product; empty if they are valid."""
    both = [parts_of(chip, dtype) for dtype in {kind.a, kind.b}]
    multiple_k, multiple_n = max(one.k for one in both), max(one.n for one in both)
    if min(sizes) >= 1 and not sizes.k % multiple_k and not sizes.n % multiple_n and sizes.k <= MAX_K:
        return ""
    return (
        f"M, K and N are {sizes.m}, {sizes.k} and {sizes.n}: M must be 1 or more, K a multiple of {multiple_k} up to "
        f"{MAX_K}, and N a multiple of {multiple_n}, for {kind.a} by {kind.b} on {chip}."
    )


def native_dims(which: str, kind: MatmulTypes, sizes: Sizes, chip: str) -> tuple[int, ...]:
    """Dimensions of A, B or C in the native layout, rounded up."""
    m, k, n = sizes
    if which == "A":
        part = parts_of(chip, kind.a).a
        return -(-k // part), m, part
    if which == "B":
        rows, columns = parts_of(chip, kind.b).b
        return -(-n // rows), -(-k // columns), rows, columns
    part = parts_of(chip, kind.a).c
    return -(-n // part), m, part


def plain_dims(which: str, sizes: Sizes) -> tuple[int, int]:
    """Dimensions of A, B or C row by row."""
    m, k, n = sizes
    return {"A": (m, k), "B": (k, n), "C": (m, n)}[which]


def size_of(dims: tuple[int, ...], dtype: str) -> int:
    """Bytes of a matrix."""
    count = int(np.prod(dims, dtype=np.int64))
    return -(-count // 2) if dtype == "int4" else count * np.dtype(_STORED.get(dtype, dtype)).itemsize


def to_native(which: str, matrix: NDArray[Any], dims: tuple[int, ...]) -> NDArray[Any]:
    """A matrix in its native layout; padding is zero."""
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
    """The matrix of a shape from its native layout."""
    if which == "B":
        outer, inner, rows, columns = native.shape
        return native.transpose(0, 2, 1, 3).reshape(outer * rows, inner * columns)[: shape[1], : shape[0]].T
    outer, m, part = native.shape
    return native.transpose(1, 0, 2).reshape(m, outer * part)[:, : shape[1]]


def unpacked(raw: memoryview, dims: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """The elements in memory: int4 as int8."""
    if dtype != "int4":
        return np.frombuffer(raw, _STORED.get(dtype, dtype), int(np.prod(dims, dtype=np.int64))).reshape(dims)
    both = np.frombuffer(raw, np.uint8, size_of(dims, dtype))
    halves = np.stack([both & 15, both >> 4], axis=1).reshape(-1)[: int(np.prod(dims, dtype=np.int64))]
    return ((halves.astype(np.int8) ^ 8) - 8).reshape(dims)


def packed(matrix: NDArray[Any], dtype: str) -> NDArray[np.uint8]:
    """The bytes of a matrix: the reverse of ``unpacked``."""
    if dtype != "int4":
        return np.ascontiguousarray(matrix).reshape(-1).view(np.uint8)
    halves = matrix.reshape(-1).view(np.uint8) & np.uint8(15)
    both: NDArray[np.uint8] = halves[::2] | halves[1::2] << np.uint8(4)
    return both


def in_type(kind: MatmulTypes, sums: NDArray[Any], of: dict[str, Quantized]) -> NDArray[Any]:
    """C in its type.

    Args:
        kind: The types.
        sums: M by N: for integers float64, exact; for real numbers C itself, as float32 if it is bfloat16.
        of: Quantization of "A", "B", "C".
    """
    if kind.c == "bfloat16":
        bits = np.ascontiguousarray(sums, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)  # to nearest, ties to even
    if kind.a == "float16":
        return sums
    if kind.c == "float16":
        return (sums * of["A"].scale.astype(np.float64)).astype(np.float16)
    if kind.c in {"int32", "int16"}:
        whole: NDArray[Any] = sums.astype(np.int64).astype(kind.c)
        return whole
    real: NDArray[Any] = sums * (of["A"].scale * of["B"].scale).astype(np.float64)
    if kind.c == "float32":
        return real.astype(np.float32)
    return quantize(real, of["C"].scale, of["C"].zero, np.dtype(np.int8))
