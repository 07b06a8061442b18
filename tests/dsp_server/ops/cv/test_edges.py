"""Canny, CornerHarris and Sobel against numpy and scipy, on crops of a photograph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.ndimage as nd
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from dsp_server.ops.cv import edges
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv_types import hbDSPCvCannyParam, hbDSPCvCornerHarrisParam, hbDSPCvSobelParam
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
SIZES = [(37, 53), (96, 80), (1, 41), (29, 1), (1, 1), (2, 3)]
every_size = each("size", SIZES)


def sobel_kernel(dx: int, dy: int, side: int) -> NDArray[np.float64]:
    """Binomial smoothing, differenced: each order of derivative replaces two steps of smoothing by [-1 0 1] or so."""

    def along(order: int) -> NDArray[np.float64]:
        taps = np.ones(1)
        length = max(side, 3) if order else side
        for _ in range(length - 1 - order):
            taps = np.convolve(taps, [1, 1])
        for _ in range(order):
            taps = np.convolve(taps, [-1, 1])
        return taps

    return np.outer(along(dy), along(dx))


@every_size
@each("border", [0, 1])
@each("dx, dy, side", [(1, 0, 3), (0, 1, 3), (1, 1, 3), (2, 0, 3), (1, 0, 1), (0, 2, 1), (1, 0, 5), (0, 1, 7)])
def test_sobel_is_exact_and_saturates(
    ddr: Ddr, photo: SimpleNamespace, oracle: SimpleNamespace, size: Any, border: int, dx: int, dy: int, side: int
) -> None:
    image = photo.gray(*size)
    for scale, delta in ((1.0, 0.0), (0.5, 3.0)):
        param = hbDSPCvSobelParam(
            src=ddr.image(image, padding=5),
            dst=ddr.blank(size, np.int16, padding=2),
            scale=scale,
            delta=delta,
            dx=dx,
            dy=dy,
            kernelSize=side,
            borderType=border,
        )
        exact = oracle.correlated(image, sobel_kernel(dx, dy, side), border=border) * scale + delta
        got = ddr.run(param)[0]
        if scale == 1:
            np.testing.assert_array_equal(got, np.clip(exact, -32768, 32767))
        else:
            assert np.abs(got - np.clip(exact, -32768, 32767)).max() <= 0.5


def test_sobel_has_the_manuals_kernel() -> None:
    np.testing.assert_array_equal(sobel_kernel(1, 0, 3), [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    np.testing.assert_array_equal(sobel_kernel(0, 1, 3), np.transpose([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]))


def harris(
    image: Array, block: int, side: int, k: float, border: int, correlated: Any
) -> tuple[NDArray[np.float64], float]:
    """R, and the largest trace."""
    scale = 1 / (255 * 2 ** (side - 1) * block)
    dx = correlated(image, sobel_kernel(1, 0, side), border=border) * scale
    dy = correlated(image, sobel_kernel(0, 1, side), border=border) * scale
    window = np.ones((block, block))
    xx, xy, yy = (correlated(product, window, border=border) for product in (dx * dx, dx * dy, dy * dy))
    response: NDArray[np.float64] = xx * yy - xy**2 - k * (xx + yy) ** 2
    return response, float((xx + yy).max())


def allowed(trace: float, side: int) -> float:
    """How far docs/cv-ops.md lets CornerHarris be off."""
    return 1e-6 * trace**2 + (2e-6 * trace**1.5 if side == 7 else 0.0)


@every_size
@each("border", [0, 1])
@each("block, side, bits", [(3, 3, 30), (1, 3, 30), (5, 5, 23), (3, 7, 16)])
def test_corner_harris(
    ddr: Ddr, photo: SimpleNamespace, oracle: SimpleNamespace, size: Any, border: int, block: int, side: int, bits: int
) -> None:
    image = photo.gray(*size)
    src = ddr.image(image, padding=5)
    how = {"sensitivity": 0.04, "blockSize": block, "kernelSize": side, "borderType": border}
    real = ddr.run(hbDSPCvCornerHarrisParam(src=src, dst=ddr.blank(size, np.float32, padding=2), **how))[0]
    whole = ddr.run(hbDSPCvCornerHarrisParam(src=src, dst=ddr.blank(size, np.int32, padding=2), **how))[0]
    exact, trace = harris(image, block, side, 0.04, border, oracle.correlated)
    assert np.abs(real - exact).max() <= allowed(trace, side)
    np.testing.assert_array_equal(whole, np.rint(real.astype(np.float64) * 2.0**bits))


@pytest.mark.parametrize("border", [0, 1])
@pytest.mark.parametrize(("block", "side", "bits"), [(3, 3, 30), (1, 5, 23), (5, 7, 16)])
def test_corner_harris_in_bands(
    ddr: Ddr,
    photo: SimpleNamespace,
    oracle: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    border: int,
    block: int,
    side: int,
    bits: int,
) -> None:
    monkeypatch.setattr(edges, "BAND_BYTES", 0)
    image = photo.gray(157, 61)
    height, width = image.shape
    assert len(list(edges.bands(height, width, block // 2 + side // 2))) >= 3
    src, dst = ddr.image(image, padding=5), ddr.blank(image.shape, np.int32, padding=2)
    how = {"sensitivity": 0.04, "blockSize": block, "kernelSize": side, "borderType": border}
    got = ddr.run(hbDSPCvCornerHarrisParam(src=src, dst=dst, **how))[0]
    exact, trace = harris(image, block, side, 0.04, border, oracle.correlated)
    assert np.abs(got / 2.0**bits - exact).max() <= allowed(trace, side) + 2.0**-bits


@given(st.integers(1, 5000), st.integers(1, 8192), st.integers(0, 20))
def test_bands_fill_the_result_once_and_have_what_they_need(height: int, width: int, reach: int) -> None:
    ends = 0
    for band in edges.bands(height, width, reach):
        assert band.first == ends < band.end
        assert band.first_source == max(band.first - reach, 0)
        assert band.end_source == min(band.end + reach, height)
        ends = band.end
    assert ends == height


def low_contrast() -> dict[str, Array]:
    """Bright images with steps of 1."""
    random, shape = np.random.default_rng(0), (48, 64)
    rows, columns = np.mgrid[:48, :64]
    dot = np.full(shape, 255)
    dot[20, 30] = 254
    return {
        "noise": random.integers(254, 256, shape),
        "dots": 255 - (random.random(shape) > 0.995),
        "dot": dot,
        "step": 254 + (rows > 24),
        "ramp": 200 + rows // 8 + columns // 8,
        "chequers": 254 + (rows + columns) % 2,
        "flat": np.full(shape, 251),
    }


@each("name", low_contrast())
@each("side", [3, 5, 7])
def test_corner_harris_on_low_contrast(ddr: Ddr, oracle: SimpleNamespace, name: str, side: int) -> None:
    image = low_contrast()[name].astype(np.uint8)
    src, dst = ddr.image(image), ddr.blank(image.shape, np.float32)
    for block, sensitivity in ((1, 0.04), (1, 0.2), (5, 0.25)):
        for border in (0, 1):
            how = {"sensitivity": sensitivity, "blockSize": block, "kernelSize": side, "borderType": border}
            got = ddr.run(hbDSPCvCornerHarrisParam(src=src, dst=dst, **how))[0]
            exact, trace = harris(image, block, side, sensitivity, border, oracle.correlated)
            assert np.abs(got - exact).max() <= allowed(trace, side)


def test_corners_are_right_when_the_same_call_interrupts_them(
    ddr: Ddr, photo: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of priority 255 runs between two calls of OpenCV, here one with the same structure."""
    size = (37, 53)
    src, dst = ddr.image(photo.gray(*size)), ddr.blank(size, np.int32)
    param = hbDSPCvCornerHarrisParam(src=src, dst=dst, sensitivity=0.04, blockSize=3, kernelSize=3, borderType=1)
    alone = ddr.run(param)[0]
    add_weighted, interrupting = cv2.addWeighted, [True]

    def interrupted(*args: Any, **options: Any) -> Any:
        if interrupting:
            interrupting.clear()
            ddr.run(param)
        return add_weighted(*args, **options)

    monkeypatch.setattr(cv2, "addWeighted", interrupted)
    np.testing.assert_array_equal(ddr.run(param)[0], alone)


