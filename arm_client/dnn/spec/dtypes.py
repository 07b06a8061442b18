"""Element types: ONNX's, numpy's and the vendor's. What the vendor's enum lacks is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import int4, uint4
from onnx import TensorProto

from arm_client.dnn.errors import incompatible
from hbrt.dnn_types import hbDNNDataType

_T = hbDNNDataType

# J5's enum has no boolean: it is carried as U8, 0 or 1.
_BY_ONNX: dict[int, tuple[np.dtype[Any], hbDNNDataType]] = {
    TensorProto.BOOL: (np.dtype(np.bool_), _T.HB_DNN_TENSOR_TYPE_U8),
    TensorProto.INT4: (np.dtype(int4), _T.HB_DNN_TENSOR_TYPE_S4),
    TensorProto.UINT4: (np.dtype(uint4), _T.HB_DNN_TENSOR_TYPE_U4),
    TensorProto.INT8: (np.dtype(np.int8), _T.HB_DNN_TENSOR_TYPE_S8),
    TensorProto.UINT8: (np.dtype(np.uint8), _T.HB_DNN_TENSOR_TYPE_U8),
    TensorProto.FLOAT16: (np.dtype(np.float16), _T.HB_DNN_TENSOR_TYPE_F16),
    TensorProto.INT16: (np.dtype(np.int16), _T.HB_DNN_TENSOR_TYPE_S16),
    TensorProto.UINT16: (np.dtype(np.uint16), _T.HB_DNN_TENSOR_TYPE_U16),
    TensorProto.FLOAT: (np.dtype(np.float32), _T.HB_DNN_TENSOR_TYPE_F32),
    TensorProto.INT32: (np.dtype(np.int32), _T.HB_DNN_TENSOR_TYPE_S32),
    TensorProto.UINT32: (np.dtype(np.uint32), _T.HB_DNN_TENSOR_TYPE_U32),
    TensorProto.DOUBLE: (np.dtype(np.float64), _T.HB_DNN_TENSOR_TYPE_F64),
    TensorProto.INT64: (np.dtype(np.int64), _T.HB_DNN_TENSOR_TYPE_S64),
    TensorProto.UINT64: (np.dtype(np.uint64), _T.HB_DNN_TENSOR_TYPE_U64),
}
_BY_NUMPY = {dtype: onnx_type for onnx_type, (dtype, _) in _BY_ONNX.items()}
NIBBLE_TYPES = (np.dtype(int4), np.dtype(uint4))
NIBBLES = frozenset({_T.HB_DNN_TENSOR_TYPE_S4, _T.HB_DNN_TENSOR_TYPE_U4})  # two values a byte, the first one low


def carried(onnx_type: int, tensor: str) -> tuple[np.dtype[Any], hbDNNDataType]:
    """Numpy type and vendor's type of an ONNX element type.

    Args:
        onnx_type: TensorProto.DataType.
        tensor: Name of the tensor, for the message.

    Raises:
        ModelError: INCOMPATIBLE_MODEL when the API has no such type.
    """
    found = _BY_ONNX.get(onnx_type)
    if found is None:
        known = onnx_type in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(onnx_type) if known else str(onnx_type)
        raise incompatible(
            f"The tensor {tensor!r} has the ONNX type {name}, which hbDNNDataType cannot carry; "
            "cast it to a number type that it has."
        )
    return found


def onnx_type_of(dtype: np.dtype[Any]) -> int:
    """TensorProto.DataType of a numpy type that ``carried`` gave."""
    return _BY_NUMPY[dtype]


def dtype_of(vendors_type: int) -> np.dtype[Any]:
    """Numpy type of a vendor's type of numbers.

    Raises:
        ValueError: it is none of numbers.
    """
    found = next((dtype for dtype, kind in reversed(_BY_ONNX.values()) if kind == vendors_type), None)
    if found is None:
        raise ValueError(f"{vendors_type} is no hbDNNDataType of a tensor of numbers.")
    return found
