"""Run a model repeatedly in the same device memory; failures raise exceptions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from arm_client.cabi.arguments import integer, short_repr
from arm_client.cabi.dnn_macros import HB_DNN_INITIALIZE_INFER_CTRL_PARAM
from arm_client.dnn.capi.arguments import check_schedule, milliseconds
from arm_client.dnn.capi.infer import job_of
from arm_client.dnn.capi.runtime import Loaded, device_memory, runtime
from arm_client.dnn.cores.tasks import Inference
from arm_client.dnn.errors import bad_argument
from arm_client.dnn.python.buffers import TensorBuffer
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.dnn.tensors.binding import Bindings, one_of_batch
from arm_client.errors import error_for
from hbrt.dnn_types import hbDNNHandle_t, hbDNNInferCtrlParam, hbDNNRoi, hbDNNTaskHandle_t, hbDNNTensor
from hbrt.errors import StatusError
from hbrt.status import Status


def control(core_id: int = 0, priority: int = 0, custom_id: int = 0) -> hbDNNInferCtrlParam:
    """Return a task's scheduling parameters; the rest as in the manual's initializer.

    Raises:
        ModelError: INVALID_ARGUMENT: not integers, or no such core or priority.
    """
    for name, value in (("core", core_id), ("priority", priority), ("customId", custom_id)):
        if type(value) is not int and integer(value) is None:
            raise bad_argument(f"The {name} is {short_repr(value)}; write an integer.")
    check_schedule(core_id, priority)  # before C's integers cut them
    return _control(core_id, priority, custom_id)


@lru_cache
def _control(core_id: int, priority: int, custom_id: int) -> hbDNNInferCtrlParam:
    ctrl = hbDNNInferCtrlParam()
    HB_DNN_INITIALIZE_INFER_CTRL_PARAM(ctrl)
    ctrl.bpuCoreId, ctrl.priority, ctrl.customId = core_id, priority, custom_id
    return ctrl


def beside_regions(spec: TensorSpec) -> TensorSpec:
    """Return the spec of an hbDNNRoiInfer input tensor: one element, even if the model has its own batch."""
    return one_of_batch(spec) if spec.valid_shape and spec.valid_shape[0] > 1 else spec


class Runner:
    """One set of tensors of a model. Not for several threads at once; create one per thread.

    Args:
        handle: The model.
        inputs: Specs of the model's inputs.
        outputs: Specs of its outputs.
        shapes: Sizes of the inputs, in order: for dynamic inputs; None where the size is fixed.
        rois: Regions of the pictures, for a model with resizer inputs: data_batch regions per resizer input.
        pictures: Rows and columns of the resizer inputs' pictures, one entry per region.

    Attributes:
        inputs: A buffer per input; with regions, all inputs of batch 0, then those of batch 1, and so on.
        outputs: A buffer per output.

    Raises:
        HbrtError, ModelError: out of memory, or shapes or regions that do not fit.
    """

    def __init__(
        self,
        handle: hbDNNHandle_t,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        shapes: Sequence[Sequence[int] | None] | None = None,
        rois: Sequence[hbDNNRoi] = (),
        pictures: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._handle = handle
        self._rois = (hbDNNRoi * len(rois))(*rois) if rois else None
        resizers = [spec for spec in inputs if spec.image is not None and spec.image.is_resizer]
        batches = len(rois) // len(resizers) if rois and resizers else 1
        times = -(-batches // resizers[0].graph_shape[0]) if resizers else 1  # the model's own batch
        specs = [beside_regions(spec) if rois else spec for spec in inputs] * batches
        self._inputs = cast("Sequence[hbDNNTensor]", (hbDNNTensor * len(specs))())
        self._outputs = cast("Sequence[hbDNNTensor]", (hbDNNTensor * len(outputs))())
        self.inputs: list[TensorBuffer] = []
        self.outputs: list[TensorBuffer] = []
        sizes = iter(pictures)
        try:
            for at, spec in enumerate(specs):
                is_resizer = self._rois is not None and spec.image is not None and spec.image.is_resizer
                shape = shapes[at % len(inputs)] if shapes else None
                picture = next(sizes, None) if is_resizer else None
                self.inputs.append(TensorBuffer(spec, self._inputs[at], shape=shape, picture=picture))
            for at, spec in enumerate(outputs):
                self.outputs.append(TensorBuffer(spec, self._outputs[at], times=times))
        except BaseException:
            self.free()
            raise
        self._takes = [buffer.take if buffer.spec.is_dynamic else None for buffer in self.outputs]
        self._bindings = Bindings(inputs, outputs, self._takes)

    def run(self, ctrl: hbDNNInferCtrlParam, timeout_ms: int = 0) -> float:
        """Submit, wait, release.

        Args:
            ctrl: How the task is scheduled.
            timeout_ms: Time limit in milliseconds, after which the task is canceled; 0 for none.

        Returns:
            Elapsed milliseconds, as the program sees them.

        Raises:
            HbrtError: a call was refused, or the task failed.
            TimeoutError: it took too long and was canceled.
        """
        start = time.perf_counter()
        status, sentence = self._once(ctrl, timeout_ms)
        elapsed = (time.perf_counter() - start) * 1e3
        if status == Status.HB_DNN_TIMEOUT:
            raise TimeoutError(f"The run did not finish within {timeout_ms} ms and was canceled.")
        if status:
            raise error_for(status, sentence)
        return elapsed

    def reshape(self, shapes: Sequence[Sequence[int] | None]) -> None:
        """Resize the dynamic inputs; memory that is large enough is reused.

        Raises:
            ModelError: a shape does not fit its input, or memory ran out.
        """
        for buffer, shape in zip(self.inputs, shapes, strict=True):
            if shape is not None:
                buffer.reshape(shape)

    def free(self) -> None:
        """Give all memory back; again does nothing."""
        for buffer in (*self.inputs, *self.outputs):
            buffer.free()

    def _once(self, ctrl: hbDNNInferCtrlParam, timeout_ms: int) -> tuple[int, str]:
        task = hbDNNTaskHandle_t()
        try:
            limit_ms = milliseconds(timeout_ms)
            loaded = runtime.models.get(self._handle.value)
            count, job = self._bind(loaded, ctrl)
            runtime.tasks.add(
                task,
                job,
                loaded.model,
                count=count,
                core_mask=ctrl.bpuCoreId,
                priority=ctrl.priority,
                custom_id=ctrl.customId,
                is_awaited=limit_ms <= 0,
            )
            return runtime.tasks.wait(task.value, limit_ms)
        except StatusError as error:
            return error.status, error.text
        finally:  # also on Ctrl-C: nothing writes to the tensors afterwards
            if task.value:
                runtime.tasks.release(task.value)

    def _bind(self, loaded: Loaded, ctrl: hbDNNInferCtrlParam) -> tuple[int, Inference]:
        """Return the task's weight in a chain, and its work."""
        if not self._rois:
            return 1, job_of(loaded, self._bindings.of(self._outputs, self._inputs, device_memory()), ctrl)
        from arm_client.dnn.capi.roi import regions_behind, roi_job  # needs OpenCV

        regions = regions_behind(self._rois, len(self._rois))
        return roi_job(loaded.model, self._outputs, self._inputs, regions, ctrl, self._takes)
