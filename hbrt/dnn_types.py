"""C structures and enums of the DNN runtime's public API, as ctypes.

Field order and values follow the DNN API manual (J5). Enums whose numbers the manual does not print are numbered as C
does, in the order of the manual; a vendor's log confirms the image types. Sizes are those of an LP64 C compiler.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, TypeVar

from hbrt.structures import CHandle, CStructure, OtherSpelling, initializer
from hbrt.types import HB_DSP_CORE_ANY, hbSysMem

HB_DNN_VERSION_MAJOR = 1
HB_DNN_VERSION_MINOR = 1
HB_DNN_VERSION_PATCH = 0
HB_DNN_TENSOR_MAX_DIMENSIONS = 8
MEMS_PER_TENSOR = 4

HB_DNN_LOG_NONE = 0
HB_DNN_LOG_WARNING = 3
HB_DNN_LOG_ERROR = 4
HB_DNN_LOG_FATAL = 5
"""Values of the variable HB_DNN_LOG_LEVEL (BPU SDK API manual)."""

_Ctrl = TypeVar("_Ctrl", bound=CStructure)


class hbDNNTensorLayout(IntEnum):
    """Order of a tensor's dimensions."""

    HB_DNN_LAYOUT_NHWC = 0
    HB_DNN_LAYOUT_NCHW = 2
    HB_DNN_LAYOUT_NONE = 255


class hbDNNQuantiType(IntEnum):
    """How stored numbers stand for real ones."""

    NONE = 0
    SHIFT = 1
    SCALE = 2


class hbDNNTaskPriority(IntEnum):
    """Priorities of model tasks; larger first."""

    HB_DNN_PRIORITY_LOWEST = 0
    HB_DNN_PRIORITY_HIGHEST = 255
    HB_DNN_PRIORITY_PREEMP = 255


class hbBPUCore(IntEnum):
    """Which BPU core runs a task; bit i stands for core i, 0 for any."""

    HB_BPU_CORE_ANY = 0
    HB_BPU_CORE_0 = 1
    HB_BPU_CORE_1 = 2


class hbDNNResizeType(IntEnum):
    """Interpolation of a resizer."""

    HB_DNN_RESIZE_TYPE_BILINEAR = 0


class hbDNNDataType(IntEnum):
    """Types of tensors: images, then numbers."""

    HB_DNN_IMG_TYPE_Y = 0
    HB_DNN_IMG_TYPE_NV12 = 1
    HB_DNN_IMG_TYPE_NV12_SEPARATE = 2
    HB_DNN_IMG_TYPE_YUV444 = 3
    HB_DNN_IMG_TYPE_RGB = 4
    HB_DNN_IMG_TYPE_BGR = 5
    HB_DNN_TENSOR_TYPE_S4 = 6
    HB_DNN_TENSOR_TYPE_U4 = 7
    HB_DNN_TENSOR_TYPE_S8 = 8
    HB_DNN_TENSOR_TYPE_U8 = 9
    HB_DNN_TENSOR_TYPE_F16 = 10
    HB_DNN_TENSOR_TYPE_S16 = 11
    HB_DNN_TENSOR_TYPE_U16 = 12
    HB_DNN_TENSOR_TYPE_F32 = 13
    HB_DNN_TENSOR_TYPE_S32 = 14
    HB_DNN_TENSOR_TYPE_U32 = 15
    HB_DNN_TENSOR_TYPE_F64 = 16
    HB_DNN_TENSOR_TYPE_S64 = 17
    HB_DNN_TENSOR_TYPE_U64 = 18
    HB_DNN_TENSOR_TYPE_MAX = 19


