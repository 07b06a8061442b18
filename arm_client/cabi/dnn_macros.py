"""The DNN runtime's initializer macros from C, and the layer creator from C++.

Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3,
https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
"""

from __future__ import annotations

import ctypes
from typing import Any

from arm_client.cabi.arguments import deref
from hbrt.dnn_types import (
    hbBPUCore,
    hbDNNInferCtrlParam,
    hbDNNResizeCtrlParam,
    hbDNNResizeType,
    hbDNNTaskPriority,
)
from hbrt.structures import initializer
from hbrt.types import HB_DSP_CORE_ANY

_GivesObject = ctypes.PYFUNCTYPE(ctypes.py_object)


class hbDNNLayerCreator(_GivesObject):  # type: ignore[misc, valid-type]  # made by a call
    """``Layer *(*)()``: no arguments, returns a layer, a Python object. A class or function can be used directly.

    Emulator: the signature is not public.
    """

    _flags_, _restype_, _argtypes_ = _GivesObject._flags_, _GivesObject._restype_, _GivesObject._argtypes_

    def __init__(self, function: Any = None) -> None:
        """Create it from a Python function, or from an address like any function pointer."""
        super().__init__()
        self._function = function

    def __call__(self) -> Any:
        """Create the layer."""
        # Bypass ctypes, which loses exceptions of Python functions and then crashes on the missing layer.
        return self._function() if callable(self._function) else super().__call__()


_LOWEST = hbDNNTaskPriority.HB_DNN_PRIORITY_LOWEST
_initialize_infer = initializer(hbDNNInferCtrlParam(hbBPUCore.HB_BPU_CORE_ANY, HB_DSP_CORE_ANY, _LOWEST))
_initialize_resize = initializer(
    hbDNNResizeCtrlParam(hbBPUCore.HB_BPU_CORE_ANY, _LOWEST, hbDNNResizeType.HB_DNN_RESIZE_TYPE_BILINEAR)
)


def HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl: hbDNNInferCtrlParam) -> None:
    """Set the manual's defaults: any BPU core, any DSP core, priority LOWEST, no chain. A macro in C, a call here.

    Like the calls, it takes the structure, ``byref()`` or a pointer; anything else is left unchanged.
    """
    if (target := deref(ctrl, hbDNNInferCtrlParam)) is not None:
        _initialize_infer(target)


def HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM(ctrl: hbDNNResizeCtrlParam) -> None:
    """Set the manual's defaults: any BPU core, bilinear, priority LOWEST. Like HB_DNN_INITIALIZE_INFER_CTRL_PARAM."""
    if (target := deref(ctrl, hbDNNResizeCtrlParam)) is not None:
        _initialize_resize(target)
