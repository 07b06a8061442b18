"""Four-bit tensors: two values per byte, the first in the low half, as packed by ONNX. Pure."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unpack(packed: NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Unpack values of ``shape`` and an ml_dtypes type (int4 or uint4) from ceil(size / 2) bytes."""
    halves = np.empty(packed.size * 2, np.uint8)
    halves[0::2] = packed & 0xF
    halves[1::2] = packed >> 4
    values = halves[: prod(shape)]
    if dtype.name == "int4":
        signed = (values ^ 8).astype(np.int8) - 8
        return signed.astype(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def pack(values: NDArray[Any], into: NDArray[np.uint8]) -> None:
    """Pack four-bit values into ceil(size / 2) bytes; an unused half byte becomes 0."""
    halves = np.zeros(into.size * 2, np.uint8)
    halves[: values.size] = values.astype(np.int8).ravel().view(np.uint8) & 0xF
    into[:] = halves[0::2] | halves[1::2] << 4
