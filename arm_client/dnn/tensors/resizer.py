"""The resizer used by hbDNNRoiInfer: limits, counting of regions and tensors, and arithmetic. Pure.

Limits and the step formula come from the BPU SDK API manual, hbDNNRoiInfer. Rounding and edge handling are the
emulator's choice: docs/dnn-tensors.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arm_client.dnn.errors import bad_argument
from arm_client.dnn.tensors.pictures import Picture

MIN_SIDE, MAX_SIDE = 2, 4096
"""Limits of a region's sides, in pixels."""

MAX_WIDTH = 4096
"""Limits of the source picture."""

MIN_STRIDE, MAX_STRIDE, STRIDE_MULTIPLE = 16, 131072, 16
MAX_STEP = 262143
"""In 16.16 fixed point: just below 4 source pixels per result pixel."""

MAX_BATCH = 255
ONE = 1 << 16

Bytes = NDArray[np.uint8]


class Region(NamedTuple):
    """A region of a source picture in pixels, including both corners."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Columns."""
        return self.right - self.left + 1

    @property
    def height(self) -> int:
        """Rows."""
        return self.bottom - self.top + 1


def data_batch(resizer_count: int, roi_count: int) -> int:
    """Return the number of batch elements that one hbDNNRoiInfer computes: roi_count / resizer_count.

    Raises:
        ModelError: INVALID_ARGUMENT: no resizer, regions that do not divide evenly, or a batch outside 1..255.
    """
    if resizer_count < 1:
        raise bad_argument(
            "The model has no resizer input; run it with hbDNNInfer, or put "
            'input_source: {"name": "resizer"} into its YAML file.'
        )
    batch, rest = divmod(roi_count, resizer_count)
    if roi_count < resizer_count or rest:
        raise bad_argument(
            f"roiCount is {roi_count}; the model has {resizer_count} resizer inputs, and each batch element "
            "needs one region for each: pass a multiple of that."
        )
    if batch > MAX_BATCH:
        raise bad_argument(
            f"{roi_count} regions for {resizer_count} resizer inputs make a batch of {batch}; at most {MAX_BATCH}."
        )
    return batch


