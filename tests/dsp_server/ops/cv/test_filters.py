"""BilateralFilter, BoxFilter, Dilate, Erode, Filter2D, GaussianBlur, MedianBlur, SepFilter2D against numpy and scipy.

Each runs on crops of photographs, of odd sizes, one row, one column and one pixel, with padding between the rows.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.ndimage as nd
from numpy.typing import NDArray

from hbrt.cv_types import (
    hbDSPCvBilateralFilterParam,
    hbDSPCvBoxFilterParam,
    hbDSPCvDilateParam,
    hbDSPCvErodeParam,
    hbDSPCvFilter2DParam,
    hbDSPCvGaussianBlurParam,
    hbDSPCvMedianBlurParam,
    hbDSPCvSepFilter2DParam,
)
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
SIZES = [(37, 53), (64, 48), (1, 41), (29, 1), (1, 1), (2, 3)]
BORDERS = [0, 1]
MODES = {0: "constant", 1: "nearest"}
every_size = each("size", SIZES)
every_border = each("border", BORDERS)


def weights(*shape: int) -> Array:
    """Of both signs, and not symmetric."""
    return (np.random.default_rng(sum(shape)).random(shape, np.float32) - np.float32(0.3)) / np.float32(shape[0])


@every_size
@every_border
@each("side, kernel", [(3, [1, 2, 1]), (5, [1, 4, 6, 4, 1])])
def test_gaussian_blur_is_exact(
    ddr: Ddr, photo: SimpleNamespace, oracle: SimpleNamespace, size: Any, border: int, side: int, kernel: list[int]
) -> None:
    for image in (photo.gray(*size), photo.color(*size)):
        param = hbDSPCvGaussianBlurParam(
            src=ddr.image(image, padding=5), dst=ddr.blank(image.shape, padding=3), kernelSize=side, borderType=border
        )
        total = oracle.correlated(image, np.outer(kernel, kernel), border=border).astype(int)
        area = sum(kernel) ** 2
        np.testing.assert_array_equal(ddr.run(param)[0], (total + area // 2) // area)


@every_size
@every_border
@each("width, height, x, y", [(3, 3, -1, -1), (4, 2, -1, -1), (5, 1, 0, 0), (1, 7, 0, 6)])
def test_box_filter_is_within_one_of_the_mean(
    ddr: Ddr,
    photo: SimpleNamespace,
    oracle: SimpleNamespace,
    size: Any,
    border: int,
    width: int,
    height: int,
    x: int,
    y: int,
) -> None:
    anchor = (width // 2 if x < 0 else x, height // 2 if y < 0 else y)
    window = {"kernelWidth": width, "kernelHeight": height, "pointLocX": x, "pointLocY": y, "borderType": border}
    for image in (photo.gray(*size), photo.color(*size)):
        src = ddr.image(image, padding=5)
        total = oracle.correlated(image, np.ones((height, width)), anchor, border)
        mean = hbDSPCvBoxFilterParam(src=src, dst=ddr.blank(image.shape, padding=2), normalize=1, **window)
        assert np.abs(ddr.run(mean)[0] - total / (width * height)).max() < 1
        cut = hbDSPCvBoxFilterParam(src=src, dst=ddr.blank(image.shape, padding=2), **window)
        np.testing.assert_array_equal(ddr.run(cut)[0], np.minimum(total, 255))
        if image.ndim == 2:
            whole = hbDSPCvBoxFilterParam(src=src, dst=ddr.blank(image.shape, np.int32, padding=2), **window)
            np.testing.assert_array_equal(ddr.run(whole)[0], total)


MASKS = {
    "square": np.ones((3, 3), np.uint8),
    "even": np.ones((2, 4), np.uint8),
    "cross": np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8),
    "without its middle": np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 9], [1, 0, 0, 0, 0]], np.uint8),
}


def extreme(image: Array, mask: Array, anchor: tuple[int, int], border: int, take: Any, neutral: int) -> Array:
    """Largest or smallest pixel under a mask, written out."""
    height, width = mask.shape
    x, y = anchor
    how: Any = {"mode": "edge"} if border else {"mode": "constant", "constant_values": neutral}
    wide = np.pad(image, ((y, height - 1 - y), (x, width - 1 - x)), **how)
    result = np.full_like(image, neutral)
    for j, i in np.argwhere(mask):
        result = take(result, wide[j : j + image.shape[0], i : i + image.shape[1]])
    return result


@every_size
@every_border
@each("mask", MASKS)
def test_dilate_and_erode(ddr: Ddr, photo: SimpleNamespace, size: Any, border: int, mask: str) -> None:
    image, kernel = photo.gray(*size), MASKS[mask]
    src, held = ddr.image(image, padding=1), ddr.kernel(kernel)
    height, width = kernel.shape
    dilate = hbDSPCvDilateParam(src=src, dst=ddr.blank(size, padding=2), kernel=held, borderType=border)
    expected = extreme(image, kernel, (width // 2, height // 2), border, np.maximum, 0)
    np.testing.assert_array_equal(ddr.run(dilate)[0], expected)
    erode = hbDSPCvErodeParam(src=src, dst=ddr.blank(size, padding=2), kernel=held, borderType=border)
    expected = extreme(image, kernel, ((width - 1) // 2, (height - 1) // 2), border, np.minimum, 255)
    np.testing.assert_array_equal(ddr.run(erode)[0], expected)


def test_dilate_and_erode_as_scipy_does(ddr: Ddr, photo: SimpleNamespace) -> None:
    image, mask = photo.color(45, 31), MASKS["cross"]
    src, kernel = ddr.image(image), ddr.kernel(mask)
    for param, scipy_filter in (
        (hbDSPCvDilateParam(src=src, dst=ddr.blank(image.shape), kernel=kernel, borderType=1), nd.maximum_filter),
        (hbDSPCvErodeParam(src=src, dst=ddr.blank(image.shape), kernel=kernel, borderType=1), nd.minimum_filter),
    ):
        expected = scipy_filter(image, footprint=mask[..., None] > 0, mode="nearest")
        np.testing.assert_array_equal(ddr.run(param)[0], expected)


@every_size
@every_border
@each("shape, anchor", [((3, 3), (-1, -1)), ((5, 5), (-1, -1)), ((2, 4), (0, 1)), ((13, 15), (-1, -1))])
def test_filter2d_is_within_a_rounding(
    ddr: Ddr, photo: SimpleNamespace, oracle: SimpleNamespace, size: Any, border: int, shape: Any, anchor: Any
) -> None:
    kernel, delta = weights(*shape), 3.5
    held = ddr.kernel(kernel)
    for image in (photo.gray(*size), photo.color(*size)):
        src = ddr.image(image, padding=1)
        exact = oracle.correlated(image, kernel, None if anchor == (-1, -1) else anchor, border) + delta
        for dtype, tolerance in ((np.uint8, 0.501), (np.int16, 0.501), (np.float32, 0.002)):
            if image.ndim == 3 and dtype != np.uint8:
                continue
            param = hbDSPCvFilter2DParam(
                src=src,
                dst=ddr.blank(image.shape, dtype, padding=2),
                kernel=held,
                delta=delta,
                pointLocX=anchor[0],
                pointLocY=anchor[1],
                borderType=border,
            )
            limits = (0, 255) if dtype == np.uint8 else (-32768, 32767)
            assert np.abs(ddr.run(param)[0] - np.clip(exact, *limits)).max() <= tolerance


@every_size
@every_border
@each("columns, rows", [(3, 5), (4, 1), (1, 7)])
def test_sep_filter2d_is_within_a_rounding(
    ddr: Ddr, photo: SimpleNamespace, oracle: SimpleNamespace, size: Any, border: int, columns: int, rows: int
) -> None:
    along_x, along_y = weights(1, columns), weights(rows, 1)
    image = photo.gray(*size)
    src = ddr.image(image, padding=1)
    exact = oracle.correlated(image, along_y.astype(float) @ along_x.astype(float), border=border) + 7
    for dtype, tolerance in ((np.uint8, 0.501), (np.int16, 0.501), (np.float32, 0.002)):
        param = hbDSPCvSepFilter2DParam(
            src=src,
            dst=ddr.blank(image.shape, dtype, padding=2),
            kernelX=ddr.kernel(along_x),
            kernelY=ddr.kernel(along_y),
            delta=7,
            pointLocX=-1,
            pointLocY=-1,
            borderType=border,
        )
        limits = (0, 255) if dtype == np.uint8 else (-32768, 32767)
        assert np.abs(ddr.run(param)[0] - np.clip(exact, *limits)).max() <= tolerance


@every_size
@each("side", [1, 3, 5, 9])
def test_median_blur_is_scipys(ddr: Ddr, photo: SimpleNamespace, size: Any, side: int) -> None:
    for image in (photo.gray(*size), photo.color(*size)):
        if side == 1:
            param = hbDSPCvMedianBlurParam(src=ddr.image(image), dst=ddr.blank(image.shape, padding=2), maskWidth=1)
            np.testing.assert_array_equal(ddr.run(param)[0], image)
            continue
        param = hbDSPCvMedianBlurParam(
            src=ddr.image(image, padding=5), dst=ddr.blank(image.shape, padding=2), maskWidth=side
        )
        expected = nd.median_filter(image, (side, side, *(1,) * (image.ndim - 2)), mode="nearest")
        np.testing.assert_array_equal(ddr.run(param)[0], expected)


def bilateral(image: Array, diameter: int, color: float, space: float, border: int) -> NDArray[np.float64]:
    """The formula, written out."""
    radius = diameter // 2
    around = ((radius, radius), (radius, radius)) + ((0, 0),) * (image.ndim - 2)
    wide = np.pad(image.astype(float), around, mode="edge" if border else "constant")
    total, norm = np.zeros(image.shape), np.zeros(image.shape[:2])
    for j in range(-radius, radius + 1):
        for i in range(-radius, radius + 1):
            if i * i + j * j > radius * radius:
                continue
            there = wide[radius + j :, radius + i :][: image.shape[0], : image.shape[1]]
            apart = np.abs(there - image)
            apart = apart.sum(axis=2) if image.ndim == 3 else apart
            weight = np.exp(-(apart**2) / (2 * color**2) - (i * i + j * j) / (2 * space**2))
            total += (weight[..., None] if image.ndim == 3 else weight) * there
            norm += weight
    return total / (norm[..., None] if image.ndim == 3 else norm)


@every_size
@every_border
def test_bilateral_filter_is_within_one(ddr: Ddr, photo: SimpleNamespace, size: Any, border: int) -> None:
    for image in (photo.gray(*size), photo.color(*size)):
        param = hbDSPCvBilateralFilterParam(
            src=ddr.image(image, padding=5),
            dst=ddr.blank(image.shape, padding=2),
            sigmaColor=20,
            sigmaSpace=2,
            kernelSize=5,
            borderType=border,
        )
        assert np.abs(ddr.run(param)[0] - bilateral(image, 5, 20, 2, border)).max() <= 1
