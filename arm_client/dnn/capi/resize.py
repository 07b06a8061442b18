"""hbDNNResize: the X3's call that scales a picture, or a region of it, in its own task; superseded by hbDNNRoiInfer.

Limits come from the DNN API manual (X3); the arithmetic is that of hbDNNRoiInfer's resizer.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arm_client.cabi.arguments import deref, short_repr
from arm_client.dnn.capi.arguments import check_schedule, out_behind, returns_status
from arm_client.dnn.capi.runtime import device_memory, look_at_inputs, runtime
from arm_client.dnn.errors import bad_argument
from arm_client.dnn.spec.properties import PLANAR
from arm_client.dnn.tensors.image_feeds import planes_of
from arm_client.dnn.tensors.pictures import Picture, pictures_of
from arm_client.dnn.tensors.resizer import Bytes, Region, bilinear, resize
from arm_client.dnn.tensors.tensor_memory import view_of
from hbrt.dnn_types import (
    hbDNNDataType,
    hbDNNResizeCtrlParam,
    hbDNNResizeType,
    hbDNNRoi,
    hbDNNTaskHandle_t,
    hbDNNTensor,
    hbDNNTensorLayout,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arm_client.dnn.tensors.tensor_memory import Ranges
    from hbrt.ddr.file import Ddr
    from hbrt.models.run.stop import Stop

MAX_SIDE = 4080
"""Limit of the picture's width and of both sides of the result."""

MIN_STRIDE, MAX_STRIDE, STRIDE_MULTIPLE = 16, 4080, 16
"""Stride of the picture: W of alignedShape, in pixels."""

MAX_SMALLER, MAX_LARGER = 185, 256
"""result / region must be in [1 / 185, 256)."""

_IMAGES = {kind.value: kind for kind in hbDNNDataType if kind.name.startswith("HB_DNN_IMG_TYPE_")}


@returns_status
def hbDNNResize(
    task: hbDNNTaskHandle_t, output: hbDNNTensor, input: hbDNNTensor, roi: hbDNNRoi | None, ctrl: hbDNNResizeCtrlParam
) -> None:
    """Submit a task that scales a picture by bilinear interpolation with aligned corners.

    Args:
        task: Out: handle, for hbDNNWaitTaskDone and hbDNNReleaseTask.
        output: Destination: a picture of the input's type, with batch 1. Its validShape has the size of the result, W
            of its alignedShape the stride. Bytes between the rows are left unchanged.
        input: The picture, described likewise.
        roi: The source region, inside the picture, corners included; None (NULL) for the whole picture.
        ctrl: BPU cores and priority; resizeType is HB_DNN_RESIZE_TYPE_BILINEAR.

    Returns:
        0; HB_DNN_INVALID_ARGUMENT with the violated limit: docs/dnn-tensors.md lists them;
        HB_DNN_TASK_NUM_EXCEED_LIMIT: 32 resize tasks are alive; HB_DNN_API_USE_ERROR: *task is a live task.

    Source: RDK DNN API manual (rdk_doc), 4.2.6 hbDNNResize of the X3,
    https://d-robotics.github.io/rdk_doc/en/Algorithm_Application/cdev_dnn_api/dnn_resize
    Emulator: rounding and edges are those of hbDNNRoiInfer.
    """
    out = out_behind(task, hbDNNTaskHandle_t, "task")
    how = deref(ctrl, hbDNNResizeCtrlParam)
    if how is None:
        raise bad_argument(f"The control parameter is {short_repr(ctrl)}; pass an hbDNNResizeCtrlParam.")
    check_schedule(how.bpuCoreId, how.priority)
    if how.resizeType != hbDNNResizeType.HB_DNN_RESIZE_TYPE_BILINEAR:
        raise bad_argument(f"resizeType is {how.resizeType}; must be HB_DNN_RESIZE_TYPE_BILINEAR (0).")
    ddr = device_memory()
    source, from_planes = _picture("input", input, ddr)
    target, to_planes = _picture("output", output, ddr)
    if source.tensor_type != target.tensor_type:
        raise bad_argument(
            f"The input is {source.tensor_type.name}, but the output {target.tensor_type.name}; types must match."
        )
    if len(source.planes) != len(target.planes):
        raise bad_argument("The input and output layouts differ; both must be NHWC, or both NCHW.")
    region = _region(roi, source)
    _check_sides(region, target)

    used = tuple((plane.phy_addr, plane.size_bytes) for plane in (*source.planes, *target.planes))
    look_at_inputs(used[: len(source.planes)])
    job = _Resize(from_planes, source, region, to_planes, target, used)
    runtime.tasks.add_resize(out, job, core_mask=how.bpuCoreId, priority=how.priority)


