"""Pass four-bit tensors to and from onnxruntime as packed bytes, since its Python API lacks the numpy type."""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from hbrt.models.errors import GraphError, Reason
from hbrt.models.spec import nibbles
from hbrt.models.spec.dtypes import NIBBLE_TYPES, onnx_type_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = {onnx_type_of(dtype): dtype for dtype in NIBBLE_TYPES}


def value_of(array: NDArray[Any]) -> ort.OrtValue:
    """Create an OrtValue; for four bits, of a carrier with the array's shape, of which only the packed half is read."""
    if array.dtype not in NIBBLE_TYPES:
        return ort.OrtValue.ortvalue_from_numpy(array)
    carrier = np.zeros(array.shape, np.uint8)
    nibbles.pack(array, carrier.reshape(-1)[: (array.size + 1) // 2])
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(carrier, onnx_type_of(array.dtype))


def array_of(value: ort.OrtValue) -> NDArray[Any]:
    """Return the array of an OrtValue.

    Raises:
        GraphError: RUN_FAILED: it is a list of tensors, or empty.
    """
    if not value.is_tensor():
        raise GraphError(Reason.RUN_FAILED, f"A value is {value.data_type()}, not a tensor.")
    dtype = _TYPES.get(value.element_type())
    if dtype is None:
        found: NDArray[Any] = value.numpy()
        return found
    shape = tuple(value.shape())
    size_bytes = (prod(shape) + 1) // 2
    packed = (ctypes.c_ubyte * size_bytes).from_address(value.data_ptr()) if size_bytes else b""
    return nibbles.unpack(np.frombuffer(packed, np.uint8), shape, dtype)
