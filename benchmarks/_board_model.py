"""A model on the board, by the C names alone: what the benchmarks of hbDNN drive."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Self

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import arm_client as hb
from hbrt.dnn_types import hbDNNDataType

NUMPY = {
    hbDNNDataType.HB_DNN_TENSOR_TYPE_S8: np.int8,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_U8: np.uint8,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_F16: np.float16,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_S16: np.int16,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_U16: np.uint16,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_F32: np.float32,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_S32: np.int32,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_U32: np.uint32,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_F64: np.float64,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_S64: np.int64,
    hbDNNDataType.HB_DNN_TENSOR_TYPE_U64: np.uint64,
}
NIBBLES = (hbDNNDataType.HB_DNN_TENSOR_TYPE_S4, hbDNNDataType.HB_DNN_TENSOR_TYPE_U4)
FIRST_ROOM_BYTES = 4096


class StatusError(RuntimeError):
    """A call returned a status; the text is last_error()."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{hb.Status(status).name}: {hb.last_error()}")
        self.status = status


def check(status: int) -> None:
    """Raise when a status is not 0.

    Raises:
        StatusError: it is not.
    """
    if status:
        raise StatusError(status)


class BoardModel:
    """One model, loaded from memory, with its own tensors. A context manager."""

    def __init__(self, model: bytes) -> None:
        """Load it.

        Raises:
            StatusError: the model was refused.
        """
        self._packed, self.handle = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
        check(hb.hbDNNInitializeFromDDR(self._packed, [model], [len(model)], 1))
        names: list[str] = []
        check(hb.hbDNNGetModelNameList(names, ctypes.c_int32(), self._packed))
        check(hb.hbDNNGetModelHandle(self.handle, self._packed, names[0]))
        self.inputs = self._tensors(hb.hbDNNGetInputCount, hb.hbDNNGetInputTensorProperties)
        self.outputs = self._tensors(hb.hbDNNGetOutputCount, hb.hbDNNGetOutputTensorProperties)
        self.ctrl = hb.hbDNNInferCtrlParam()
        hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(self.ctrl)
        self.task = hb.hbDNNTaskHandle_t()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for tensor in (*self.inputs, *self.outputs):
            if tensor.sysMem[0].virAddr:
                hb.hbSysFreeMem(tensor.sysMem[0])
        check(hb.hbDNNRelease(self._packed))

    def __call__(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Run once; outputs are copies.

        Raises:
            StatusError: a call failed.
        """
        for tensor, array in zip(self.inputs, arrays, strict=True):
            self._fill(tensor, array)
        for tensor in self.outputs:
            if not tensor.sysMem[0].memSize and tensor.properties.alignedByteSize:
                _allocate(tensor, max(tensor.properties.alignedByteSize, FIRST_ROOM_BYTES))
        status = self.run()
        for tensor in self.outputs if status == hb.HB_DNN_RUN_TASK_FAILED else ():
            if tensor.properties.alignedByteSize > tensor.sysMem[0].memSize:  # it says what it needs: once more
                _allocate(tensor, tensor.properties.alignedByteSize)
                status = self.run()
        check(status)
        return [_read(tensor) for tensor in self.outputs]

    def run(self) -> int:
        """Run once with what lies in the tensors; the status."""
        self.task.value = None
        status = hb.hbDNNInfer(self.task, self.outputs, self.inputs, self.handle, self.ctrl)
        if status:
            return status
        status = hb.hbDNNWaitTaskDone(self.task, 0)
        check(hb.hbDNNReleaseTask(self.task))
        return status

    def _tensors(self, count_of: Any, properties_of: Any) -> Any:
        count = ctypes.c_int32()
        check(count_of(count, self.handle))
        tensors = (hb.hbDNNTensor * count.value)()
        for at, tensor in enumerate(tensors):
            check(properties_of(tensor.properties, self.handle, at))
        return tensors

    def _fill(self, tensor: Any, array: NDArray[Any]) -> None:
        properties = tensor.properties
        data = _bytes_of(array)
        if properties.alignedByteSize < 0:
            properties.validShape.dimensionSize[: array.ndim] = array.shape
            properties.validShape.numDimensions = array.ndim
            properties.alignedShape = properties.validShape
        if tensor.sysMem[0].memSize < len(data):
            _allocate(tensor, max(len(data), properties.alignedByteSize))
        if data:
            check(hb.hbSysWriteMem(tensor.sysMem[0], data, len(data)))


def _allocate(tensor: Any, size_bytes: int) -> None:
    if tensor.sysMem[0].virAddr:
        check(hb.hbSysFreeMem(tensor.sysMem[0]))
    check(hb.hbSysAllocMem(tensor.sysMem[0], size_bytes))


def _bytes_of(array: NDArray[Any]) -> bytes:
    if array.dtype.name not in {"int4", "uint4"}:
        return np.ascontiguousarray(array).tobytes()
    halves = np.zeros(array.size + array.size % 2, np.uint8)
    halves[: array.size] = array.astype(np.int8).ravel().view(np.uint8) & 0xF
    return (halves[0::2] | halves[1::2] << 4).tobytes()


def _read(tensor: Any) -> NDArray[Any]:
    properties = tensor.properties
    shape = tuple(properties.validShape.dimensionSize[: properties.validShape.numDimensions])
    size = int(np.prod(shape, dtype=np.int64))
    kind = hbDNNDataType(properties.tensorType)
    if kind not in NIBBLES:
        dtype = NUMPY[kind]
        return tensor.sysMem[0].array(dtype, shape).copy() if size else np.empty(shape, dtype)
    packed = tensor.sysMem[0].array(np.uint8, (size + 1) // 2)
    halves = np.stack([packed & 0xF, packed >> 4], -1).ravel()[:size].astype(np.int8)
    if kind == hbDNNDataType.HB_DNN_TENSOR_TYPE_S4:
        return ((halves ^ 8) - 8).astype(ml_dtypes.int4).reshape(shape)
    return halves.astype(ml_dtypes.uint4).reshape(shape)
