"""Softmax on the DSP, with ops 0x400 and 0x405."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.dnn.layers.dsp_layer import FLOAT32, DspLayer, foreign, not_float32, of_float32
from arm_client.dnn.layers.ndarray import NDArray
from hbrt.models.run.layer import TensorType
from hbrt.nn_types import hbDSPSoftmaxRowsParam
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX, HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS, hbSysMem

if TYPE_CHECKING:
    from numpy.typing import NDArray as Array

    from hbrt.dnn_types import hbDNNInferCtrlParam
    from hbrt.models.spec.graph import NodeInfo

FLAT_BEFORE = 13  # before it, Softmax treated its input as a matrix
_PARAM = np.dtype(hbDSPSoftmaxRowsParam)  # 0x400's has padding for the rows
_ALIGNMENT = 8  # alignment of a call's blocks


class DspSoftmax(DspLayer):
    """Softmax with op 0x400 for one row, and with op 0x405, if the image has it, for all rows at once."""

    def __init__(self) -> None:
        super().__init__()
        self._axis = -1
        self._is_flat = False
        self._has_rows = True
        self._cmd = HB_DSP_RPC_CMD_NN_SOFTMAX
        self._last: tuple[int, ...] = ()
        self._calls: list[tuple[hbSysMem, hbSysMem]] = []
        self._in_place: tuple[NDArray, NDArray] | None = None  # tensors for which the calls can be reused

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Read axis and opset: before 13, all dimensions from the axis on form one row."""
        self._is_flat = node.opset < FLAT_BEFORE
        self._axis = attributes.get("axis", 1 if self._is_flat else -1)

    def Decline(self, node: NodeInfo) -> str:
        """Say why not: the op computes float32."""
        return foreign(node) or not_float32(node, 0)

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """Return the input's shape and type."""
        return [of_float32(bottom[0], "Softmax")]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam) -> int:
        """Run all rows in one call; non-contiguous rows go through the layer's own memory."""
        data, out = bottom[0], top[0]
        if not data.Size():
            return 0
        status = self._run(data, out, ctrl)
        if status == Status.HB_DSP_UNKNOWN_COMMAND and self._cmd == HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS:
            self._has_rows = False  # an image with only its own softmax: one call per row, as in the manual
            self._in_place = None
            status = self._run(data, out, ctrl)
        return status

    def _run(self, data: NDArray, out: NDArray, ctrl: hbDNNInferCtrlParam) -> int:
        if self._in_place is not None and self._in_place[0] is data and self._in_place[1] is out:
            return self.call_all(self._cmd, self._calls, ctrl)
        self._in_place = None
        shape, axis = data.Shape(), data.CanonicalAxis(self._axis)
        inner = 1 if self._is_flat else math.prod(shape[axis + 1 :])
        length = data.Size() // math.prod(shape[:axis]) // inner
        rows = data.Size() // length
        source, target = data.mem, out.mem
        is_dense = rows == 1 or self._has_rows
        pitch = length if is_dense else -(-length // 2) * 2  # each call's output block starts at a multiple of 8 bytes
        is_in_place = inner == 1 and pitch == length and not target.phyAddr % _ALIGNMENT
        if inner > 1:
            source = self.block("rows", data.Size() * FLOAT32.itemsize)
            source.array(FLOAT32, (rows // inner, inner, length))[:] = _turned(data, axis, inner)
        if not is_in_place:
            target = self.block("results", rows * pitch * FLOAT32.itemsize)
        self._prepare(source, target, rows, length, pitch)
        status = self.call_all(self._cmd, self._calls, ctrl)
        if is_in_place:
            self._in_place = (data, out)
        elif not status:
            results = target.array(FLOAT32, (rows, pitch))[:, :length]
            if inner > 1:
                _turned(out, axis, inner)[:] = results.reshape(rows // inner, inner, length)
            else:
                out.numpy()[...] = results.reshape(shape)
        return status

    def _prepare(self, source: hbSysMem, target: hbSysMem, rows: int, length: int, pitch: int) -> None:
        """Return the command, and each call's parameter and output block; reuses the last run's if nothing moved."""
        is_one_call = rows > 1 and self._has_rows
        now = (source.phyAddr, target.phyAddr, rows, length, is_one_call)
        if now == self._last:
            return
        size = length * FLOAT32.itemsize
        count, per_call = (1, rows) if is_one_call else (rows, 1)
        params = self.block("parameters", count * _PARAM.itemsize)
        table = params.array(_PARAM)[:count]
        table["data_size"] = size
        table["rows"] = per_call
        table["input"] = source.phyAddr + np.arange(count, dtype=np.uint64) * np.uint64(size)
        self._cmd = HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS if is_one_call else HB_DSP_RPC_CMD_NN_SOFTMAX
        self._calls = [
            (
                _part(params, call * _PARAM.itemsize, _PARAM.itemsize),
                _part(target, call * pitch * FLOAT32.itemsize, size * per_call),
            )
            for call in range(count)
        ]
        self._last = now


def _turned(view: NDArray, axis: int, inner: int) -> Array[Any]:
    """Return a view of the tensor as (before, inner, along the axis)."""
    shape = view.Shape()
    return view.numpy().reshape(math.prod(shape[:axis]), shape[axis], inner).swapaxes(1, 2)


def _part(mem: hbSysMem, start: int, size: int) -> hbSysMem:
    return hbSysMem(mem.phyAddr + start, (mem.virAddr or 0) + start, size)
