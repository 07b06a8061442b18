"""PyrDown, PyrUp, Resize and RoiResize against numpy and scipy, on crops of photographs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.ndimage as nd
from numpy.typing import NDArray

from dsp_server.hardware.tile_manager import TileManager
from hbrt.cv_types import (
    HB_VP_INTER_GAUSSIAN,
    HB_VP_INTER_LINEAR,
    HB_VP_INTER_NEAREST,
    hbDSPCvPyrDownParam,
    hbDSPCvPyrUpParam,
    hbDSPCvResizeParam,
    hbDSPCvRoiResizeParam,
)
from hbrt.status import Status
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
SIZES = [(37, 53), (64, 48), (1, 41), (29, 1), (1, 1)]
EVEN_SIZES = [(36, 52), (4, 40), (28, 4), (4, 4)]
RESULTS = [(20, 31), (74, 106), (1, 1), (90, 7)]
EVEN_RESULTS = [(20, 30), (74, 106), (2, 2), (90, 8)]


def linear(image: Array, height: int, width: int) -> NDArray[np.float64]:
    """Each pixel's center is at .5; the border is replicated."""

    def places(count: int, extent: int) -> Array:
        found: Array = np.clip((np.arange(count) + 0.5) * (extent / count) - 0.5, 0, extent - 1)
        return found

    grid = np.meshgrid(places(height, image.shape[0]), places(width, image.shape[1]), indexing="ij")
    channels = np.atleast_3d(image).astype(float)
    blended = [
        nd.map_coordinates(channels[..., channel], grid, order=1, mode="nearest")
        for channel in range(channels.shape[2])
    ]
    return np.dstack(blended).reshape(height, width, *image.shape[2:])


def nearest(image: Array, height: int, width: int) -> Array:
    rows = (np.arange(height) * (1 / (height / image.shape[0]))).astype(int)
    columns = (np.arange(width) * (1 / (width / image.shape[1]))).astype(int)
    chosen: Array = image[np.ix_(rows, columns)]
    return chosen


def hold(got: Array, image: Array, method: int, tolerance: float = 1.0) -> None:
    height, width = got.shape[:2]
    if method == HB_VP_INTER_NEAREST:
        np.testing.assert_array_equal(got, nearest(image, height, width))
    else:
        assert np.abs(got - linear(image, height, width)).max() <= tolerance


@each("size", SIZES)
@each("result", RESULTS)
@each("method", [HB_VP_INTER_NEAREST, HB_VP_INTER_LINEAR])
def test_resize(ddr: Ddr, photo: SimpleNamespace, size: Any, result: Any, method: int) -> None:
    gray = photo.gray(*size)
    for image, tolerance in (
        (gray, 1.0),
        (photo.color(*size), 1.0),
        (gray.astype(np.int16) * 100 - 9000, 1.0),
        (gray.astype(np.float32), 1e-3),
    ):
        param = hbDSPCvResizeParam(
            src=ddr.image(image, padding=5),
            dst=ddr.blank((*result, *image.shape[2:]), image.dtype, padding=2),
            interpolation=method,
        )
        hold(ddr.run(param)[0], image, method, tolerance)


@each("size", EVEN_SIZES)
@each("result", EVEN_RESULTS)
@each("method", [HB_VP_INTER_NEAREST, HB_VP_INTER_LINEAR])
def test_resize_nv12(ddr: Ddr, photo: SimpleNamespace, size: Any, result: Any, method: int) -> None:
    planes = photo.nv12(*size)
    param = hbDSPCvResizeParam(
        src=ddr.image(planes, "nv12", padding=6),
        dst=ddr.blank(result, name="nv12", padding=2),
        interpolation=method,
    )
    for got, image in zip(ddr.run(param), planes, strict=True):
        hold(got, image, method)


TAPS = np.array([1, 4, 6, 4, 1])


def blurred(image: Array, taps: Array) -> NDArray[np.float64]:
    once = nd.correlate1d(image.astype(float), taps, 0, mode="mirror")
    return np.asarray(nd.correlate1d(once, taps, 1, mode="mirror"))


def half(image: Array) -> Array:
    total = blurred(image, TAPS)[::2, ::2]
    rounded: Array = np.floor(total / 256 + 0.5)
    return rounded


def twice(image: Array) -> Array:
    """Behind the last pixel comes its own 0, so that mirroring about that repeats the pixel."""
    spread = np.zeros((image.shape[0] * 2, image.shape[1] * 2, *image.shape[2:]))
    spread[::2, ::2] = image
    rounded: Array = np.floor(blurred(spread, TAPS) / 64 + 0.5)
    return rounded