def output_batch(batch: int, model_batch: int) -> int:
    """Return the number of output elements: the batch rounded up to whole runs. Those past the batch are invalid."""
    return -(-batch // model_batch) * model_batch


def step_of(source: int, target: int) -> int:
    """Return the distance between source pixels of adjacent results, in 16.16 fixed point.

    Args:
        source: Side of the region.
        target: Side of the result, at least 2.
    """
    return ((source - 1) * ONE + (target - 1) // 2) // (target - 1)


def check_region(name: str, region: Region, picture: Picture, target: tuple[int, int]) -> None:
    """Check a region, its picture and its target against the resizer's limits.

    Args:
        name: Name of the input.
        region: The region.
        picture: Its source picture.
        target: Height and width of the model's input.

    Raises:
        ModelError: INVALID_ARGUMENT: names the limit and the value.
    """
    what = f"The region {tuple(region)} for the input {name!r}"
    if min(target) < MIN_SIDE:
        raise bad_argument(
            f"The input {name!r} has {target[0]} rows and {target[1]} columns; the resizer needs at least 2 of each."
        )
    if picture.width > MAX_WIDTH:
        raise bad_argument(
            f"The picture for the input {name!r} is {picture.width} pixels wide; the resizer takes up to {MAX_WIDTH}."
        )
    for plane in picture.planes:
        if not MIN_STRIDE <= plane.stride <= MAX_STRIDE or plane.stride % STRIDE_MULTIPLE:
            raise bad_argument(
                f"The picture for the input {name!r} has rows of {plane.stride} bytes; a resizer takes {MIN_STRIDE} to "
                f"{MAX_STRIDE}, in multiples of {STRIDE_MULTIPLE}: set W of alignedShape to it."
            )
    for side, length in (("wide", region.width), ("high", region.height)):
        if not MIN_SIDE <= length <= MAX_SIDE:
            raise bad_argument(
                f"{what} is {length} pixels {side} (corners are included); {MIN_SIDE} to {MAX_SIDE} are allowed."
            )
    if region.left < 0 or region.top < 0 or region.right >= picture.width or region.bottom >= picture.height:
        raise bad_argument(
            f"{what} exceeds its picture, whose pixels are 0..{picture.width - 1} by 0..{picture.height - 1}."
        )
    for side, source, wanted in (("width", region.width, target[1]), ("height", region.height, target[0])):
        step = step_of(source, wanted)
        if step > MAX_STEP:
            raise bad_argument(
                f"{what} shrinks a {side} of {source} to {wanted}, a step of {step} / 65536; at most {MAX_STEP}, so at "
                f"most {largest_source(wanted)} pixels."
            )


def largest_source(target: int) -> int:
    """Return the largest region side the resizer takes: `step_of` at most MAX_STEP, and within MAX_SIDE."""
    return min(4 * (target - 1), MAX_SIDE)


def resize(planes: tuple[Bytes, ...], region: Region, target: tuple[int, int]) -> list[Bytes]:
    """Cut a region out of a picture and scale it.

    Args:
        planes: One (H, W) for Y; for NV12 (H, W), and (H / 2, W) of UV pairs.
        region: Inside the picture.
        target: Height and width of the result, both even for NV12.

    Returns:
        The same number of planes, in the target's size. UV is a half-size image: its region covers all pairs of the
        region's pixels and is scaled with its own step.
    """
    height, width = target
    luma = planes[0][region.top : region.bottom + 1, region.left : region.right + 1]
    result = [bilinear(luma[:, :, None], height, width)[:, :, 0]]
    if len(planes) > 1:
        pairs = planes[1].reshape(planes[1].shape[0], -1, 2)
        chroma = pairs[region.top // 2 : region.bottom // 2 + 1, region.left // 2 : region.right // 2 + 1]
        result.append(bilinear(chroma, height // 2, width // 2).reshape(height // 2, width))
    return result


def bilinear(pixels: Bytes, height: int, width: int) -> Bytes:
    """Scale with aligned corners: result i is at i * step / 65536 of the source.

    Both directions are weighted in 16.16 fixed point and rounded once, halves up. A position past the last pixel (the
    step is rounded) is clamped to it.

    Args:
        pixels: (rows, columns, channels).
        height: Rows of the result.
        width: Columns of the result.

    Returns:
        (height, width, channels).
    """
    rows, columns = _taps(pixels.shape[0], height), _taps(pixels.shape[1], width)
    # 8 bits of value and 16 of weight, twice: 40 bits.
    # Rows first: most rows of a large region are never read.
    both = _blend(_blend(pixels, rows, axis=0), columns, axis=1)
    result: Bytes = ((both + (1 << 31)) >> 32).astype(np.uint8)
    return result


class _Taps(NamedTuple):
    near: NDArray[np.int64]
    far: NDArray[np.int64]
    weight: NDArray[np.int64]  # weight of `far`, 0..65535


def _taps(source: int, target: int) -> _Taps:
    position = np.arange(target, dtype=np.int64) * (step_of(source, target) if target > 1 else 0)
    # The step is rounded: the last position may be slightly past the last pixel; both taps are then that pixel.
    near = position >> 16
    return _Taps(near, np.minimum(near + 1, source - 1), position & (ONE - 1))


def _blend(values: NDArray[Any], taps: _Taps, axis: int) -> NDArray[np.int64]:
    shape = [1, 1, 1]
    shape[axis] = -1
    weight = taps.weight.reshape(shape)
    near = values.take(taps.near, axis).astype(np.int64) * (ONE - weight)
    return near + values.take(taps.far, axis).astype(np.int64) * weight
