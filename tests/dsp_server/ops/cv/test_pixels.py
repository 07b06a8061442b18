"""CvtColor, EqualizeHist, Integral and Threshold against numpy and scikit-image, on crops of photographs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import skimage.color
from numpy.typing import NDArray

from hbrt.cv_types import (
    CvRuleError,
    hbDSPCvCvtColorParam,
    hbDSPCvEqualizeHistParam,
    hbDSPCvIntegralParam,
    hbDSPCvThresholdParam,
)
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
SIZES = [(37, 53), (64, 48), (1, 41), (29, 1), (1, 1)]
EVEN_SIZES = [(36, 54), (2, 40), (28, 2), (2, 2)]
every_size = each("size", SIZES)


def in_order(image: Array, name: str) -> Array:
    return image if name == "rgb" else image[..., ::-1]


@each("size", EVEN_SIZES)
@each("name", ["rgb", "bgr"])
def test_to_nv12_as_scikit_image_does(ddr: Ddr, photo: SimpleNamespace, size: Any, name: str) -> None:
    image = photo.color(*size)
    param = hbDSPCvCvtColorParam(
        src=ddr.image(in_order(image, name), name, padding=5), dst=ddr.blank(size, name="nv12", padding=2)
    )
    y, uv = ddr.run(param)
    exact = skimage.color.rgb2ycbcr(image)
    assert np.abs(y - exact[..., 0]).max() <= 1
    assert np.abs(uv - exact[::2, ::2, 1:]).max() <= 1


@each("size", EVEN_SIZES)
@each("name", ["rgb", "bgr"])
def test_from_nv12_as_scikit_image_does(ddr: Ddr, photo: SimpleNamespace, size: Any, name: str) -> None:
    exact = skimage.color.rgb2ycbcr(photo.color(*size))
    y, uv = np.rint(exact[..., 0]).astype(np.uint8), np.rint(exact[::2, ::2, 1:]).astype(np.uint8)
    param = hbDSPCvCvtColorParam(
        src=ddr.image((y, uv), "nv12", padding=6), dst=ddr.blank((*size, 3), name=name, padding=2)
    )
    (got,) = ddr.run(param)
    whole = np.dstack([y, uv.repeat(2, 0).repeat(2, 1)]).astype(float)
    back = np.clip(skimage.color.ycbcr2rgb(whole) * 255, 0, 255)
    assert np.abs(in_order(got, name) - back).max() <= 1


@every_size
@each("name", ["rgb", "bgr"])
def test_to_and_from_gray(ddr: Ddr, photo: SimpleNamespace, size: Any, name: str) -> None:
    image, gray = photo.color(*size), photo.gray(*size)
    src = ddr.image(in_order(image, name), name, padding=5)
    (got,) = ddr.run(hbDSPCvCvtColorParam(src=src, dst=ddr.blank(size, padding=2)))
    assert np.abs(got - image @ np.array([0.299, 0.587, 0.114])).max() <= 0.51
    (got,) = ddr.run(hbDSPCvCvtColorParam(src=ddr.image(gray, padding=5), dst=ddr.blank((*size, 3), name=name)))
    np.testing.assert_array_equal(got, np.dstack([gray] * 3))


@every_size
def test_channels_exchanged_also_in_place(ddr: Ddr, photo: SimpleNamespace, size: Any) -> None:
    image = photo.color(*size)
    src = ddr.image(image, "rgb", padding=5)
    (got,) = ddr.run(hbDSPCvCvtColorParam(src=src, dst=ddr.blank((*size, 3), name="bgr", padding=2)))
    np.testing.assert_array_equal(got, image[..., ::-1])
    here = ddr.image(image, "rgb", padding=5)
    here.imageFormat = 4
    (got,) = ddr.run(hbDSPCvCvtColorParam(src=src, dst=same_memory(src, 4)))
    np.testing.assert_array_equal(got, image[..., ::-1])


def same_memory(image: Any, number: int) -> Any:
    copy = type(image).from_buffer_copy(image)
    copy.imageFormat = number
    return copy


def test_luma_goes_over_as_it_is(ddr: Ddr, photo: SimpleNamespace) -> None:
    y, uv = photo.nv12(36, 54)
    (got,) = ddr.run(hbDSPCvCvtColorParam(src=ddr.image((y, uv), "nv12"), dst=ddr.blank((36, 54), padding=2)))
    np.testing.assert_array_equal(got, y)
    got, chroma = ddr.run(hbDSPCvCvtColorParam(src=ddr.image(y), dst=ddr.blank((36, 54), name="nv12", padding=2)))
    np.testing.assert_array_equal(got, y)
    assert (chroma == 128).all()


@every_size
def test_equalize_hist_is_exact_also_in_place(ddr: Ddr, photo: SimpleNamespace, size: Any) -> None:
    image = photo.gray(*size)
    counts = np.bincount(image.reshape(-1), minlength=256)
    smallest = counts[image.min()]
    if smallest == image.size:
        expected = image
    else:
        cdf = np.cumsum(counts).astype(np.float64)
        table = np.rint((cdf - smallest) * np.float32(255 / (image.size - smallest)))
        expected = np.clip(table, 0, 255).astype(np.uint8)[image]
    src = ddr.image(image, padding=5)
    (got,) = ddr.run(hbDSPCvEqualizeHistParam(src=src, dst=ddr.blank(size, padding=2)))
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(ddr.run(hbDSPCvEqualizeHistParam(src=src, dst=src))[0], expected)


@every_size
def test_integral_is_exact(ddr: Ddr, photo: SimpleNamespace, size: Any) -> None:
    image = photo.gray(*size)
    param = hbDSPCvIntegralParam(
        src=ddr.image(image, padding=5), dst=ddr.blank((size[0] + 1, size[1] + 1), np.int32, padding=2)
    )
    expected = np.pad(image.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    np.testing.assert_array_equal(ddr.run(param)[0], expected)


def above(image: Array, thresh: float, most: float, kind: int) -> Array:
    is_above = image > thresh
    zero = np.zeros_like(image)
    choices: list[Array] = [
        np.where(is_above, most, zero),
        np.where(is_above, zero, most),
        np.where(is_above, thresh, image),
        np.where(is_above, image, zero),
        np.where(is_above, zero, image),
    ]
    return choices[kind].astype(image.dtype)


@every_size
@each("kind", range(5))
def test_threshold_is_exact_also_in_place(ddr: Ddr, photo: SimpleNamespace, size: Any, kind: int) -> None:
    gray = photo.gray(*size)
    for image, thresh, most in (
        (gray, 100, 200),
        (gray, 0, 255),
        (gray, 255, 7),
        ((gray.astype(np.int32) * 257 - 32768).astype(np.int16), -300, 32767),
        (gray.astype(np.float32) / 7, 12.25, 0.5),
    ):
        src = ddr.image(image, padding=5)
        how = {"thresh": thresh, "maxVal": most, "type": kind}
        expected = above(image, thresh, most, kind)
        (got,) = ddr.run(hbDSPCvThresholdParam(src=src, dst=ddr.blank(size, image.dtype, padding=2), **how))
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(ddr.run(hbDSPCvThresholdParam(src=src, dst=src, **how))[0], expected)


def test_more_pixels_than_an_int32_can_sum(ddr: Ddr) -> None:
    src, dst = ddr.blank((1, 1)), ddr.blank((1, 1), np.int32)
    src.width, src.height, src.stride = 4096, 2057, 4096
    dst.width, dst.height, dst.stride = 4097, 2058, 4097 * 4
    with pytest.raises(CvRuleError, match="the sum of more than 8421504 may not fit an int32"):
        hbDSPCvIntegralParam(src=src, dst=dst).check()
