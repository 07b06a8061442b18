"""Element types: ONNX's and numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import int4, uint4
from onnx import TensorProto

NUMPY_TYPES: dict[int, np.dtype[Any]] = {
    TensorProto.BOOL: np.dtype(np.bool_),
    TensorProto.INT4: np.dtype(int4),
    TensorProto.UINT4: np.dtype(uint4),
    TensorProto.INT8: np.dtype(np.int8),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.INT16: np.dtype(np.int16),
    TensorProto.UINT16: np.dtype(np.uint16),
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.INT32: np.dtype(np.int32),
    TensorProto.UINT32: np.dtype(np.uint32),
    TensorProto.DOUBLE: np.dtype(np.float64),
    TensorProto.INT64: np.dtype(np.int64),
    TensorProto.UINT64: np.dtype(np.uint64),
}
"""numpy types by TensorProto.DataType: the supported numeric types."""

_BY_NUMPY = {dtype: onnx_type for onnx_type, dtype in NUMPY_TYPES.items()}
NIBBLE_TYPES = (np.dtype(int4), np.dtype(uint4))


def onnx_type_of(dtype: np.dtype[Any]) -> int:
    """Return the TensorProto.DataType of a numpy type in NUMPY_TYPES."""
    return _BY_NUMPY[dtype]