# C's enumerators are names of their own, without their enum's before them.
HB_DNN_LAYOUT_NHWC = hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC
HB_DNN_LAYOUT_NCHW = hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
HB_DNN_LAYOUT_NONE = hbDNNTensorLayout.HB_DNN_LAYOUT_NONE
NONE = hbDNNQuantiType.NONE
SHIFT = hbDNNQuantiType.SHIFT
SCALE = hbDNNQuantiType.SCALE
HB_DNN_PRIORITY_LOWEST = hbDNNTaskPriority.HB_DNN_PRIORITY_LOWEST
HB_DNN_PRIORITY_HIGHEST = hbDNNTaskPriority.HB_DNN_PRIORITY_HIGHEST
HB_DNN_PRIORITY_PREEMP = hbDNNTaskPriority.HB_DNN_PRIORITY_PREEMP
HB_BPU_CORE_ANY = hbBPUCore.HB_BPU_CORE_ANY
HB_BPU_CORE_0 = hbBPUCore.HB_BPU_CORE_0
HB_BPU_CORE_1 = hbBPUCore.HB_BPU_CORE_1
HB_DNN_RESIZE_TYPE_BILINEAR = hbDNNResizeType.HB_DNN_RESIZE_TYPE_BILINEAR
HB_DNN_IMG_TYPE_Y = hbDNNDataType.HB_DNN_IMG_TYPE_Y
HB_DNN_IMG_TYPE_NV12 = hbDNNDataType.HB_DNN_IMG_TYPE_NV12
HB_DNN_IMG_TYPE_NV12_SEPARATE = hbDNNDataType.HB_DNN_IMG_TYPE_NV12_SEPARATE
HB_DNN_IMG_TYPE_YUV444 = hbDNNDataType.HB_DNN_IMG_TYPE_YUV444
HB_DNN_IMG_TYPE_RGB = hbDNNDataType.HB_DNN_IMG_TYPE_RGB
HB_DNN_IMG_TYPE_BGR = hbDNNDataType.HB_DNN_IMG_TYPE_BGR
HB_DNN_TENSOR_TYPE_S4 = hbDNNDataType.HB_DNN_TENSOR_TYPE_S4
HB_DNN_TENSOR_TYPE_U4 = hbDNNDataType.HB_DNN_TENSOR_TYPE_U4
HB_DNN_TENSOR_TYPE_S8 = hbDNNDataType.HB_DNN_TENSOR_TYPE_S8
HB_DNN_TENSOR_TYPE_U8 = hbDNNDataType.HB_DNN_TENSOR_TYPE_U8
HB_DNN_TENSOR_TYPE_F16 = hbDNNDataType.HB_DNN_TENSOR_TYPE_F16
HB_DNN_TENSOR_TYPE_S16 = hbDNNDataType.HB_DNN_TENSOR_TYPE_S16
HB_DNN_TENSOR_TYPE_U16 = hbDNNDataType.HB_DNN_TENSOR_TYPE_U16
HB_DNN_TENSOR_TYPE_F32 = hbDNNDataType.HB_DNN_TENSOR_TYPE_F32
HB_DNN_TENSOR_TYPE_S32 = hbDNNDataType.HB_DNN_TENSOR_TYPE_S32
HB_DNN_TENSOR_TYPE_U32 = hbDNNDataType.HB_DNN_TENSOR_TYPE_U32
HB_DNN_TENSOR_TYPE_F64 = hbDNNDataType.HB_DNN_TENSOR_TYPE_F64
HB_DNN_TENSOR_TYPE_S64 = hbDNNDataType.HB_DNN_TENSOR_TYPE_S64
HB_DNN_TENSOR_TYPE_U64 = hbDNNDataType.HB_DNN_TENSOR_TYPE_U64
HB_DNN_TENSOR_TYPE_MAX = hbDNNDataType.HB_DNN_TENSOR_TYPE_MAX


class hbPackedDNNHandle_t(CHandle):
    """Opaque handle of the models that one call loaded."""


class hbDNNHandle_t(CHandle):
    """Opaque handle of one model."""


class hbDNNTaskHandle_t(CHandle):
    """Opaque handle of a model task; ``value`` is None until hbDNNInfer fills it."""


hbDNNTaskDoneCb = ctypes.CFUNCTYPE(None, hbDNNTaskHandle_t, ctypes.c_int32, ctypes.c_void_p)
"""``void (*)(hbDNNTaskHandle_t task, int32_t status, void *userdata)``. A Python function will do as it is.

Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3.4.5 hbDNNSetTaskDoneCb,
https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
"""


_GivesObject = ctypes.PYFUNCTYPE(ctypes.py_object)


class hbDNNLayerCreator(_GivesObject):  # type: ignore[misc, valid-type]  # made by a call
    """``Layer *(*)()``: no arguments, gives a layer, a Python object. A class or a function will do as it is.

    Emulator: the signature, which is not public.
    """

    _flags_, _restype_, _argtypes_ = _GivesObject._flags_, _GivesObject._restype_, _GivesObject._argtypes_

    def __init__(self, function: Any = None) -> None:
        """Of a Python function, or of an address as every function pointer."""
        super().__init__()
        self._function = function

    def __call__(self) -> Any:
        """The layer."""
        # Past ctypes, which loses what a function of Python raises, and crashes on the layer that is missing then.
        return self._function() if callable(self._function) else super().__call__()


class hbDNNTensorShape(CStructure):
    """Sizes of a tensor's dimensions (36 bytes)."""

    _fields_ = (
        ("dimensionSize", ctypes.c_int32 * HB_DNN_TENSOR_MAX_DIMENSIONS),
        ("numDimensions", ctypes.c_int32),
    )
    dimensionSize: Any
    numDimensions: int


class hbDNNQuantiShift(CStructure):
    """Shifts: real = stored / 2^shift (16 bytes)."""

    _fields_ = (("shiftLen", ctypes.c_int32), ("shiftData", ctypes.POINTER(ctypes.c_uint8)))
    shiftLen: int
    shiftData: Any


