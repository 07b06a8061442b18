"""Shared by layers that call the DSP: blocks that live as long as the layer, and calls scheduled like the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from arm_client.cabi.last_error import last_error, note
from arm_client.dnn.errors import ModelError
from arm_client.dnn.layers.layer import Layer, rpc_ctrl
from arm_client.dsp import hbDSPReleaseTask, hbDSPRpc, hbDSPWaitTaskDone
from arm_client.sys import hbSysAllocMem, hbSysFreeMem
from hbrt.models.run.layer import TensorType
from hbrt.status import Status
from hbrt.types import hbDSPRpcCtrlParam, hbDSPTask_t, hbSysMem

if TYPE_CHECKING:
    from hbrt.dnn_types import hbDNNInferCtrlParam
    from hbrt.models.spec.graph import NodeInfo

FLOAT32 = np.dtype(np.float32)
IN_FLIGHT = 32
"""Calls queued at once: enough that every core finds its next one waiting."""


class DspLayer(Layer):
    """A layer whose Forward makes remote calls. Its methods may be called from Forward onward."""

    processor = "DSP"

    def __init__(self) -> None:
        self._blocks: dict[str, hbSysMem] = {}
        self._terms: tuple[int, ...] = ()
        self._rpc = hbDSPRpcCtrlParam()

    def block(self, name: str, size_bytes: int) -> hbSysMem:
        """Return this layer's own block of device memory: the same one each time, or a larger one if it must grow.

        It is uncached, so it needs no flush.

        Raises:
            ModelError: HB_DNN_OUT_OF_MEMORY, with the free memory.
        """
        have = self._blocks.get(name)
        if have is not None and have.memSize >= size_bytes:
            return have
        if have is not None:
            hbSysFreeMem(self._blocks.pop(name))
        made = hbSysMem()
        if hbSysAllocMem(made, size_bytes):
            raise ModelError(Status.HB_DNN_OUT_OF_MEMORY, last_error())
        self._blocks[name] = made
        return made

    def call(self, cmd: int, params: hbSysMem, output: hbSysMem, ctrl: hbDNNInferCtrlParam) -> int:
        """Make one remote call, wait for it and release it; returns its status.

        ``last_error`` has the message of a failed call.
        """
        task = hbDSPTask_t()
        return hbDSPRpc(task, params, output, self._scheduled(cmd, ctrl)) or self._end(task)

    def call_all(self, cmd: int, blocks: list[tuple[hbSysMem, hbSysMem]], ctrl: hbDNNInferCtrlParam) -> int:
        """Make a remote call for each (parameters, output), many in flight; returns 0, or the first failure's status.

        All of them have ended when this returns.
        """
        if len(blocks) == 1:
            return self.call(cmd, *blocks[0], ctrl)
        rpc = self._scheduled(cmd, ctrl)
        queued: list[hbDSPTask_t] = []
        status, collected = 0, 0
        for params, output in blocks:
            if len(queued) - collected == IN_FLIGHT:
                status = self._end(queued[collected])
                collected += 1
            if status:
                break
            task = hbDSPTask_t()
            status = hbDSPRpc(task, params, output, rpc)
            if status:
                break
            queued.append(task)
        said = last_error()
        for task in queued[collected:]:
            other = self._end(task)
            if other and not status:
                status, said = other, last_error()
        if status:
            note(status, said)
        return status

    def TearDown(self) -> None:
        """Free the blocks."""
        for mem in self._blocks.values():
            hbSysFreeMem(mem)
        self._blocks.clear()

    def _scheduled(self, cmd: int, ctrl: hbDNNInferCtrlParam) -> hbDSPRpcCtrlParam:
        """Return the last call's structure, if it had the same scheduling."""
        terms = (cmd, ctrl.dspCoreId, ctrl.priority, ctrl.customId)
        if terms != self._terms:
            self._rpc, self._terms = rpc_ctrl(cmd, ctrl), terms
        return self._rpc

    @staticmethod
    def _end(task: hbDSPTask_t) -> int:
        status = hbDSPWaitTaskDone(task, 0)
        said = last_error() if status else ""
        hbDSPReleaseTask(task)
        if status:
            note(status, said)
        return status


def foreign(node: NodeInfo) -> str:
    """Say why a DSP op does not take a node outside ONNX's domain or in a body; "" if it does."""
    if node.domain:
        return f"they are in the domain {node.domain}, not ONNX's"
    return "they are in the body of an If, Loop or Scan" if node.is_nested else ""


def not_float32(node: NodeInfo, at: int) -> str:
    """Say why a DSP op does not take a node's input; "" if it is float32 or of unknown type."""
    value = node.inputs[at] if at < len(node.inputs) else None
    if value is None or value.dtype in {None, FLOAT32}:
        return ""
    return f"the DSP op computes float32, not {value.dtype}"


def of_float32(given: TensorType | None, what: str) -> TensorType:
    """Return the input's type.

    Raises:
        ValueError: it is not float32.
    """
    if given is None or given.dtype != FLOAT32:
        raise ValueError(f"The DSP's {what} computes float32, not {given}.")
    return given
