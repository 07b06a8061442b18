"""C structures and enums of the DNN runtime's public API, as ctypes.

Field order and values follow the DNN API manual (J5). Enums whose numbers the manual does not print are numbered as C
does, in the order of the manual; a vendor's log confirms the image types. Sizes are those of an LP64 C compiler.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from hbrt.structures import CHandle, CStructure, OtherSpelling, initializer, int32_t, int64_t, structure
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


class hbDNNInputSource(IntEnum):
    """What fills an input. Emulator: the numbers; the names are those of the vendor's logs and tools."""

    HB_DNN_INPUT_FROM_DDR = 0
    HB_DNN_INPUT_FROM_RESIZER = 1
    HB_DNN_INPUT_FROM_PYRAMID = 2


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
if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


# The flat names of the vendor's headers: the same objects as the members.
for _kind in (
    hbDNNTensorLayout,
    hbDNNQuantiType,
    hbDNNTaskPriority,
    hbBPUCore,
    hbDNNResizeType,
    hbDNNInputSource,
    hbDNNDataType,
):
    globals().update(_kind.__members__)


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


# Types of fields beside C's plain ones.
Dimensions: TypeAlias = Annotated[Any, ctypes.c_int32 * HB_DNN_TENSOR_MAX_DIMENSIONS]
Shifts: TypeAlias = Annotated[Any, ctypes.POINTER(ctypes.c_uint8)]
Scales: TypeAlias = Annotated[Any, ctypes.POINTER(ctypes.c_float)]
ZeroPoints: TypeAlias = Annotated[Any, ctypes.POINTER(ctypes.c_int8)]
Blocks: TypeAlias = Annotated[Any, hbSysMem * MEMS_PER_TENSOR]


@structure
class hbDNNTensorShape(CStructure):
    """Sizes of a tensor's dimensions (36 bytes)."""

    dimensionSize: Dimensions
    numDimensions: int32_t


@structure
class hbDNNQuantiShift(CStructure):
    """Shifts: real = stored / 2^shift (16 bytes)."""

    shiftLen: int32_t
    shiftData: Shifts


@structure
class hbDNNQuantiScale(CStructure):
    """Scales and zero points: real = (stored - zero point) * scale (32 bytes)."""

    scaleLen: int32_t
    scaleData: Scales
    zeroPointLen: int32_t
    zeroPointData: ZeroPoints
    # The DNN API manual's text spells both in this way, too.
    zeropointLen = OtherSpelling("zeroPointLen")
    zeropointData = OtherSpelling("zeroPointData")


@structure
class hbDNNTensorProperties(CStructure):
    """What a tensor looks like in memory (176 bytes). A caller may change alignedShape and tensorType alone."""

    validShape: hbDNNTensorShape
    alignedShape: hbDNNTensorShape
    tensorLayout: int32_t
    tensorType: int32_t
    shift: hbDNNQuantiShift
    scale: hbDNNQuantiScale
    quantiType: int32_t
    quantizeAxis: int32_t
    alignedByteSize: int32_t
    stride: Dimensions


@structure
class hbDNNTensor(CStructure):
    """Memory and properties of a tensor; NV12_SEPARATE uses sysMem[0] for Y and [1] for UV, all others sysMem[0]."""

    sysMem: Blocks
    properties: hbDNNTensorProperties


@structure
class hbDNNRoi(CStructure):
    """A region with inclusive corners: width = right - left + 1 (16 bytes)."""

    left: int32_t
    top: int32_t
    right: int32_t
    bottom: int32_t


@structure
class hbDNNInferCtrlParam(CStructure):
    """How a model task is scheduled (32 bytes)."""

    bpuCoreId: int32_t
    dspCoreId: int32_t
    priority: int32_t
    more: int32_t
    customId: int64_t
    reserved1: int32_t
    reserved2: int32_t
    Reserved1 = OtherSpelling("reserved1")  # in two ways there, too
    Reserved2 = OtherSpelling("reserved2")


@structure
class hbDNNResizeCtrlParam(CStructure):
    """How a resize task is scheduled (28 bytes; of X3's hbDNNResize)."""

    bpuCoreId: int32_t
    priority: int32_t
    resizeType: int32_t
    reserved1: int32_t
    reserved2: int32_t
    reserved3: int32_t
    reserved4: int32_t


_LOWEST = hbDNNTaskPriority.HB_DNN_PRIORITY_LOWEST
_initialize_infer = initializer(hbDNNInferCtrlParam(hbBPUCore.HB_BPU_CORE_ANY, HB_DSP_CORE_ANY, _LOWEST))
_initialize_resize = initializer(
    hbDNNResizeCtrlParam(hbBPUCore.HB_BPU_CORE_ANY, _LOWEST, hbDNNResizeType.HB_DNN_RESIZE_TYPE_BILINEAR)
)


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
