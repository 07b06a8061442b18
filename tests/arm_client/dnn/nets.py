"""Small ONNX models, and one that is loaded on a board with its own tensors, for tests of the C names."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper

import arm_client as hb
from tests.limits import PATIENCE_S

F32 = TensorProto.FLOAT
Value = tuple[str, int, Sequence[int | str | None] | None]


def model_bytes(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    initializers: Sequence[TensorProto] = (),
    *,
    name: str = "net",
    opset: int = 18,
) -> bytes:
    """A serialized model."""
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        list(initializers),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return bytes(model.SerializeToString())


def double(shape: Sequence[int | str | None] = (1, 4), *, type_: int = F32, name: str = "double") -> bytes:
    """Y = x + x."""
    node = helper.make_node("Add", ["x", "x"], ["y"])
    return model_bytes([node], [("x", type_, shape)], [("y", type_, shape)], name=name)


def endless() -> bytes:
    """Counts to x, one by one, in a Loop: with a large x it runs until it is stopped."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["sum", "one"], ["sum_out"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.INT64, []),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum_out", TensorProto.INT64, []),
        ],
        [helper.make_tensor("one", TensorProto.INT64, [], [1])],
    )
    return model_bytes(
        [helper.make_node("Loop", ["x", "yes", "zero"], ["y"], body=body)],
        [("x", TensorProto.INT64, [])],
        [("y", TensorProto.INT64, [])],
        [
            helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
            helper.make_tensor("zero", TensorProto.INT64, [], [0]),
        ],
        name="endless",
    )


def ctrl(core: int = 0, priority: int = 0, custom_id: int = 0, more: int = 0) -> hb.hbDNNInferCtrlParam:
    """How a task is scheduled."""
    made = hb.hbDNNInferCtrlParam()
    hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(made)
    made.bpuCoreId, made.priority, made.customId, made.more = core, priority, custom_id, more
    return made


def f32(values: object) -> NDArray[np.float32]:
    """An array of float32."""
    return np.array(values, np.float32)


def good(status: int) -> None:
    """A status that must be 0."""
    assert status == 0, hb.last_error()


class Net:
    """A model of one pack, with its tensors in device memory where their sizes are known."""

    def __init__(self, data: bytes) -> None:
        self.packed, self.handle = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()
        good(hb.hbDNNInitializeFromDDR(self.packed, [data], [len(data)], 1))
        names = ctypes.POINTER(ctypes.c_char_p)()
        good(hb.hbDNNGetModelNameList(names, ctypes.c_int32(), self.packed))
        good(hb.hbDNNGetModelHandle(self.handle, self.packed, names[0]))
        self.inputs = self.tensors("Input")
        self.outputs = self.tensors("Output")

    def tensors(self, side: str) -> Any:
        """A new array of tensors of all inputs or outputs."""
        count = ctypes.c_int32()
        good(getattr(hb, f"hbDNNGet{side}Count")(count, self.handle))
        tensors = (hb.hbDNNTensor * count.value)()
        for at, tensor in enumerate(tensors):
            good(getattr(hb, f"hbDNNGet{side}TensorProperties")(tensor.properties, self.handle, at))
            if tensor.properties.alignedByteSize > 0:
                good(hb.hbSysAllocMem(tensor.sysMem[0], tensor.properties.alignedByteSize))
        return tensors

    def fill(self, values: NDArray[Any], at: int = 0) -> None:
        """Write an input, tightly packed."""
        values = np.asarray(values)
        self.inputs[at].sysMem[0].array(values.dtype, values.shape)[...] = values

    def read(self, dtype: Any = np.float32, at: int = 0) -> NDArray[Any]:
        """A copy of an output, tightly packed."""
        valid = self.outputs[at].properties.validShape
        shape = tuple(valid.dimensionSize[: valid.numDimensions])
        copy: NDArray[Any] = self.outputs[at].sysMem[0].array(dtype, shape).copy()
        return copy

    def infer(self, task: hb.hbDNNTaskHandle_t | None = None, how: hb.hbDNNInferCtrlParam | None = None) -> Any:
        """A submitted task."""
        task = hb.hbDNNTaskHandle_t() if task is None else task  # a null handle is false
        good(hb.hbDNNInfer(task, self.outputs, self.inputs, self.handle, how or ctrl()))
        return task

    def run(self) -> int:
        """Infer, wait and release; the status of the wait."""
        task = self.infer()
        status = hb.hbDNNWaitTaskDone(task, 0)
        good(hb.hbDNNReleaseTask(task))
        return status

    def close(self) -> None:
        """Give everything back."""
        for tensor in (*self.inputs, *self.outputs):
            for mem in tensor.sysMem:
                if mem.virAddr:
                    good(hb.hbSysFreeMem(mem))
        good(hb.hbDNNRelease(self.packed))


class Gate:
    """Stands before a model's plan: runs begin when it is opened, and are noted in their order."""

    is_steady = False

    def __init__(self, net: Net) -> None:
        from arm_client.dnn.capi.runtime import runtime

        model = runtime.models.get(net.handle.value).model
        self._plan = model.plan
        self.runs_elsewhere = False
        self._may_run = threading.Semaphore(0)
        self._begun = threading.Semaphore(0)
        self.order: list[int] = []
        model.plan = self  # type: ignore[assignment]

    def run(self, feeds: Any, outputs: Any, stop: Any, how: hb.hbDNNInferCtrlParam) -> Any:
        """As a plan."""
        self.order.append(how.customId)
        self._begun.release()
        assert self._may_run.acquire(timeout=PATIENCE_S)
        return self._plan.run(feeds, outputs, stop, how)

    def close(self) -> None:
        """As a plan."""
        self._plan.close()

    def await_begun(self, count: int = 1) -> None:
        """Wait until so many runs have begun that nobody awaited yet."""
        for _ in range(count):
            assert self._begun.acquire(timeout=PATIENCE_S)

    def open(self, count: int = 1) -> None:
        """Let so many runs go."""
        self._may_run.release(count)
