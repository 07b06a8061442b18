"""What ``arm_client`` exports lazily: the module of each name; and, for type checkers and editors alone, the names.

A name that is new goes into both lists; a test holds them together.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arm_client.arrays import BoardArray as BoardArray
    from arm_client.arrays import Buffer as Buffer
    from arm_client.client import ANY as ANY
    from arm_client.client import Board as Board
    from arm_client.client import connect as connect
    from arm_client.client import private_board as private_board
    from arm_client.dnn.api import hbDNNGetErrorDesc as hbDNNGetErrorDesc
    from arm_client.dnn.api import hbDNNGetInputCount as hbDNNGetInputCount
    from arm_client.dnn.api import hbDNNGetInputName as hbDNNGetInputName
    from arm_client.dnn.api import hbDNNGetInputTensorProperties as hbDNNGetInputTensorProperties
    from arm_client.dnn.api import hbDNNGetModelHandle as hbDNNGetModelHandle
    from arm_client.dnn.api import hbDNNGetModelNameList as hbDNNGetModelNameList
    from arm_client.dnn.api import hbDNNGetOutputCount as hbDNNGetOutputCount
    from arm_client.dnn.api import hbDNNGetOutputName as hbDNNGetOutputName
    from arm_client.dnn.api import hbDNNGetOutputTensorProperties as hbDNNGetOutputTensorProperties
    from arm_client.dnn.api import hbDNNGetVersion as hbDNNGetVersion
    from arm_client.dnn.api import hbDNNInfer as hbDNNInfer
    from arm_client.dnn.api import hbDNNInitializeFromDDR as hbDNNInitializeFromDDR
    from arm_client.dnn.api import hbDNNInitializeFromFiles as hbDNNInitializeFromFiles
    from arm_client.dnn.api import hbDNNRelease as hbDNNRelease
    from arm_client.dnn.api import hbDNNReleaseTask as hbDNNReleaseTask
    from arm_client.dnn.api import hbDNNSetTaskDoneCb as hbDNNSetTaskDoneCb
    from arm_client.dnn.api import hbDNNWaitTaskDone as hbDNNWaitTaskDone
    from arm_client.dnn.layers import hbDNNRegisterLayerCreator as hbDNNRegisterLayerCreator
    from arm_client.dnn.layers import hbDNNUnregisterLayerCreator as hbDNNUnregisterLayerCreator
    from arm_client.dnn.resize import hbDNNResize as hbDNNResize
    from arm_client.dnn.roi import hbDNNRoiInfer as hbDNNRoiInfer
    from arm_client.errors import BoardError as BoardError
    from arm_client.errors import BoardLostError as BoardLostError
    from arm_client.errors import CallerError as CallerError
    from arm_client.errors import CoreLostError as CoreLostError
    from arm_client.errors import HbrtError as HbrtError
    from arm_client.errors import OpFailedError as OpFailedError
    from arm_client.errors import OutOfMemoryError as OutOfMemoryError
    from arm_client.errors import TaskCancelledError as TaskCancelledError
    from arm_client.errors import UnknownCommandError as UnknownCommandError
    from arm_client.future import Task as Task
    from hbrt.dnn_types import HB_BPU_CORE_0 as HB_BPU_CORE_0
    from hbrt.dnn_types import HB_BPU_CORE_1 as HB_BPU_CORE_1
    from hbrt.dnn_types import HB_BPU_CORE_ANY as HB_BPU_CORE_ANY
    from hbrt.dnn_types import HB_DNN_IMG_TYPE_BGR as HB_DNN_IMG_TYPE_BGR
    from hbrt.dnn_types import HB_DNN_IMG_TYPE_NV12 as HB_DNN_IMG_TYPE_NV12
    from hbrt.dnn_types import HB_DNN_IMG_TYPE_NV12_SEPARATE as HB_DNN_IMG_TYPE_NV12_SEPARATE
    from hbrt.dnn_types import HB_DNN_IMG_TYPE_RGB as HB_DNN_IMG_TYPE_RGB
    from hbrt.dnn_types import HB_DNN_IMG_TYPE_Y as HB_DNN_IMG_TYPE_Y
    from hbrt.dnn_types import HB_DNN_IMG_TYPE_YUV444 as HB_DNN_IMG_TYPE_YUV444
    from hbrt.dnn_types import HB_DNN_INITIALIZE_INFER_CTRL_PARAM as HB_DNN_INITIALIZE_INFER_CTRL_PARAM
    from hbrt.dnn_types import HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM as HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM
    from hbrt.dnn_types import HB_DNN_LAYOUT_NCHW as HB_DNN_LAYOUT_NCHW
    from hbrt.dnn_types import HB_DNN_LAYOUT_NHWC as HB_DNN_LAYOUT_NHWC
    from hbrt.dnn_types import HB_DNN_LAYOUT_NONE as HB_DNN_LAYOUT_NONE
    from hbrt.dnn_types import HB_DNN_LOG_ERROR as HB_DNN_LOG_ERROR
    from hbrt.dnn_types import HB_DNN_LOG_FATAL as HB_DNN_LOG_FATAL
    from hbrt.dnn_types import HB_DNN_LOG_NONE as HB_DNN_LOG_NONE
    from hbrt.dnn_types import HB_DNN_LOG_WARNING as HB_DNN_LOG_WARNING
    from hbrt.dnn_types import HB_DNN_PRIORITY_HIGHEST as HB_DNN_PRIORITY_HIGHEST
    from hbrt.dnn_types import HB_DNN_PRIORITY_LOWEST as HB_DNN_PRIORITY_LOWEST
    from hbrt.dnn_types import HB_DNN_PRIORITY_PREEMP as HB_DNN_PRIORITY_PREEMP
    from hbrt.dnn_types import HB_DNN_RESIZE_TYPE_BILINEAR as HB_DNN_RESIZE_TYPE_BILINEAR
    from hbrt.dnn_types import HB_DNN_TENSOR_MAX_DIMENSIONS as HB_DNN_TENSOR_MAX_DIMENSIONS
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_F16 as HB_DNN_TENSOR_TYPE_F16
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_F32 as HB_DNN_TENSOR_TYPE_F32
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_F64 as HB_DNN_TENSOR_TYPE_F64
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_MAX as HB_DNN_TENSOR_TYPE_MAX
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_S4 as HB_DNN_TENSOR_TYPE_S4
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_S8 as HB_DNN_TENSOR_TYPE_S8
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_S16 as HB_DNN_TENSOR_TYPE_S16
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_S32 as HB_DNN_TENSOR_TYPE_S32
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_S64 as HB_DNN_TENSOR_TYPE_S64
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_U4 as HB_DNN_TENSOR_TYPE_U4
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_U8 as HB_DNN_TENSOR_TYPE_U8
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_U16 as HB_DNN_TENSOR_TYPE_U16
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_U32 as HB_DNN_TENSOR_TYPE_U32
    from hbrt.dnn_types import HB_DNN_TENSOR_TYPE_U64 as HB_DNN_TENSOR_TYPE_U64
    from hbrt.dnn_types import HB_DNN_VERSION_MAJOR as HB_DNN_VERSION_MAJOR
    from hbrt.dnn_types import HB_DNN_VERSION_MINOR as HB_DNN_VERSION_MINOR
    from hbrt.dnn_types import HB_DNN_VERSION_PATCH as HB_DNN_VERSION_PATCH
    from hbrt.dnn_types import NONE as NONE
    from hbrt.dnn_types import SCALE as SCALE
    from hbrt.dnn_types import SHIFT as SHIFT
    from hbrt.dnn_types import hbBPUCore as hbBPUCore
    from hbrt.dnn_types import hbDNNDataType as hbDNNDataType
    from hbrt.dnn_types import hbDNNHandle_t as hbDNNHandle_t
    from hbrt.dnn_types import hbDNNInferCtrlParam as hbDNNInferCtrlParam
    from hbrt.dnn_types import hbDNNLayerCreator as hbDNNLayerCreator
    from hbrt.dnn_types import hbDNNQuantiScale as hbDNNQuantiScale
    from hbrt.dnn_types import hbDNNQuantiShift as hbDNNQuantiShift
    from hbrt.dnn_types import hbDNNQuantiType as hbDNNQuantiType
    from hbrt.dnn_types import hbDNNResizeCtrlParam as hbDNNResizeCtrlParam
    from hbrt.dnn_types import hbDNNResizeType as hbDNNResizeType
    from hbrt.dnn_types import hbDNNRoi as hbDNNRoi
    from hbrt.dnn_types import hbDNNTaskDoneCb as hbDNNTaskDoneCb
    from hbrt.dnn_types import hbDNNTaskHandle_t as hbDNNTaskHandle_t
    from hbrt.dnn_types import hbDNNTaskPriority as hbDNNTaskPriority
    from hbrt.dnn_types import hbDNNTensor as hbDNNTensor
    from hbrt.dnn_types import hbDNNTensorLayout as hbDNNTensorLayout
    from hbrt.dnn_types import hbDNNTensorProperties as hbDNNTensorProperties
    from hbrt.dnn_types import hbDNNTensorShape as hbDNNTensorShape
    from hbrt.dnn_types import hbPackedDNNHandle_t as hbPackedDNNHandle_t

# What needs numpy, onnx or concurrent.futures is imported when it is first named: memory and DSP need none of them.
MODULES: dict[str, str] = {
    **dict.fromkeys(
        (
            "hbDNNGetErrorDesc",
            "hbDNNGetInputCount",
            "hbDNNGetInputName",
            "hbDNNGetInputTensorProperties",
            "hbDNNGetModelHandle",
            "hbDNNGetModelNameList",
            "hbDNNGetOutputCount",
            "hbDNNGetOutputName",
            "hbDNNGetOutputTensorProperties",
            "hbDNNGetVersion",
            "hbDNNInfer",
            "hbDNNInitializeFromDDR",
            "hbDNNInitializeFromFiles",
            "hbDNNRelease",
            "hbDNNReleaseTask",
            "hbDNNSetTaskDoneCb",
            "hbDNNWaitTaskDone",
        ),
        "arm_client.dnn.api",
    ),
    "hbDNNRegisterLayerCreator": "arm_client.dnn.layers",
    "hbDNNResize": "arm_client.dnn.resize",
    "hbDNNRoiInfer": "arm_client.dnn.roi",
    "hbDNNUnregisterLayerCreator": "arm_client.dnn.layers",
    **dict.fromkeys(
        (
            "HB_BPU_CORE_0",
            "HB_BPU_CORE_1",
            "HB_BPU_CORE_ANY",
            "HB_DNN_IMG_TYPE_BGR",
            "HB_DNN_IMG_TYPE_NV12",
            "HB_DNN_IMG_TYPE_NV12_SEPARATE",
            "HB_DNN_IMG_TYPE_RGB",
            "HB_DNN_IMG_TYPE_Y",
            "HB_DNN_IMG_TYPE_YUV444",
            "HB_DNN_INITIALIZE_INFER_CTRL_PARAM",
            "HB_DNN_INITIALIZE_RESIZE_CTRL_PARAM",
            "HB_DNN_LAYOUT_NCHW",
            "HB_DNN_LAYOUT_NHWC",
            "HB_DNN_LAYOUT_NONE",
            "HB_DNN_LOG_ERROR",
            "HB_DNN_LOG_FATAL",
            "HB_DNN_LOG_NONE",
            "HB_DNN_LOG_WARNING",
            "HB_DNN_PRIORITY_HIGHEST",
            "HB_DNN_PRIORITY_LOWEST",
            "HB_DNN_PRIORITY_PREEMP",
            "HB_DNN_RESIZE_TYPE_BILINEAR",
            "HB_DNN_TENSOR_MAX_DIMENSIONS",
            "HB_DNN_TENSOR_TYPE_F16",
            "HB_DNN_TENSOR_TYPE_F32",
            "HB_DNN_TENSOR_TYPE_F64",
            "HB_DNN_TENSOR_TYPE_MAX",
            "HB_DNN_TENSOR_TYPE_S16",
            "HB_DNN_TENSOR_TYPE_S32",
            "HB_DNN_TENSOR_TYPE_S4",
            "HB_DNN_TENSOR_TYPE_S64",
            "HB_DNN_TENSOR_TYPE_S8",
            "HB_DNN_TENSOR_TYPE_U16",
            "HB_DNN_TENSOR_TYPE_U32",
            "HB_DNN_TENSOR_TYPE_U4",
            "HB_DNN_TENSOR_TYPE_U64",
            "HB_DNN_TENSOR_TYPE_U8",
            "HB_DNN_VERSION_MAJOR",
            "HB_DNN_VERSION_MINOR",
            "HB_DNN_VERSION_PATCH",
            "NONE",
            "SCALE",
            "SHIFT",
            "hbBPUCore",
            "hbDNNDataType",
            "hbDNNHandle_t",
            "hbDNNInferCtrlParam",
            "hbDNNLayerCreator",
            "hbDNNQuantiScale",
            "hbDNNQuantiShift",
            "hbDNNQuantiType",
            "hbDNNResizeCtrlParam",
            "hbDNNResizeType",
            "hbDNNRoi",
            "hbDNNTaskDoneCb",
            "hbDNNTaskHandle_t",
            "hbDNNTaskPriority",
            "hbDNNTensor",
            "hbDNNTensorLayout",
            "hbDNNTensorProperties",
            "hbDNNTensorShape",
            "hbPackedDNNHandle_t",
        ),
        "hbrt.dnn_types",
    ),
    "ANY": "arm_client.client",
    "Board": "arm_client.client",
    "BoardArray": "arm_client.arrays",
    "Buffer": "arm_client.arrays",
    "Task": "arm_client.future",
    "connect": "arm_client.client",
    "private_board": "arm_client.client",
    **dict.fromkeys(
        (
            "BoardError",
            "BoardLostError",
            "CallerError",
            "CoreLostError",
            "HbrtError",
            "OpFailedError",
            "OutOfMemoryError",
            "TaskCancelledError",
            "UnknownCommandError",
        ),
        "arm_client.errors",
    ),
}

_EXTRAS = {"onnx": "dnn", "onnxruntime": "dnn", "ml_dtypes": "dnn", "yaml": "dnn", "cv2": "dnn"}


def starred() -> list[str]:
    """The lazy names that ``from arm_client import *`` brings: without the extra for models, those of models are out.

    That import asks for each of them, and would fail of one whose library is missing in a program that calls no model.
    """
    is_complete = all(map(_is_installed, _EXTRAS))
    return [name for name, module in MODULES.items() if is_complete or not module.startswith("arm_client.dnn.")]


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # an import hook refuses it; something stands in for it
        return False


def load(name: str, module: str) -> Any:
    """The object behind a lazy name.

    Raises:
        ImportError: a library of one of hbrt's extras is missing; says which extra.
    """
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise ImportError(
            f"{name} needs {error.name}, which is not installed: install hbrt with its extra {extra!r}, as in "
            f"pip install '.[{extra}]' in its clone.",
            name=error.name,
        ) from None
