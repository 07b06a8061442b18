"""hbDNNRoiInfer: run a model whose inputs come from the resizer on regions of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from arm_client.cabi.arguments import integer, referent, short_repr
from arm_client.dnn.capi.api import model_behind
from arm_client.dnn.capi.arguments import checked_ctrl, out_behind, returns_status, tensors_behind
from arm_client.dnn.capi.runtime import device_memory, look_at_inputs, runtime
from arm_client.dnn.errors import ModelError, bad_argument
from arm_client.dnn.spec.properties import shape_in
from arm_client.dnn.spec.spec import TensorSpec
from arm_client.dnn.tensors.binding import Take, Target, array_of, blocks_of, feed_of, nth, one_of_batch, target_of
from arm_client.dnn.tensors.image_feeds import region_of_picture
from arm_client.dnn.tensors.resizer import Region, data_batch, output_batch
from hbrt.dnn_types import hbDNNHandle_t, hbDNNInferCtrlParam, hbDNNRoi, hbDNNTaskHandle_t, hbDNNTensor
from hbrt.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arm_client.dnn.cores.tasks import Inference
    from arm_client.dnn.loading.model import LoadedModel
    from arm_client.dnn.tensors.tensor_memory import Ranges
    from hbrt.ddr.file import Ddr
    from hbrt.models.run.executor import Begun
    from hbrt.models.run.stop import Stop

Make = Callable[[], "NDArray[Any]"]


@returns_status
def hbDNNRoiInfer(
    task: hbDNNTaskHandle_t,
    output: Any,
    input: Any,
    rois: Any,
    roiCount: int,
    model: hbDNNHandle_t,
    ctrl: hbDNNInferCtrlParam,
) -> None:
    """Submit one inference on regions of pictures.

    Args:
        task: As hbDNNInfer's.
        output: One tensor per output. Its memory holds output_batch elements: the batch, filled up to whole runs of the
            model; elements after the batch are invalid. validShape may be left as in the model, or its first size may
            be output_batch.
        input: Tensors of all inputs for the first element of the batch, then for the second, and so on. A resizer
            input's tensor holds one picture: its size is in validShape, its stride is W of alignedShape. If validShape
            is left as queried, the size is in alignedShape.
        rois: Regions in the order of the resizer inputs among `input`; an array of hbDNNRoi or a list.
        roiCount: Number of regions: the number of resizer inputs times the batch, which is 1..255.
        model: A model with at least one input whose source is the resizer.
        ctrl: As hbDNNInfer's. Each element of the batch counts as one model of a chain.

    Returns:
        As hbDNNInfer; HB_DNN_INVALID_ARGUMENT with the violated limit: docs/dnn-tensors.md lists them.
    """
    out = out_behind(task, hbDNNTaskHandle_t, "task")
    loaded = model_behind(model)
    how = checked_ctrl(ctrl)
    regions = regions_behind(rois, roiCount)
    batch, job = roi_job(loaded.model, tensors_behind(output, "output"), tensors_behind(input, "input"), regions, how)
    runtime.tasks.add(
        out,
        job,
        loaded.model,
        count=batch,
        is_last=not how.more,
        core_mask=how.bpuCoreId,
        priority=how.priority,
        custom_id=how.customId,
    )


def regions_behind(rois: Any, count: object) -> list[Region]:
    """Return the caller's regions.

    Raises:
        ModelError: INVALID_ARGUMENT: NULL, no regions, or fewer than the count.
    """
    number = integer(count)
    if number is None or number < 1:
        raise bad_argument(f"roiCount is {short_repr(count)}, but must be the number of regions, at least 1.")
    found = referent(rois)
    if isinstance(found, hbDNNRoi):
        found = [found]
    regions = []
    for at in range(number):
        try:
            roi = found[at]
        except (IndexError, TypeError, ValueError, KeyError):
            roi = None
        if not isinstance(roi, hbDNNRoi):
            raise bad_argument(f"The array of regions has no hbDNNRoi at index {at}, but roiCount is {number}.")
        regions.append(Region(roi.left, roi.top, roi.right, roi.bottom))
    return regions


def roi_job(
    model: LoadedModel,
    output: Sequence[hbDNNTensor],
    input: Sequence[hbDNNTensor],
    regions: Sequence[Region],
    ctrl: hbDNNInferCtrlParam,
    takes: Sequence[Take | None] = (),
) -> tuple[int, Inference]:
    """Check tensors and regions, and bind them: the batch, and its runner; ``takes`` as in ``targets_of``.

    Raises:
        ModelError: INVALID_ARGUMENT, with the tensor or region and the rule.
    """
    ddr = device_memory()
    resizers = [spec for spec in model.inputs if _is_resizer(spec)]
    batch = data_batch(len(resizers), len(regions))
    model_batch = _model_batch(model)
    elements = _elements(model, input, regions, batch, ddr)
    runs = output_batch(batch, model_batch) // model_batch
    targets = [
        Target(spec.name, None, take)
        if runs == 1 and (take := takes[at] if takes else None) is not None
        else _target(spec, nth(output, at, spec.name), runs, model_batch, ddr)
        for at, spec in enumerate(model.outputs)
    ]

    count = batch * len(model.inputs)
    used = tuple(one for at in range(count) for one in blocks_of(input[at]))
    look_at_inputs(used)
    return batch, _Regions(model, elements, targets, runs, model_batch, ctrl, used)


@dataclass(frozen=True, eq=False, slots=True)
class _Regions:
    """The runs of one hbDNNRoiInfer."""

    model: LoadedModel
    elements: list[list[Make]]
    targets: list[Target]
    runs: int
    model_batch: int
    ctrl: hbDNNInferCtrlParam
    used: Ranges  # from the inputs

    def begin(self, _stop: Stop, _begun: Begun) -> None:
        """Start nothing before the task runs, since there may be several runs."""

    def __call__(self, stop: Stop) -> None:
        parts: list[dict[str, NDArray[Any]]] = []
        for index in range(self.runs):
            if stop.is_set:
                return
            chosen = self.elements[index * self.model_batch : (index + 1) * self.model_batch]
            feeds = {spec.name: _gather(spec, at, chosen) for at, spec in enumerate(self.model.inputs)}
            wanted = {target.name: _slice(target, index, self.runs) for target in self.targets}
            parts.append(self.model.plan.run(feeds, wanted, stop, self.ctrl))
        for target in self.targets:
            if target.finish is not None:
                results = [part[target.name] for part in parts]
                target.finish(results[0] if self.runs == 1 else np.concatenate(results))

    def ranges(self) -> Ranges:
        """The memory of the tensors."""
        return (*self.used, *(one for target in self.targets for one in target.ranges))


def _is_resizer(spec: TensorSpec) -> bool:
    return spec.image is not None and spec.image.is_resizer


def _model_batch(model: LoadedModel) -> int:
    """Return the batch that the model was compiled with: the first size of every input.

    Raises:
        ModelError: INVALID_ARGUMENT: it differs between inputs.
    """
    batch = next(spec.graph_shape[0] for spec in model.inputs if _is_resizer(spec))
    for spec in model.inputs:
        if spec.graph_shape[:1] != (batch,):
            raise bad_argument(
                f"The resizer inputs have batch {batch}, but the input {spec.name!r} has the shape "
                f"{list(spec.graph_shape)}; hbDNNRoiInfer needs equal batches: compile the model with input_batch."
            )
    return batch


def _elements(
    model: LoadedModel, input: Sequence[hbDNNTensor], regions: Sequence[Region], batch: int, ddr: Ddr
) -> list[list[Make]]:
    """Return, for each batch element, the functions that create each input with batch 1."""
    specs = [one_of_batch(spec) for spec in model.inputs]
    remaining = iter(regions)
    elements = []
    for index in range(batch):
        makes: list[Make] = []
        for at, spec in enumerate(specs):
            tensor = nth(input, index * len(specs) + at, spec.name)
            if _is_resizer(spec):
                makes.append(region_of_picture(spec, tensor, next(remaining), ddr))
            else:
                given = shape_in(tensor.properties.validShape)
                if given != spec.valid_shape and given == model.inputs[at].valid_shape:
                    raise bad_argument(
                        f"The tensor {spec.name!r} has the validShape {list(given)}, the model's whole batch; each "
                        "tensor of hbDNNRoiInfer holds one element: set the first size of validShape and alignedShape "
                        "to 1."
                    )
                feed = feed_of(spec, tensor, ddr)
                makes.append(lambda feed=feed: array_of(feed))  # type: ignore[misc]
        elements.append(makes)
    return elements


def _gather(spec: TensorSpec, at: int, chosen: Sequence[Sequence[Make]]) -> NDArray[Any]:
    """One input of one run. Elements after the batch are zeros; the model's results for them are invalid."""
    if spec.graph_shape[0] == 1:
        return chosen[0][at]()
    result = np.zeros(spec.graph_shape, spec.graph_dtype)
    for row, makes in enumerate(chosen):
        result[row] = makes[at]()[0]
    return result