@each("size", SIZES)
def test_pyramids_are_exact(ddr: Ddr, photo: SimpleNamespace, size: Any) -> None:
    for image in (photo.gray(*size), photo.color(*size)):
        src = ddr.image(image, padding=5)
        height, width = size
        for param, expected in (
            (hbDSPCvPyrDownParam(dst=ddr.blank(((height + 1) // 2, (width + 1) // 2, *image.shape[2:]))), half(image)),
            (hbDSPCvPyrUpParam(dst=ddr.blank((height * 2, width * 2, *image.shape[2:]), padding=2)), twice(image)),
        ):
            param.src, param.interpolation = src, HB_VP_INTER_GAUSSIAN
            np.testing.assert_array_equal(ddr.run(param)[0], expected)
            param.interpolation = HB_VP_INTER_LINEAR
            hold(ddr.run(param)[0], image, HB_VP_INTER_LINEAR)


@each("size", EVEN_SIZES)
def test_pyramids_of_nv12(ddr: Ddr, photo: SimpleNamespace, size: Any) -> None:
    planes = photo.nv12(*size)
    src = ddr.image(planes, "nv12", padding=6)
    down = hbDSPCvPyrDownParam(src=src, interpolation=HB_VP_INTER_GAUSSIAN)
    down.dst = ddr.blank((size[0] // 2, size[1] // 2), name="nv12", padding=2)
    up = hbDSPCvPyrUpParam(src=src, interpolation=HB_VP_INTER_GAUSSIAN)
    up.dst = ddr.blank((size[0] * 2, size[1] * 2), name="nv12", padding=2)
    for image, smaller, larger in zip(planes, ddr.run(down), ddr.run(up), strict=True):
        np.testing.assert_array_equal(smaller, half(image))
        np.testing.assert_array_equal(larger, twice(image))


ROIS = [(0, 0, 51, 35), (4, 2, 5, 3), (50, 34, 51, 35), (10, 6, 41, 29)]


@each("method", [HB_VP_INTER_NEAREST, HB_VP_INTER_LINEAR])
@each("name", ["y", "rgb", "nv12"])
def test_roi_resize_looks_at_nothing_else(ddr: Ddr, photo: SimpleNamespace, method: int, name: str) -> None:
    size, result = (36, 52), (12, 20)
    planes: Any = {"y": (photo.gray(*size),), "rgb": (photo.color(*size),), "nv12": photo.nv12(*size)}[name]
    src = ddr.image(planes if name == "nv12" else planes[0], name, padding=6)
    channels = 3 if name == "rgb" else 1
    stride, step = 24 * channels, 24 * channels * 12 + 64
    dst = ddr.blank((*result, 3) if name == "rgb" else result, name=name, padding=4)
    dst.dataPhyAddr = ddr.take(step * len(ROIS))
    dst.uvPhyAddr = ddr.take(step * len(ROIS)) if name == "nv12" else 0
    table = ddr.take(16 * len(ROIS))
    ddr.array(table, (len(ROIS), 4), np.int32, 16)[...] = ROIS
    param = hbDSPCvRoiResizeParam(
        src=src,
        dst=dst,
        roiPhyAddr=table,
        dstStep=step,
        dstUvStep=step,
        roiCount=len(ROIS),
        interpolation=method,
    )
    ddr.run(param)
    for index, (left, top, right, bottom) in enumerate(ROIS):
        shape = (*result, 3) if name == "rgb" else result
        got = ddr.array(dst.dataPhyAddr + index * step, shape, np.uint8, stride)
        hold(got, planes[0][top : bottom + 1, left : right + 1], method)
        if name == "nv12":
            got = ddr.array(dst.uvPhyAddr + index * step, (6, 10, 2), np.uint8, dst.uvStride)
            hold(got, planes[1][top // 2 : bottom // 2 + 1, left // 2 : right // 2 + 1], method)


def test_roi_resize_writes_nothing_when_a_region_or_a_result_is_wrong(ddr: Ddr, photo: SimpleNamespace) -> None:
    from dsp_server.ops.cv.resize import hb_dsp_roi_resize

    table = ddr.take(32)
    ddr.array(table, (2, 4), np.int32, 16)[...] = [(0, 0, 5, 5), (0, 0, 36, 5)]
    src = ddr.image(photo.gray(36, 36))
    dst = ddr.blank((4, 4))
    ddr.take(64)
    param = hbDSPCvRoiResizeParam(src=src, dst=dst, roiPhyAddr=table, dstStep=64, roiCount=2, interpolation=1)
    block = memoryview(bytearray(param))
    with pytest.raises(
        ValueError, match=r"^ROI 1, \(0, 0\) to \(36, 5\), extends outside src, whose last pixel is \(35, 35\)\.$"
    ):
        hb_dsp_roi_resize(block, memoryview(b""), TileManager())
    ddr.array(table, (2, 4), np.int32, 16)[1] = (0, 0, 5, 5)
    param.dstStep = 1 << 40
    status = hb_dsp_roi_resize(memoryview(bytearray(param)), memoryview(b""), TileManager())
    assert status == Status.HB_ERR_MMAP_FAILED
    assert (ddr.planes(dst)[0] == 0xA5).all()