def test_the_steepest_corner_fits_an_int32(ddr: Ddr) -> None:
    random = np.random.default_rng(0)
    for side in (3, 5, 7):
        for block in (1, 3):
            image = (random.random((48, 48)) > 0.5).astype(np.uint8).repeat(2, 0).repeat(2, 1) * np.uint8(255)
            param = hbDSPCvCornerHarrisParam(
                src=ddr.image(image),
                dst=ddr.blank(image.shape, np.int32),
                sensitivity=0.25,
                blockSize=block,
                kernelSize=side,
                borderType=1,
            )
            got = ddr.run(param)[0]
            assert got.min() > -(1 << 31)
            assert (got < 0).any()


def canny(image: Array, low: float, high: float, side: int, norm: int, lenience: float = 0.0) -> Array:
    """Edges by the three steps of the op's text, in integers, with scipy's labels for the last one.

    Args:
        image: (rows, columns) uint8.
        low: threshold1.
        high: threshold2.
        side: kernelSize.
        norm: 1 for L1, 2 for L2.
        lenience: Share of itself by which a size above 2^24 may be the smaller one in a comparison, and win it; below
            0, by which it must be the larger one.
    """
    pixels = image.astype(np.int64)
    kernel = sobel_kernel(1, 0, side).astype(np.int64)
    dx = nd.correlate(pixels, kernel, mode="nearest")
    dy = nd.correlate(pixels, kernel.T, mode="nearest")
    if side == 7:
        dx, dy = np.rint(dx / 16).astype(np.int64), np.rint(dy / 16).astype(np.int64)
        low, high = low / 16, high / 16
    if norm == 2:
        size, low, high = dx**2 + dy**2, low * low, high * high
    else:
        size = np.abs(dx) + np.abs(dy)
    low, high = np.floor(low), np.floor(high)
    around = np.pad(size, 1)
    middle = np.where(size > 1 << 24, size * (1 + lenience), size)

    def at(down: int, right: int) -> Array:
        part: Array = around[1 + down : 1 + down + size.shape[0], 1 + right : 1 + right + size.shape[1]]
        return part

    # tan(22.5 degrees) = 13573 / 2^15; tan(67.5 degrees) is that plus 2.
    x, y = np.abs(dx), np.abs(dy) << 15
    flat, steep = x * 13573, x * 13573 + (x << 16)
    slanted_down = np.where(
        (dx ^ dy) < 0, (middle > at(-1, 1)) & (middle > at(1, -1)), (middle > at(-1, -1)) & (middle > at(1, 1))
    )
    largest = np.where(
        y < flat,
        (middle > at(0, -1)) & (middle >= at(0, 1)),
        np.where(y > steep, (middle > at(-1, 0)) & (middle >= at(1, 0)), slanted_down),
    )
    weak = largest & (middle > low)
    labels, _ = nd.label(weak, np.ones((3, 3)))
    strong = np.unique(labels[weak & (middle > high)])
    edges: Array = np.isin(labels, strong[strong > 0]).astype(np.uint8) * np.uint8(255)
    return edges