class hbDNNQuantiScale(CStructure):
    """Scales and zero points: real = (stored - zero point) * scale (32 bytes)."""

    _fields_ = (
        ("scaleLen", ctypes.c_int32),
        ("scaleData", ctypes.POINTER(ctypes.c_float)),
        ("zeroPointLen", ctypes.c_int32),
        ("zeroPointData", ctypes.POINTER(ctypes.c_int8)),
    )
    scaleLen: int
    scaleData: Any
    zeroPointLen: int
    zeroPointData: Any
    # The DNN API manual's text spells both in this way, too.
    zeropointLen = OtherSpelling("zeroPointLen")
    zeropointData = OtherSpelling("zeroPointData")


class hbDNNTensorProperties(CStructure):
    """What a tensor looks like in memory (176 bytes). A caller may change alignedShape and tensorType alone."""

    _fields_ = (
        ("validShape", hbDNNTensorShape),
        ("alignedShape", hbDNNTensorShape),
        ("tensorLayout", ctypes.c_int32),
        ("tensorType", ctypes.c_int32),
        ("shift", hbDNNQuantiShift),
        ("scale", hbDNNQuantiScale),
        ("quantiType", ctypes.c_int32),
        ("quantizeAxis", ctypes.c_int32),
        ("alignedByteSize", ctypes.c_int32),
        ("stride", ctypes.c_int32 * HB_DNN_TENSOR_MAX_DIMENSIONS),
    )
    validShape: hbDNNTensorShape
    alignedShape: hbDNNTensorShape
    tensorLayout: int
    tensorType: int
    shift: hbDNNQuantiShift
    scale: hbDNNQuantiScale
    quantiType: int
    quantizeAxis: int
    alignedByteSize: int
    stride: Any


class hbDNNTensor(CStructure):
    """Memory and properties of a tensor; NV12_SEPARATE uses sysMem[0] for Y and [1] for UV, all others sysMem[0]."""

    _fields_ = (("sysMem", hbSysMem * MEMS_PER_TENSOR), ("properties", hbDNNTensorProperties))
    sysMem: Any
    properties: hbDNNTensorProperties


class hbDNNRoi(CStructure):
    """A region with inclusive corners: width = right - left + 1 (16 bytes)."""

    _fields_ = (
        ("left", ctypes.c_int32),
        ("top", ctypes.c_int32),
        ("right", ctypes.c_int32),
        ("bottom", ctypes.c_int32),
    )
    left: int
    top: int
    right: int
    bottom: int


class hbDNNInferCtrlParam(CStructure):
    """How a model task is scheduled (32 bytes)."""

    _fields_ = (
        ("bpuCoreId", ctypes.c_int32),
        ("dspCoreId", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("more", ctypes.c_int32),
        ("customId", ctypes.c_int64),
        ("reserved1", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
    )
    bpuCoreId: int
    dspCoreId: int
    priority: int
    more: int
    customId: int
    reserved1: int
    reserved2: int


class hbDNNResizeCtrlParam(CStructure):
    """How a resize task is scheduled (28 bytes; of X3's hbDNNResize)."""

    _fields_ = (
        ("bpuCoreId", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("resizeType", ctypes.c_int32),
        ("reserved1", ctypes.c_int32),
        ("reserved2", ctypes.c_int32),
        ("reserved3", ctypes.c_int32),
        ("reserved4", ctypes.c_int32),
    )
    bpuCoreId: int
    priority: int
    resizeType: int
    reserved1: int
    reserved2: int
    reserved3: int
    reserved4: int


_LOWEST = hbDNNTaskPriority.HB_DNN_PRIORITY_LOWEST
_initialize_infer = initializer(hbDNNInferCtrlParam(HB_BPU_CORE_ANY, HB_DSP_CORE_ANY, _LOWEST))
_initialize_resize = initializer(hbDNNResizeCtrlParam(HB_BPU_CORE_ANY, _LOWEST, HB_DNN_RESIZE_TYPE_BILINEAR))


def HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl: hbDNNInferCtrlParam) -> None:
    """Set the manual's defaults: any BPU core, any DSP core, priority LOWEST, no chain. A macro in C, a call here.

    Takes the structure, ``byref()`` of it or a pointer, as the calls do; anything else is left alone.
    """
    target = _behind(ctrl, hbDNNInferCtrlParam)
    if target is not None:
        _initialize_infer(target)


def HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM(ctrl: hbDNNResizeCtrlParam) -> None:
    """Set the manual's defaults: any BPU core, bilinear, priority LOWEST. As HB_DNN_INITIALIZE_INFER_CTRL_PARAM."""
    target = _behind(ctrl, hbDNNResizeCtrlParam)
    if target is not None:
        _initialize_resize(target)


def _behind(given: object, kind: type[_Ctrl]) -> _Ctrl | None:
    """The structure itself, behind ``byref()``, or behind a pointer; None for anything else."""
    target: Any = getattr(given, "_obj", given)  # byref
    if isinstance(target, ctypes.POINTER(kind)) and bool(target):
        target = target.contents
    return target if isinstance(target, kind) else None
