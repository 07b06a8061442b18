"""The structures of native/include/arm/dnn/plugin/hbrt_layer.h, as ctypes."""

from __future__ import annotations

import ctypes

from hbrt.dnn_types import HB_DNN_TENSOR_MAX_DIMENSIONS, hbDNNInferCtrlParam


class hbrtArray(ctypes.Structure):
    """A tensor that a layer reads or writes; numDimensions is -1 for one that is left out."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("phyAddr", ctypes.c_uint64),
        ("type", ctypes.c_int32),
        ("numDimensions", ctypes.c_int32),
        ("shape", ctypes.c_int64 * HB_DNN_TENSOR_MAX_DIMENSIONS),
    )


class hbrtAttribute(ctypes.Structure):
    """An attribute that a node sets: text, whole numbers, or numbers."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("integers", ctypes.POINTER(ctypes.c_int64)),
        ("reals", ctypes.POINTER(ctypes.c_double)),
        ("integerCount", ctypes.c_int32),
        ("realCount", ctypes.c_int32),
    )


_Arrays = ctypes.POINTER(hbrtArray)
_Number = ctypes.c_int32


class hbrtLayer(ctypes.Structure):
    """The functions of a layer type."""

    _fields_ = (
        ("create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("setUp", ctypes.CFUNCTYPE(_Number, ctypes.c_void_p, ctypes.POINTER(hbrtAttribute), _Number)),
        ("inferShape", ctypes.CFUNCTYPE(_Number, ctypes.c_void_p, _Arrays, _Number, _Arrays, _Number)),
        (
            "forward",
            ctypes.CFUNCTYPE(
                _Number, ctypes.c_void_p, _Arrays, _Number, _Arrays, _Number, ctypes.POINTER(hbDNNInferCtrlParam)
            ),
        ),
        ("why", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )
