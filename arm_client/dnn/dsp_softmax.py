"""Softmax on the DSP, by the op at 0x400."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.dnn.dsp_layer import FLOAT32, DspLayer, foreign, not_float32, of_float32
from arm_client.dnn.layers import NDArray, TensorType
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.types import HB_DSP_RPC_CMD_NN_SOFTMAX, hbSysMem

if TYPE_CHECKING:
    from numpy.typing import NDArray as Array

    from arm_client.dnn.graph import NodeInfo
    from hbrt.dnn_types import hbDNNInferCtrlParam

FLAT_BEFORE = 13  # until then Softmax saw its input as a matrix
_PARAM = np.dtype(hbDSPSoftmaxParam)
_ALIGNMENT = 8  # of the blocks of a call


class DspSoftmax(DspLayer):
    """Softmax by the op at 0x400, one call a row."""

    def __init__(self) -> None:
        super().__init__()
        self._axis = -1
        self._is_flat = False
        self._last: tuple[int, int, int] = (0, 0, 0)
        self._calls: list[tuple[hbSysMem, hbSysMem]] = []
        self._in_place: tuple[NDArray, NDArray] | None = None  # tensors that the calls are good for as they are

    def SetUp(self, attributes: Mapping[str, Any], node: NodeInfo) -> None:
        """Axis and the meaning of the op set: before 13 all dimensions from the axis on form one row."""
        self._is_flat = node.opset < FLAT_BEFORE
        self._axis = attributes.get("axis", 1 if self._is_flat else -1)

    def Decline(self, node: NodeInfo) -> str:
        """The op computes float32."""
        return foreign(node) or not_float32(node, 0)

    def InferShape(self, bottom: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """As the input."""
        return [of_float32(bottom[0], "Softmax")]

    def Forward(self, bottom: list[NDArray], top: list[NDArray], ctrl: hbDNNInferCtrlParam) -> int:
        """Row by row; rows that do not lie in one piece go through memory of the layer's own."""
        data, out = bottom[0], top[0]
        if self._in_place is not None and self._in_place[0] is data and self._in_place[1] is out:
            return self.call_all(HB_DSP_RPC_CMD_NN_SOFTMAX, self._calls, ctrl)
        self._in_place = None
        if not data.Size():
            return 0
        shape, axis = data.Shape(), data.CanonicalAxis(self._axis)
        inner = 1 if self._is_flat else math.prod(shape[axis + 1 :])
        length = data.Size() // math.prod(shape[:axis]) // inner
        rows = data.Size() // length
        source, target = data.mem, out.mem
        pitch = length if rows == 1 else -(-length // 2) * 2  # the output block of each call starts at 8 bytes
        is_in_place = inner == 1 and pitch == length and not target.phyAddr % _ALIGNMENT
        if inner > 1:
            source = self.block("rows", data.Size() * FLOAT32.itemsize)
            source.array(FLOAT32, (rows // inner, inner, length))[:] = _turned(data, axis, inner)
        if not is_in_place:
            target = self.block("results", rows * pitch * FLOAT32.itemsize)
        status = self.call_all(HB_DSP_RPC_CMD_NN_SOFTMAX, self._rows(source, target, rows, length, pitch), ctrl)
        if is_in_place:
            self._in_place = (data, out)
        elif not status:
            results = target.array(FLOAT32, (rows, pitch))[:, :length]
            if inner > 1:
                _turned(out, axis, inner)[:] = results.reshape(rows // inner, inner, length)
            else:
                out.numpy()[...] = results.reshape(shape)
        return status

    def _rows(
        self, source: hbSysMem, target: hbSysMem, rows: int, length: int, pitch: int
    ) -> list[tuple[hbSysMem, hbSysMem]]:
        """Parameter and output block of each call; those of the last run when nothing moved."""
        now = (source.phyAddr, target.phyAddr, rows * length)
        if now != self._last or len(self._calls) != rows:
            size = length * FLOAT32.itemsize
            params = self.block("parameters", rows * _PARAM.itemsize)
            table = params.array(_PARAM)[:rows]
            table["data_size"] = size
            table["input"] = source.phyAddr + np.arange(rows, dtype=np.uint64) * np.uint64(size)
            self._calls = [
                (
                    _part(params, row * _PARAM.itemsize, _PARAM.itemsize),
                    _part(target, row * pitch * FLOAT32.itemsize, size),
                )
                for row in range(rows)
            ]
            self._last = now
        return self._calls


def _turned(view: NDArray, axis: int, inner: int) -> Array[Any]:
    """The tensor as (before, inner, along the axis), a view."""
    shape = view.Shape()
    return view.numpy().reshape(math.prod(shape[:axis]), shape[axis], inner).swapaxes(1, 2)


def _part(mem: hbSysMem, start: int, size: int) -> hbSysMem:
    return hbSysMem(mem.phyAddr + start, (mem.virAddr or 0) + start, size)
