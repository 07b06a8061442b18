"""What OpenCV by itself gets wrong at the limits of what the rules allow, against numpy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dsp_server.hardware.tile_manager import TileManager
from hbrt.cv_types import (
    HB_VP_INTER_LINEAR,
    HB_VP_INTER_NEAREST,
    MAX_SIDE,
    CvRuleError,
    CvRules,
    hbDSPCvBoxFilterParam,
    hbDSPCvDilateParam,
    hbDSPCvErodeParam,
    hbDSPCvFilter2DParam,
    hbDSPCvRemapParam,
    hbDSPCvSepFilter2DParam,
    hbDSPCvSobelParam,
    hbDSPCvWarpAffineParam,
    hbDSPCvWarpPerspectiveParam,
)
from tests.dsp_server.ops.cv.conftest import correlated, op_of, padded
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.ops.cv.conftest import Ddr

Array = NDArray[Any]
METHODS = [HB_VP_INTER_NEAREST, HB_VP_INTER_LINEAR]
INTEGERS = [np.uint8, np.int16]


@each("window", [(1, 2), (2, 1)])
@each("width", [1, 2, 3, 40])
def test_a_mean_of_two_pixels_does_not_overflow(ddr: Ddr, window: tuple[int, int], width: int) -> None:
    rows, columns = window
    values = np.array([0, 0, 255, 255, 254, 255, 1, 0, 128, 129], np.uint8).repeat(width).reshape(-1, width)
    for image in (values, np.dstack([values] * 3)):
        param = hbDSPCvBoxFilterParam(
            src=ddr.image(image, padding=3),
            dst=ddr.blank(image.shape, padding=2),
            kernelHeight=rows,
            kernelWidth=columns,
            pointLocX=-1,
            pointLocY=0,
            normalize=1,
            borderType=1,
        )
        wide = padded(image, (0, rows - 1), (columns // 2, 0), 1)
        mean = (wide[: len(image), :width] + wide[rows - 1 :, columns - 1 :][: len(image), :width]) / 2
        assert np.abs(ddr.run(param)[0] - mean).max() < 1


@each("dtype", INTEGERS)
@each("weight, delta", [(1, 3e9), (1, -3e9), (1, 1e300), (1e8, 0), (-1e8, 0), (3e38, -1e300)])
def test_filters_saturate_whatever_the_sum(
    ddr: Ddr, photo: SimpleNamespace, dtype: Any, weight: float, delta: float
) -> None:
    image, limits = photo.gray(9, 21), np.iinfo(dtype)
    kernel = np.array([[0, weight, weight]], np.float32)
    exact = correlated(image, kernel) + delta
    expected = np.clip(exact, limits.min, limits.max)
    how: Any = {"src": ddr.image(image), "delta": delta, "pointLocX": -1, "pointLocY": -1, "borderType": 1}
    whole = hbDSPCvFilter2DParam(dst=ddr.blank(image.shape, dtype, padding=3), kernel=ddr.kernel(kernel), **how)
    np.testing.assert_array_equal(ddr.run(whole)[0], expected)
    parts = hbDSPCvSepFilter2DParam(
        dst=ddr.blank(image.shape, dtype, padding=3),
        kernelX=ddr.kernel(kernel),
        kernelY=ddr.kernel(np.ones((1, 1), np.float32)),
        **how,
    )
    np.testing.assert_array_equal(ddr.run(parts)[0], expected)


@each("scale, delta", [(1e7, 0), (-1e7, 0), (1e300, 5), (1, 3e9), (1, -1e300), (1e308, 1e308)])
def test_sobel_saturates_whatever_the_scale(ddr: Ddr, photo: SimpleNamespace, scale: float, delta: float) -> None:
    image = photo.gray(9, 21)
    param = hbDSPCvSobelParam(
        src=ddr.image(image),
        dst=ddr.blank(image.shape, np.int16, padding=3),
        scale=scale,
        delta=delta,
        dx=1,
        kernelSize=3,
        borderType=1,
    )
    with np.errstate(over="ignore"):
        exact = correlated(image, np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])) * scale + delta
    np.testing.assert_array_equal(ddr.run(param)[0], np.clip(exact, -32768, 32767))


def refused(ddr: Ddr, param: CvRules, sentence: str) -> None:
    before = ddr.planes(param.dst)[0].copy()
    with pytest.raises(CvRuleError) as caught:
        op_of(param)(memoryview(bytearray(param)), memoryview(b""), TileManager())
    assert str(caught.value) == sentence
    np.testing.assert_array_equal(ddr.planes(param.dst)[0], before)


@pytest.mark.parametrize("structure", [hbDSPCvDilateParam, hbDSPCvErodeParam])
def test_a_mask_of_zeros_is_refused(ddr: Ddr, photo: SimpleNamespace, structure: Any) -> None:
    param = structure(
        src=ddr.image(photo.gray(5, 6)), dst=ddr.blank((5, 6)), kernel=ddr.kernel(np.zeros((2, 3), np.uint8))
    )
    refused(ddr, param, "kernel is a mask of 6 zeros, which selects no pixel: set at least one element.")


@each("wrong", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_no_number_is_refused(ddr: Ddr, photo: SimpleNamespace, wrong: float) -> None:
    good, bad = np.ones((1, 3), np.float32), np.array([[1, wrong, 1]], np.float32)
    how: Any = {
        "src": ddr.image(photo.gray(5, 6)),
        "dst": ddr.blank((5, 6)),
        "pointLocX": -1,
        "pointLocY": -1,
    }
    sentence = f"has the weight {wrong} at index 1: use finite numbers."
    refused(ddr, hbDSPCvFilter2DParam(kernel=ddr.kernel(bad), **how), f"kernel {sentence}")
    column = ddr.kernel(bad.T.copy())
    refused(ddr, hbDSPCvSepFilter2DParam(kernelX=ddr.kernel(good), kernelY=column, **how), f"kernelY {sentence}")


def look_up(
    ddr: Ddr, image: Array | tuple[Array, Array], places: Array, method: int, border: int, value: int
) -> list[Array]:
    name = "nv12" if isinstance(image, tuple) else ""
    first = image[0] if isinstance(image, tuple) else image
    held = ddr.take(places.nbytes)
    rows, columns = places.shape[:2]
    ddr.array(held, places.shape, places.dtype, columns * 2 * places.itemsize)[...] = places
    param = hbDSPCvRemapParam(
        src=ddr.image(image, name, padding=3),
        dst=ddr.blank((rows, columns, *first.shape[2:]), first.dtype, name, padding=2),
        mapPhyAddr=held,
        mapWidth=columns,
        mapHeight=rows,
        dataType=7 if places.dtype == np.float32 else 6,
        interpolation=method,
        borderType=border,
        borderValue=value,
    )
    return ddr.run(param)


@each("method", METHODS)
@each("wrong", [np.nan, np.inf, -np.inf, 3e38, 1e300])
@each("value", [0, 7])
def test_a_place_of_no_number_lies_outside_among_good_ones(
    ddr: Ddr, photo: SimpleNamespace, method: int, wrong: float, value: int
) -> None:
    gray = photo.gray(20, 26)
    for image in (gray, photo.color(20, 26), gray.astype(np.int16) * 9, gray.astype(np.float32), photo.nv12(20, 26)):
        y, x = np.mgrid[0:20, 0:26].astype(np.float64)
        places = np.stack([x, y], axis=-1)
        holes = np.random.default_rng(2).random((20, 26)) < 0.1
        holes[::2, ::2] |= holes[1::2, 1::2]
        places[holes, 0] = wrong
        got = look_up(ddr, image, places, method, 0, value)
        first = image[0] if isinstance(image, tuple) else image
        expected = first.copy()
        expected[holes] = value
        np.testing.assert_array_equal(got[0], expected)
        if isinstance(image, tuple):
            assert (got[1][holes[::2, ::2]] == 128).all()


def test_what_is_not_defined_warns_nobody(ddr: Ddr, photo: SimpleNamespace) -> None:
    """A warning is an error here, and a line in a core's log."""
    image = photo.gray(20, 26).astype(np.int16)
    signalling = np.array([0x7FF0_0000_0000_0001, 0x7FE0_0000_0000_0000], np.uint64).view(np.float64)  # NaN, and 9e307
    places = np.full((3, 30, 2), signalling)
    for border, value in ((0, 7), (1, 0)):
        (got,) = look_up(ddr, image, places, HB_VP_INTER_LINEAR, border, value)
        assert border or (got == 7).all()