def _target(spec: TensorSpec, tensor: hbDNNTensor, runs: int, model_batch: int, ddr: Ddr) -> Target:
    """An output of several runs, concatenated into one tensor of a larger batch."""
    if runs == 1:
        return target_of(spec, tensor, ddr)
    if spec.graph_shape[:1] != (model_batch,) or spec.is_dynamic:
        raise ModelError(
            Status.HB_DNN_API_USE_ERROR,
            f"The output {spec.name!r} has the shape {list(spec.graph_shape)}, not a batch of {model_batch}, so {runs} "
            f"runs of the model do not fit in one tensor; pass regions for {model_batch} elements at a time.",
        )
    batch = runs * model_batch
    wide = replace(
        spec,
        valid_shape=(batch, *spec.valid_shape[1:]),
        aligned_shape=(batch, *spec.aligned_shape[1:]),
        graph_shape=(batch, *spec.graph_shape[1:]),
        aligned_bytes=spec.aligned_bytes * runs,
    )
    copy = hbDNNTensor.from_buffer_copy(tensor)
    for shape, own in (
        (copy.properties.validShape, spec.valid_shape),
        (copy.properties.alignedShape, spec.aligned_shape),
    ):
        # Unchanged from the model, or padded by the runtime: only the batch differs.
        if shape_in(shape)[:1] == own[:1]:
            shape.dimensionSize[0] = batch
    return target_of(wide, copy, ddr)


def _slice(target: Target, index: int, runs: int) -> NDArray[Any] | None:
    if target.array is None:
        return None
    rows = len(target.array) // runs if runs > 1 else 0
    return target.array if runs == 1 else target.array[index * rows : (index + 1) * rows]