@every_size
@each(
    "low, high, side, norm",
    [
        (100, 400, 3, 1),
        (60, 120, 3, 2),
        (50.5, 200.5, 3, 1),
        (800, 2500, 5, 1),
        (700, 2000, 5, 2),
        (9000.5, 30000, 7, 1),
        (9000, 20000.5, 7, 2),
        (0, 1e-9, 3, 2),
        (100, 3e9, 3, 1),
        (1e300, 1e300, 7, 2),
    ],
)
def test_canny_is_exact(
    ddr: Ddr, photo: SimpleNamespace, size: Any, low: float, high: float, side: int, norm: int
) -> None:
    image = photo.gray(*size)
    results = []
    for overlap in (0, 64):
        param = hbDSPCvCannyParam(
            src=ddr.image(image, padding=5),
            dst=ddr.blank(size, padding=2),
            threshold1=low,
            threshold2=high,
            kernelSize=side,
            norm=norm,
            overlap=overlap,
            borderType=1,
        )
        results.append(ddr.run(param)[0])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], canny(image, low, high, side, norm))


@each("side, norm", [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (7, 2)])
def test_canny_of_black_and_white_noise(ddr: Ddr, side: int, norm: int) -> None:
    lenience = 2.0**-22 if (side, norm) == (5, 2) else 0.0
    is_reached = False
    for seed in range(12):
        image = np.random.default_rng(seed).choice(np.array([0, 255], np.uint8), (64, 64))
        src, dst = ddr.image(image), ddr.blank(image.shape)
        for low, high in ((100.0, 400.0), (3000.0, 5000.0)):
            param = hbDSPCvCannyParam(
                src=src, dst=dst, threshold1=low, threshold2=high, kernelSize=side, norm=norm, borderType=1
            )
            got = ddr.run(param)[0]
            least, most = (canny(image, low, high, side, norm, sign * lenience) for sign in (-1, 1))
            assert ((least <= got) & (got <= most)).all()
            is_reached |= bool((least < most).any())
    assert is_reached == (lenience > 0)


def test_canny_finds_something(ddr: Ddr, photo: SimpleNamespace) -> None:
    image = photo.gray(96, 80)
    edges = canny(image, 100, 400, 3, 1)
    assert 0.01 < (edges > 0).mean() < 0.5
