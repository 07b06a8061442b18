"""Element types: the vendor's enum mapped to ONNX's and numpy's. Types it lacks are refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import TensorProto

from arm_client.dnn.errors import incompatible
from hbrt.dnn_types import hbDNNDataType
from hbrt.models.spec.dtypes import NUMPY_TYPES

if TYPE_CHECKING:
    import numpy as np

_T = hbDNNDataType
# J5's enum has no boolean: it is carried as U8, 0 or 1.
_BY_ONNX: dict[int, hbDNNDataType] = {
    TensorProto.BOOL: _T.HB_DNN_TENSOR_TYPE_U8,
    TensorProto.INT4: _T.HB_DNN_TENSOR_TYPE_S4,
    TensorProto.UINT4: _T.HB_DNN_TENSOR_TYPE_U4,
    TensorProto.INT8: _T.HB_DNN_TENSOR_TYPE_S8,
    TensorProto.UINT8: _T.HB_DNN_TENSOR_TYPE_U8,
    TensorProto.FLOAT16: _T.HB_DNN_TENSOR_TYPE_F16,
    TensorProto.INT16: _T.HB_DNN_TENSOR_TYPE_S16,
    TensorProto.UINT16: _T.HB_DNN_TENSOR_TYPE_U16,
    TensorProto.FLOAT: _T.HB_DNN_TENSOR_TYPE_F32,
    TensorProto.INT32: _T.HB_DNN_TENSOR_TYPE_S32,
    TensorProto.UINT32: _T.HB_DNN_TENSOR_TYPE_U32,
    TensorProto.DOUBLE: _T.HB_DNN_TENSOR_TYPE_F64,
    TensorProto.INT64: _T.HB_DNN_TENSOR_TYPE_S64,
    TensorProto.UINT64: _T.HB_DNN_TENSOR_TYPE_U64,
}
NIBBLES = frozenset({_T.HB_DNN_TENSOR_TYPE_S4, _T.HB_DNN_TENSOR_TYPE_U4})  # two values per byte, low half first

LIMITS: dict[hbDNNDataType, tuple[int, int]] = {
    _T.HB_DNN_TENSOR_TYPE_S4: (-8, 7),
    _T.HB_DNN_TENSOR_TYPE_U4: (0, 15),
    _T.HB_DNN_TENSOR_TYPE_S8: (-128, 127),
    _T.HB_DNN_TENSOR_TYPE_U8: (0, 255),
    _T.HB_DNN_TENSOR_TYPE_S16: (-(1 << 15), (1 << 15) - 1),
    _T.HB_DNN_TENSOR_TYPE_U16: (0, (1 << 16) - 1),
    _T.HB_DNN_TENSOR_TYPE_S32: (-(1 << 31), (1 << 31) - 1),
}
"""Minimum and maximum stored integer of each quantized type."""


def carried(onnx_type: int, tensor: str) -> tuple[np.dtype[Any], hbDNNDataType]:
    """Return the numpy type and the vendor's type of an ONNX element type.

    Args:
        onnx_type: TensorProto.DataType.
        tensor: Name of the tensor, for the message.

    Raises:
        ModelError: INCOMPATIBLE_MODEL if the API has no such type.
    """
    found = _BY_ONNX.get(onnx_type)
    if found is None:
        known = onnx_type in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(onnx_type) if known else str(onnx_type)
        raise incompatible(
            f"The tensor {tensor!r} has the ONNX type {name}, which hbDNNDataType does not have; cast "
            f"it to a supported number type."
        )
    return NUMPY_TYPES[onnx_type], found


def dtype_of(vendors_type: int) -> np.dtype[Any]:
    """Return the numpy type of one of the vendor's numeric types.

    Raises:
        ValueError: it is not a numeric type.
    """
    found = next((onnx_type for onnx_type, kind in reversed(_BY_ONNX.items()) if kind == vendors_type), None)
    if found is None:
        raise ValueError(f"{vendors_type} is not a numeric hbDNNDataType.")
    return NUMPY_TYPES[found]