@dataclass(frozen=True, eq=False, slots=True)
class _Resize:
    """Source and destination of the scaling."""

    from_planes: tuple[Bytes, ...]
    source: Picture
    region: Region
    to_planes: tuple[Bytes, ...]
    target: Picture
    used: Ranges

    def __call__(self, _stop: Stop) -> None:
        results = _scaled(self.from_planes, self.source, self.region, (self.target.height, self.target.width))
        for plane, result in zip(self.to_planes, results, strict=True):
            plane[...] = result

    def ranges(self) -> Ranges:
        """Memory of the rows of both."""
        return self.used


def _picture(name: str, given: Any, ddr: Ddr) -> tuple[Picture, tuple[Bytes, ...]]:
    """Return a caller's picture and its planes in memory."""
    tensor = deref(given, hbDNNTensor)
    if tensor is None:
        raise bad_argument(f"The {name} is {short_repr(given)}; pass an hbDNNTensor.")
    view = view_of(bytes(tensor))
    kind = _IMAGES.get(view.tensor_type)
    if kind is None:
        raise bad_argument(f"The {name} has the tensorType {view.tensor_type}; hbDNNResize takes HB_DNN_IMG_TYPE_*.")
    layout = tensor.properties.tensorLayout
    if layout not in {hbDNNTensorLayout.HB_DNN_LAYOUT_NHWC, hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW}:
        raise bad_argument(f"The {name} has the tensorLayout {layout}; use HB_DNN_LAYOUT_NHWC or HB_DNN_LAYOUT_NCHW.")
    is_planes = layout == hbDNNTensorLayout.HB_DNN_LAYOUT_NCHW
    channels = 1 if kind == hbDNNDataType.HB_DNN_IMG_TYPE_Y else 3
    if len(view.valid) != 4 or view.valid[0] != 1 or view.valid[1 if is_planes else 3] != channels:
        form = f"(1, {channels}, H, W)" if is_planes else f"(1, H, W, {channels})"
        raise bad_argument(f"The {name} has the validShape {list(view.valid)}; one {kind.name} picture has {form}.")
    (picture,) = pictures_of(name, kind, hbDNNTensorLayout(layout), view.valid, view.aligned, view.mems)
    if picture.width > MAX_SIDE or (name == "output" and picture.height > MAX_SIDE):
        raise bad_argument(
            f"The {name} is {picture.width} pixels wide and {picture.height} high; hbDNNResize accepts pictures up to "
            f"{MAX_SIDE} wide, and produces up to {MAX_SIDE} x {MAX_SIDE}."
        )
    stride = view.aligned[3 if is_planes else 2]
    if name == "input" and (not MIN_STRIDE <= stride <= MAX_STRIDE or stride % STRIDE_MULTIPLE):
        raise bad_argument(
            f"The input has rows of {stride} pixels (W of alignedShape); hbDNNResize takes {MIN_STRIDE} to "
            f"{MAX_STRIDE}, in multiples of {STRIDE_MULTIPLE}."
        )
    return picture, planes_of(name, picture, ddr)


def _region(given: Any, picture: Picture) -> Region:
    """Return the source region: the whole picture for NULL."""
    whole = Region(0, 0, picture.width - 1, picture.height - 1)
    if given is None or (isinstance(given, ctypes.POINTER(hbDNNRoi)) and not bool(given)):
        return whole
    roi = deref(given, hbDNNRoi)
    if roi is None:
        raise bad_argument(f"The roi is {short_repr(given)}; pass an hbDNNRoi, or None for the whole picture.")
    region = Region(roi.left, roi.top, roi.right, roi.bottom)
    if not (0 <= region.left <= region.right <= whole.right and 0 <= region.top <= region.bottom <= whole.bottom):
        raise bad_argument(
            f"The region {tuple(region)} (corners are included) is not inside its picture, whose pixels are "
            f"0..{whole.right} by 0..{whole.bottom}."
        )
    return region


def _check_sides(region: Region, target: Picture) -> None:
    for side, source, wanted in (("width", region.width, target.width), ("height", region.height, target.height)):
        if wanted * MAX_SMALLER < source or wanted >= source * MAX_LARGER:
            raise bad_argument(
                f"Cannot scale a {side} of {source} to {wanted}: result / region must be in [1/{MAX_SMALLER}, "
                f"{MAX_LARGER})."
            )


def _scaled(
    planes: tuple[Bytes, ...], picture: Picture, region: Region, sides: tuple[int, int]
) -> list[NDArray[np.uint8]]:
    """Return the result's planes."""
    if picture.tensor_type in PLANAR:
        return resize(planes, region, sides)
    if len(planes) == 3:
        return [resize((plane,), region, sides)[0] for plane in planes]
    rows = planes[0][region.top : region.bottom + 1].reshape(region.height, -1, 3)
    return [bilinear(rows[:, region.left : region.right + 1], *sides).reshape(sides[0], -1)]
