"""Python's additions to the RKNN structures: numpy's names of types, and the types of callbacks."""

from __future__ import annotations

import ctypes

from rknn_api.types import rknn_custom_op_context, rknn_custom_op_tensor, rknn_tensor_type

DTYPES = {
    "float32": rknn_tensor_type.RKNN_TENSOR_FLOAT32, "float16": rknn_tensor_type.RKNN_TENSOR_FLOAT16,
    "int8": rknn_tensor_type.RKNN_TENSOR_INT8, "uint8": rknn_tensor_type.RKNN_TENSOR_UINT8,
    "int16": rknn_tensor_type.RKNN_TENSOR_INT16, "uint16": rknn_tensor_type.RKNN_TENSOR_UINT16,
    "int32": rknn_tensor_type.RKNN_TENSOR_INT32, "uint32": rknn_tensor_type.RKNN_TENSOR_UINT32,
    "int64": rknn_tensor_type.RKNN_TENSOR_INT64, "bool": rknn_tensor_type.RKNN_TENSOR_BOOL,
}  # fmt: skip
"""A type's number, by numpy's name."""
DTYPE_OF = {int(number): name for name, number in DTYPES.items()}

rknn_custom_op_callback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(rknn_custom_op_context),
    ctypes.POINTER(rknn_custom_op_tensor),
    ctypes.c_uint32,
    ctypes.POINTER(rknn_custom_op_tensor),
    ctypes.c_uint32,
)
"""The type of init, prepare and compute."""
rknn_custom_op_destroy = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(rknn_custom_op_context))
"""The type of destroy."""