def test_remap_blends_16_bits_as_finely_as_8(ddr: Ddr) -> None:
    random = np.random.default_rng(4)
    image = random.integers(-32768, 32768, (23, 31)).astype(np.int16)
    places = random.uniform(0, 22, (12, 40, 2)).astype(np.float32)
    x, y = places[..., 0].astype(float), places[..., 1].astype(float)
    i, j = x.astype(int), y.astype(int)
    right, down = x - i, y - j
    wide = image.astype(float)
    upper = wide[j, i] * (1 - right) + wide[j, i + 1] * right
    lower = wide[j + 1, i] * (1 - right) + wide[j + 1, i + 1] * right
    exact = upper * (1 - down) + lower * down
    assert np.abs(look_up(ddr, image, places, HB_VP_INTER_LINEAR, 1, 0)[0] - exact).max() <= 0.51


@pytest.mark.parametrize("shape", [(1, MAX_SIDE), (MAX_SIDE, 1)])
def test_remap_takes_the_longest_side(ddr: Ddr, shape: tuple[int, int]) -> None:
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    image = (x + y).astype(np.uint8)
    got = look_up(ddr, image, np.stack([x, y], axis=-1).astype(np.float32), HB_VP_INTER_LINEAR, 0, 0)
    np.testing.assert_array_equal(got[0], image)


def warped(ddr: Ddr, image: Any, matrix: Array, size: tuple[int, int], method: int, border: int) -> list[Array]:
    name = "nv12" if isinstance(image, tuple) else ""
    first = image[0] if isinstance(image, tuple) else image
    structure = hbDSPCvWarpAffineParam if len(matrix) == 2 else hbDSPCvWarpPerspectiveParam
    param: Any = structure(
        src=ddr.image(image, name, padding=3),
        dst=ddr.blank((*size, *first.shape[2:]), np.uint8, name, padding=2),
        interpolation=method,
        borderType=border,
        borderValue=9,
    )
    param.transformMatrix[:] = matrix.reshape(-1).tolist()
    return ddr.run(param)


@each("method", METHODS)
@each("divisor", [[1, 0, -3], [0, 1, -20], [0.05, 0.03, -0.7], [-1, 0, 2], [0, 0, 1e-320]])
def test_a_horizon_inside_the_result(ddr: Ddr, photo: SimpleNamespace, method: int, divisor: list[float]) -> None:
    """Both sides of w = 0 are looked up, and what lies on it is outside."""
    matrix = np.array([[2, 0, 3], [0, 2, 5], divisor])
    if not divisor[0] and not divisor[1]:
        matrix[:2] *= divisor[2]
    y, x = np.mgrid[0:40, 0:40].astype(float)
    w = divisor[0] * x + divisor[1] * y + divisor[2]
    numerators = [row[0] * x + row[1] * y + row[2] for row in matrix[:2]]
    with np.errstate(all="ignore"):
        u, v = (numerator / w for numerator in numerators)
    for image in (photo.gray(30, 34), photo.color(30, 34)):
        (got,) = warped(ddr, image, matrix, (40, 40), method, 0)
        far = ~((u > -1) & (u < 34) & (v > -1) & (v < 30))
        assert far.any()
        assert (got[far] == 9).all()
        whole = ~far & (u == np.rint(u)) & (v == np.rint(v)) & (u >= 0) & (v >= 0) & (w != 0)
        assert whole.any() or divisor[0] == 0.05
        expected = image[v[whole].astype(int), u[whole].astype(int)]
        np.testing.assert_array_equal(got[whole], expected)


def test_a_horizon_in_nv12(ddr: Ddr, photo: SimpleNamespace) -> None:
    planes = photo.nv12(30, 34)
    for plane, value in zip(
        warped(ddr, planes, np.array([[1.0, 0, 1], [0, 1, 1], [0, 1, -8]]), (40, 40), 1, 0), (9, 128), strict=True
    ):
        horizon = plane[8 if plane.ndim == 2 else 4]
        assert (horizon == value).all()
        assert (plane != value).any()


@pytest.mark.parametrize("method", METHODS)
def test_a_place_that_no_int_holds_gets_the_edge_on_its_side(ddr: Ddr, photo: SimpleNamespace, method: int) -> None:
    image = photo.gray(30, 34)
    perspective = np.array([[1e9, 0, 0], [0, 1e9, 5], [0, 0, 1]])
    affine = np.array([[1e-9, 0, 0], [0, 1e-2, 5e-2]])
    for matrix, row in ((perspective, 5), (affine, 0)):
        (got,) = warped(ddr, image, matrix, (12, 12), method, 1)
        assert got[0, 0] == image[row, 0]
        assert (got[0, 1:] == image[row, 33]).all()
        assert (got[1:, 1:] == image[29, 33]).all()
