"""`arm_client.cv` on a board: every op, arrays used where they lie, NV12, in place, refusals, what a core loads."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray

import arm_client as hb
from arm_client import cv
from arm_client.arrays import BoardArray
from arm_client.client import Board
from arm_client.cv import dispatch
from arm_client.cv.images import describe, has_whole_rows, kind_of
from arm_client.errors import CallerError, OpFailedError
from hbrt.cv_types import HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, hbDSPCvGaussianBlurParam
from hbrt.status import Status
from tests.each import each

Array = NDArray[Any]
data: Any = skimage.data  # its functions have no types
GRAY: Array = data.camera()[100:137, 180:233].copy()
COLOR: Array = data.astronaut()[40:77, 170:223].copy()
NV12 = cv.Nv12(data.camera()[100:136, 180:232].copy(), data.astronaut()[40:58, 170:196, :2].copy())
TAPS = np.array([1, 2, 1])


def blurred(image: Array) -> Array:
    """1 2 1 both ways, the border replicated, ties up."""
    wide = np.pad(image.astype(int), ((1, 1), (1, 1), *((0, 0),) * (image.ndim - 2)), mode="edge")
    height, width = image.shape[:2]
    total = sum(TAPS[j] * TAPS[i] * wide[j : j + height, i : i + width] for j in range(3) for i in range(3))
    result: Array = ((total + 8) // 16).astype(np.uint8)
    return result


def window(image: Array, take: Callable[[list[Array]], Array]) -> Array:
    """Something of the nine pixels around each, the border replicated."""
    wide = np.pad(image, 1, mode="edge")
    height, width = image.shape
    return take([wide[j : j + height, i : i + width] for j in range(3) for i in range(3)])


SQUARE = np.ones((3, 3))
IDENTITY_MAP = np.dstack(np.meshgrid(np.arange(53.0), np.arange(37.0)))
EXACT: dict[str, tuple[Callable[[Board], Array], Callable[[], Array]]] = {
    "bilateral_filter": (lambda b: cv.bilateral_filter(b, GRAY // 200 * 200, sigma_color=1), lambda: GRAY // 200 * 200),
    "box_filter": (
        lambda b: cv.box_filter(b, GRAY, normalize=False, dtype=np.int32),
        lambda: window(GRAY.astype(np.int32), lambda parts: np.sum(parts, axis=0)),
    ),
    "canny": (
        lambda b: cv.canny(b, np.where(np.arange(8) > 3, 255, 0).astype(np.uint8)[None].repeat(6, 0)),
        lambda: np.where(np.arange(8) == 3, 255, 0)[None].repeat(6, 0),
    ),
    "corner_harris": (lambda b: cv.corner_harris(b, np.full((6, 8), 9, np.uint8)), lambda: np.zeros((6, 8))),
    "cvt_color": (lambda b: cv.cvt_color(b, COLOR, "bgr"), lambda: COLOR[..., ::-1]),
    "dilate": (lambda b: cv.dilate(b, GRAY, SQUARE), lambda: window(GRAY, lambda parts: np.max(parts, axis=0))),
    "equalize_hist": (
        lambda b: cv.equalize_hist(b, np.array([[1, 2], [3, 4]], np.uint8)),
        lambda: np.array([[0, 85], [170, 255]]),
    ),
    "erode": (lambda b: cv.erode(b, GRAY, SQUARE), lambda: window(GRAY, lambda parts: np.min(parts, axis=0))),
    "filter2d": (
        lambda b: cv.filter2d(b, GRAY, [[0, 0, 0], [0, 0, 1], [0, 0, 0]], delta=-300.0, dtype=np.int16),
        lambda: np.c_[GRAY[:, 1:], GRAY[:, -1]].astype(int) - 300,
    ),
    "flip": (lambda b: cv.flip(b, COLOR, "vertical"), lambda: COLOR[::-1]),
    "gaussian_blur": (lambda b: cv.gaussian_blur(b, COLOR), lambda: blurred(COLOR)),
    "integral": (
        lambda b: cv.integral(b, GRAY),
        lambda: np.pad(GRAY.astype(int).cumsum(0).cumsum(1), ((1, 0), (1, 0))),
    ),
    "median_blur": (
        lambda b: cv.median_blur(b, GRAY, 3),
        lambda: window(GRAY, lambda parts: np.median(parts, axis=0).astype(np.uint8)),
    ),
    "pyr_down": (lambda b: cv.pyr_down(b, np.full((5, 7), 9, np.uint8)), lambda: np.full((3, 4), 9)),
    "pyr_up": (lambda b: cv.pyr_up(b, np.full((5, 7), 9, np.uint8), "linear"), lambda: np.full((10, 14), 9)),
    "remap": (lambda b: cv.remap(b, GRAY, IDENTITY_MAP[:, ::-1].copy()), lambda: GRAY[:, ::-1]),
    "resize": (lambda b: cv.resize(b, GRAY, (106, 74), "nearest"), lambda: GRAY.repeat(2, 0).repeat(2, 1)),
    "roi_resize": (
        lambda b: cv.roi_resize(b, COLOR, [(1, 2, 8, 5), (11, 12, 18, 15)], (8, 4)),
        lambda: np.stack([COLOR[2:6, 1:9], COLOR[12:16, 11:19]]),
    ),
    "rotate": (lambda b: cv.rotate(b, COLOR, 270), lambda: np.rot90(COLOR)),
    "sep_filter2d": (
        lambda b: cv.sep_filter2d(b, GRAY, [0, 0, 2], [0, 1, 0], dtype=np.float32),
        lambda: np.c_[GRAY[:, 1:], GRAY[:, -1]] * 2.0,
    ),
    "sobel": (
        lambda b: cv.sobel(b, GRAY, 1, 0, 1),
        lambda: np.c_[GRAY[:, 1:], GRAY[:, -1]].astype(int) - np.c_[GRAY[:, 0], GRAY[:, :-1]],
    ),
    "threshold": (lambda b: cv.threshold(b, GRAY, 90, type="tozero"), lambda: np.where(GRAY > 90, GRAY, 0)),
    "transpose": (lambda b: cv.transpose(b, COLOR), lambda: COLOR.swapaxes(0, 1)),
    "warp_affine": (
        lambda b: cv.warp_affine(b, GRAY, [[1, 0, 4], [0, 1, 2]], border_value=9),
        lambda: np.pad(GRAY, ((2, 0), (4, 0)), constant_values=9)[:37, :53],
    ),
    "warp_perspective": (
        lambda b: cv.warp_perspective(b, GRAY, [[1, 0, 4], [0, 1, 2], [0, 0, 1]], border="replicate"),
        lambda: np.pad(GRAY, ((0, 2), (0, 4)), mode="edge")[2:, 4:],
    ),
}


def test_all_ops_are_here() -> None:
    assert sorted(EXACT) == sorted(set(cv.__all__) - {"Nv12"})


@each("name", EXACT)
def test_every_op_answers(dsp_board: Board, name: str) -> None:
    call, expected = EXACT[name]
    got = call(dsp_board)
    assert isinstance(got, BoardArray)
    np.testing.assert_array_equal(got, expected())


def test_the_board_lists_them(dsp_board: Board) -> None:
    ops = dsp_board.ops()
    assert {ops[cmd] for cmd in range(0x800, 0x819)} == set(EXACT)


def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Board, "from_array", lambda *_: pytest.fail("An image on the board must not be copied."))


def test_board_arrays_are_used_where_they_lie(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dsp_board.from_array(GRAY)
    frame, out_frame = dsp_board.empty((60, 80), np.uint8), dsp_board.empty((60, 80), np.uint8)
    part, out = frame[5:42, 9:62], out_frame[1:38, 20:73]
    part[...] = GRAY
    color = dsp_board.from_array(COLOR)
    no_copies(monkeypatch)
    np.testing.assert_array_equal(cv.gaussian_blur(dsp_board, whole), blurred(GRAY))
    np.testing.assert_array_equal(cv.gaussian_blur(dsp_board, part), blurred(GRAY))
    np.testing.assert_array_equal(cv.gaussian_blur(dsp_board, color[3:30, 5:40]), blurred(COLOR[3:30, 5:40]))
    assert cv.gaussian_blur(dsp_board, part, out=out) is out
    np.testing.assert_array_equal(out, blurred(GRAY))
    out[...] = 0
    assert not out_frame.any(), "the op wrote outside of out"


@pytest.mark.parametrize("view", [np.s_[:, ::2], np.s_[::-1], np.s_[:, ::-1]])
def test_what_no_stride_describes_is_copied(dsp_board: Board, view: Any) -> None:
    image = dsp_board.from_array(GRAY)[view]
    assert not has_whole_rows(image)
    np.testing.assert_array_equal(cv.gaussian_blur(dsp_board, image), blurred(GRAY[view]))
    turned = dsp_board.from_array(GRAY).T
    np.testing.assert_array_equal(cv.gaussian_blur(dsp_board, turned), blurred(GRAY.T))


@pytest.mark.parametrize("view", [np.s_[:1], np.s_[:, :1], np.s_[4:5, 7:8]])
def test_one_row_one_column_one_pixel(dsp_board: Board, monkeypatch: pytest.MonkeyPatch, view: Any) -> None:
    image = dsp_board.from_array(GRAY)[view]
    no_copies(monkeypatch)
    np.testing.assert_array_equal(cv.gaussian_blur(dsp_board, image), blurred(GRAY[view]))


def test_nv12_in_and_out(dsp_board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    turned = cv.rotate(dsp_board, NV12, 90)
    np.testing.assert_array_equal(turned.y, np.rot90(NV12.y, -1))
    np.testing.assert_array_equal(turned.uv, np.rot90(NV12.uv, -1))
    doubled = cv.resize(dsp_board, NV12, (104, 72), "nearest")
    np.testing.assert_array_equal(doubled.y, NV12.y.repeat(2, 0).repeat(2, 1))
    np.testing.assert_array_equal(doubled.uv, NV12.uv.repeat(2, 0).repeat(2, 1))
    np.testing.assert_array_equal(cv.cvt_color(dsp_board, NV12, "y"), NV12.y)
    cut = cv.roi_resize(dsp_board, NV12, [(2, 4, 9, 7), (10, 12, 17, 15)], (8, 4))
    np.testing.assert_array_equal(cut.y, np.stack([NV12.y[4:8, 2:10], NV12.y[12:16, 10:18]]))
    np.testing.assert_array_equal(cut.uv, np.stack([NV12.uv[2:4, 1:5], NV12.uv[6:8, 5:9]]))
    back = cv.cvt_color(dsp_board, cv.cvt_color(dsp_board, np.full((4, 6, 3), (90, 60, 30), np.uint8), "nv12"), "rgb")
    assert np.abs(back.astype(int) - (90, 60, 30)).max() <= 2
    no_copies(monkeypatch)
    out = cv.Nv12(dsp_board.empty((52, 36), np.uint8), dsp_board.empty((26, 18, 2), np.uint8))
    same = cv.flip(dsp_board, turned, "both", out=out)
    assert same.y is out.y
    np.testing.assert_array_equal(out.y, np.rot90(NV12.y))
    np.testing.assert_array_equal(out.uv, np.rot90(NV12.uv))


def test_in_place_where_it_is_safe(dsp_board: Board) -> None:
    image = dsp_board.from_array(GRAY)
    assert cv.threshold(dsp_board, image, 90, out=image) is image
    np.testing.assert_array_equal(image, np.where(GRAY > 90, 255, 0))
    frame = dsp_board.from_array(COLOR)
    cv.cvt_color(dsp_board, frame, "bgr", out=frame)
    np.testing.assert_array_equal(frame, COLOR[..., ::-1])


def test_in_place_where_it_is_not(dsp_board: Board) -> None:
    image = dsp_board.from_array(GRAY)
    with pytest.raises(CallerError, match=r"overlaps src at 0x.*: this op reads pixels after it has written others"):
        cv.gaussian_blur(dsp_board, image, out=image)
    np.testing.assert_array_equal(image, GRAY)


untyped: Any = cv  # what its types forbid
NOT_AN_IMAGE = r"^An array of shape \(5,\) and type uint8 is not an image: use \(height, width\) of uint8"


@each(
    "call, why",
    [
        (lambda b: cv.gaussian_blur(b, GRAY, 4), "^kernelSize is 4: use one of 3 for 1 2 1, 5 for 1 4 6 4 1"),
        (lambda b: cv.gaussian_blur(b, np.zeros(5, np.uint8)), NOT_AN_IMAGE),
        (lambda b: cv.gaussian_blur(b, GRAY.astype(np.float64)), "type float64 is not an image"),
        (lambda b: cv.gaussian_blur(b, GRAY.astype(np.float32)), "^src is Y F32C1: this op takes Y U8C1, RGB"),
        (lambda b: cv.gaussian_blur(b, np.zeros((0, 4), np.uint8)), "has no pixels: both sizes must be 1 or more"),
        (
            lambda b: untyped.gaussian_blur(b, GRAY, border="mirror"),
            "border is 'mirror': use one of 'constant', 'replicate'",
        ),
        (lambda b: untyped.gaussian_blur(b, GRAY, border=[1]), r"^border is \[1\]: use one of"),
        (lambda b: untyped.gaussian_blur(b, GRAY, timeout="x"), "^Invalid timeout 'x': use seconds, or None"),
        (lambda b: untyped.gaussian_blur(b, GRAY, timeout=float("nan")), "^Invalid timeout nan: use seconds, or None"),
        (lambda b: cv.filter2d(b, GRAY, [[1e300]]), "^kernel has the weight inf at index 0"),
        (
            lambda b: cv.median_blur(b, GRAY, 129),
            "^maskWidth is 129, which does not fit its field of hbDSPCvMedianBlurParam",
        ),
        (lambda b: cv.median_blur(b, GRAY, np.int64(259)), "^maskWidth is 259, which does not fit its field"),  # type: ignore[arg-type]
        (lambda b: cv.resize(b, GRAY, (0, 4)), "has no pixels: both sizes must be 1 or more"),
        (
            lambda b: untyped.resize(b, GRAY, (4, 4), "cubic"),
            "interpolation is 'cubic': use one of 'nearest', 'linear'[.]",
        ),
        (lambda b: cv.resize(b, NV12, (5, 4)), "^The planes of NV12|^dst is 5 x 4 pixels: NV12 has a UV pair"),
        (
            lambda b: cv.roi_resize(b, GRAY, [(0, 0, 53, 5)], (4, 4)),
            r"^ROI 0, \(0, 0\) to \(53, 5\), extends outside src",
        ),
        (lambda b: cv.roi_resize(b, GRAY, [], (4, 4)), "rois has shape"),
        (
            lambda b: untyped.roi_resize(b, GRAY, [(0.0, 0.0, 3.0, 3.0)], (4, 4)),
            r"^rois has shape \(1, 4\) and type float64",
        ),
        (
            lambda b: untyped.roi_resize(b, GRAY, [(0, 0, 3, 3), (1, 2)], (4, 4)),
            r"^rois is \[\(0, 0, 3, 3\), \(1, 2\)\]",
        ),
        (lambda b: cv.roi_resize(b, GRAY, [(0, 0, 3, 3)], (4, 4), out=[1]), "^out is a list: create it with board"),
        (lambda b: cv.warp_affine(b, GRAY, np.eye(2, 3), border_value=1 << 32), "^borderValue is 4294967296, which"),
        (
            lambda b: untyped.warp_perspective(b, GRAY, np.eye(3), border_value=7.5),
            "^One of interpolation 1, borderType 0, borderValue 7.5 has the wrong type",
        ),
        (
            lambda b: cv.flip(b, untyped.Nv12([[1, 2]], None), "both"),
            "^A plane of the Nv12 is a list: both must be numpy",
        ),
        (
            lambda b: cv.flip(b, NV12, "both", out=5),
            "^out is of type int, but must be an Nv12 of two board arrays",
        ),
        (lambda b: cv.roi_resize(b, NV12, [(0, 0, 3, 3)], (4, 4), out=[1]), "^out is of type list, but must be"),
        (lambda b: untyped.rotate(b, GRAY, [90]), r"^degrees is \[90\]: use 90, 180 or 270"),
        (lambda b: untyped.flip(b, GRAY, ["both"]), r"^direction is \['both'\]: use one of"),
        (lambda b: untyped.box_filter(b, GRAY, normalize="no"), "normalize 'no', .* has the wrong type for its field"),
        (lambda b: cv.remap(b, GRAY, np.zeros((4, 4))), r"^The map has shape \(4, 4\) and type float64"),
        (lambda b: cv.warp_affine(b, GRAY, np.eye(3)), r"^The matrix has shape \(3, 3\), but this op takes \(2, 3\)"),
        (lambda b: untyped.rotate(b, GRAY, 45), "^degrees is 45: use 90, 180 or 270"),
        (lambda b: untyped.flip(b, GRAY, "up"), "^direction is 'up': use one of 'vertical', 'horizontal', 'both'"),
        (lambda b: cv.dilate(b, GRAY, [1, 1]), r"^A kernel cannot have shape \(2,\): use \(rows, columns\)"),
        (lambda b: cv.erode(b, GRAY, np.zeros((3, 3))), "^kernel is a mask of 9 zeros, which selects no pixel"),
        (lambda b: cv.filter2d(b, GRAY, [[1, np.nan]]), "^kernel has the weight nan at index 1: use finite"),
        (lambda b: cv.sep_filter2d(b, GRAY, [1], [np.inf]), "^kernelY has the weight inf at index 0"),
        (lambda b: untyped.cvt_color(b, GRAY, "hsv"), "^to is 'hsv': use one of 'rgb', 'bgr', 'y', 'nv12'"),
        (lambda b: untyped.cvt_color(b, GRAY, ["rgb"]), r"^to is \['rgb'\]: use one of"),
        (lambda b: untyped.cvt_color(b, GRAY, "rgb", {}), "^channels is {}: use one of 'rgb', 'bgr'"),
        (lambda b: untyped.flip(b, [[1, 2]], "both"), "^The image is a list: use a numpy array or an Nv12"),
        (lambda b: untyped.remap(b, GRAY, [[1, 2]]), "^The map is a list: use an array"),
        (lambda b: untyped.resize(b, GRAY, 5), "^size is 5, but must be two integers"),
        (lambda b: untyped.resize(b, GRAY, (5, 4, 3)), r"^size is \(5, 4, 3\), but must be two integers"),
        (
            lambda b: untyped.warp_affine(b, GRAY, np.eye(2, 3), "linear"),
            "^size is 'linear', but must be two integers",
        ),
        (lambda b: untyped.filter2d(b, GRAY, [[1, 2], [3]]), r"^The kernel is \[\[1, 2\], \[3\]\]: use real numbers"),
        (lambda b: untyped.filter2d(b, GRAY, [[1j]]), r"^The kernel is \[\[1j\]\]: use real numbers"),
        (lambda b: untyped.filter2d(b, GRAY, [["1"]]), r"^The kernel is \[\['1'\]\]: use real numbers"),
        (lambda b: untyped.dilate(b, GRAY, None), "^The mask is None: use real numbers"),
        (
            lambda b: untyped.warp_affine(b, GRAY, np.eye(2, 3) * 1j),
            "^The matrix is of type complex128: use real numbers",
        ),
        (
            lambda b: cv.sep_filter2d(b, GRAY, np.ones((3, 3)), [1]),
            r"^The kernel_x has shape \(3, 3\): give its weights",
        ),
        (lambda b: cv.sep_filter2d(b, GRAY, [1], np.ones((3, 1, 1))), r"^The kernel_y has shape \(3, 1, 1\): give its"),
        (
            lambda b: cv.sep_filter2d(b, GRAY, [1], 2.0),
            r"^The kernel_y has shape \(\): give its weights along one axis",
        ),
        (
            lambda b: cv.sep_filter2d(b, GRAY, [], [1]),
            r"^The kernel_x has shape \(0,\): give its weights along one axis",
        ),
        (lambda b: untyped.median_blur(b, GRAY, 3.5), "^One of maskWidth 3.5 has the wrong type for its field"),
        (
            lambda b: untyped.flip(b, GRAY, "both", prority=9),
            "^Unknown option prority; known: out, ",
        ),
        (
            lambda b: cv.gaussian_blur(b, GRAY, out=GRAY.copy()),
            "^out is not in device memory: create it with board.empty",
        ),
        (lambda b: cv.gaussian_blur(b, GRAY, out=b.empty((4, 4), np.uint8)), r"^out has shape \(4, 4\), type uint8"),
        (
            lambda b: cv.flip(b, cv.Nv12(NV12.y, NV12.uv[:3]), "both"),
            r"^The planes of NV12 have shapes \(36, 52\) and \(3, 26, 2\)",
        ),
    ],
)
def test_a_broken_rule_is_refused_before_it_is_submitted(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch, call: Callable[[Board], Any], why: str
) -> None:
    monkeypatch.setattr(Board, "_queue", lambda *_args, **_kwargs: pytest.fail("It must not be submitted."))
    with pytest.raises(CallerError) as caught:
        call(dsp_board)
    assert caught.value.status == Status.HB_DSP_INVALID_ARGUMENT
    assert re.search(why, caught.value.text), caught.value.text


ONE_PLANE: dict[str, Callable[[Board, Any], Any]] = {
    "bilateral_filter": cv.bilateral_filter,
    "box_filter": cv.box_filter,
    "canny": cv.canny,
    "corner_harris": cv.corner_harris,
    "dilate": lambda b, src: cv.dilate(b, src, SQUARE),
    "equalize_hist": cv.equalize_hist,
    "erode": lambda b, src: cv.erode(b, src, SQUARE),
    "filter2d": lambda b, src: cv.filter2d(b, src, SQUARE),
    "gaussian_blur": cv.gaussian_blur,
    "integral": cv.integral,
    "median_blur": cv.median_blur,
    "sep_filter2d": lambda b, src: cv.sep_filter2d(b, src, TAPS, TAPS),
    "sobel": cv.sobel,
    "threshold": lambda b, src: cv.threshold(b, src, 3),
}


@each("name", ONE_PLANE)
def test_an_nv12_where_none_is_taken(dsp_board: Board, name: str) -> None:
    with pytest.raises(
        CallerError, match=r"^src is an Nv12, which this op does not take: give it the plane y"
    ) as caught:
        ONE_PLANE[name](dsp_board, NV12)
    assert caught.value.status == Status.HB_DSP_INVALID_ARGUMENT


WITH_DTYPE: dict[str, Callable[..., Any]] = {
    "box_filter": lambda b, **how: cv.box_filter(b, GRAY, **how),
    "corner_harris": lambda b, **how: cv.corner_harris(b, GRAY, **how),
    "filter2d": lambda b, **how: cv.filter2d(b, GRAY, SQUARE, **how),
    "sep_filter2d": lambda b, **how: cv.sep_filter2d(b, GRAY, TAPS, TAPS, **how),
}


@each("name", WITH_DTYPE)
@each("dtype", ["zzz", 3, 0, "", "f4,(", "O", "complex64", ">i2", np.float64, [("a", "u1")]])
def test_a_dtype_that_no_image_has(dsp_board: Board, name: str, dtype: Any) -> None:
    for how in ({}, {"out": dsp_board.empty(GRAY.shape, np.uint8)}):
        with pytest.raises(CallerError, match=r"^dtype is .*, but must be uint8, int16, int32 or float32") as caught:
            WITH_DTYPE[name](dsp_board, dtype=dtype, **how)
        assert caught.value.status == Status.HB_DSP_INVALID_ARGUMENT


@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 1)])
def test_the_weights_along_an_axis_are_a_list_a_row_or_a_column(dsp_board: Board, shape: tuple[int, ...]) -> None:
    taps = np.reshape([0, 0, 2], shape)
    got = cv.sep_filter2d(dsp_board, GRAY, taps, taps / 2, dtype=np.float32)
    wide = np.pad(GRAY, ((0, 1), (0, 1)), mode="edge")
    np.testing.assert_array_equal(got, wide[1:, 1:] * 2.0)


def test_a_structure_is_held_to_its_rules_once_and_another_one_anew(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[bytes] = []
    check = hbDSPCvGaussianBlurParam.check

    def note(param: hbDSPCvGaussianBlurParam) -> None:
        checked.append(bytes(param))
        check(param)

    monkeypatch.setattr(hbDSPCvGaussianBlurParam, "check", note)
    monkeypatch.setattr(dispatch, "_known_good", set())  # other boards' arrays had the same addresses, perhaps
    source, out = dsp_board.from_array(GRAY), dsp_board.empty_like(GRAY)
    for size in (3, 3, 5, 3, 5):
        cv.gaussian_blur(dsp_board, source, size, out=out)
    assert len(checked) == len(set(checked)) == 2
    for _ in range(2):
        with pytest.raises(CallerError, match="4"):
            cv.gaussian_blur(dsp_board, source, 4, out=out)
    assert len(checked) == 4


def raw(board: Board, **fields: Any) -> tuple[hbDSPCvGaussianBlurParam, BoardArray, BoardArray]:
    dst, src = board.empty_like(GRAY), board.from_array(GRAY)
    param = hbDSPCvGaussianBlurParam(
        src=describe(src, kind_of(src)), dst=describe(dst, kind_of(dst)), kernelSize=3, borderType=1
    )
    for name, value in fields.items():
        setattr(param, name, value)
    return param, src, dst


def test_the_raw_command(dsp_board: Board) -> None:
    param, _src, dst = raw(dsp_board)
    assert dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst) is dst
    np.testing.assert_array_equal(dst, blurred(GRAY))
    dst[...] = 0
    dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, None)  # without an output block
    np.testing.assert_array_equal(dst, blurred(GRAY))


def test_by_the_c_names_a_refusal_is_a_status_and_a_sentence(dsp_board: Board) -> None:
    param, src, dst = raw(dsp_board, kernelSize=9)
    dst[...] = 0
    block = hb.hbSysMem()
    assert hb.hbSysAllocMem(block, ctypes.sizeof(param)) == 0
    ctrl, out = hb.hbDSPRpcCtrlParam(), hb.hbSysMem()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR
    out.phyAddr, out.virAddr, out.memSize = src.phy_addr, src.ctypes.data, src.nbytes
    for kernel_size, why in ((9, "kernelSize is 9: use one of 3"), (3, "dst.dataPhyAddr is not in the call's output")):
        param.kernelSize = kernel_size
        block.view()[:] = bytes(param)
        task = hb.hbDSPTask_t()
        assert hb.hbDSPRpc(task, block, out, ctrl) == 0
        assert hb.hbDSPWaitTaskDone(task, 0) == Status.HB_DSP_RUN_TASK_FAILED
        said = hb.last_error()
        assert hb.hbDSPReleaseTask(task) == 0
        assert f" refused the call: {why}" in said
        assert len(said.splitlines()) == 1
    assert hb.hbSysFreeMem(block) == 0
    assert not dst.any()


def test_the_op_refuses_what_reaches_it(dsp_board: Board) -> None:
    param, src, dst = raw(dsp_board, kernelSize=9)
    with pytest.raises(OpFailedError, match="kernelSize is 9: use one of 3") as caught:
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst)
    assert caught.value.status == Status.HB_DSP_RUN_TASK_FAILED
    param.kernelSize = 3
    with pytest.raises(OpFailedError, match="The input block has 119 bytes, but hbDSPCvGaussianBlurParam has 120: "):
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, bytes(param)[:119], dst)
    with pytest.raises(OpFailedError, match=r"dst\.dataPhyAddr is not in the call's output block"):
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, src)
    np.testing.assert_array_equal(src, GRAY)
    param.src.dataPhyAddr = src.ctypes.data
    with pytest.raises(OpFailedError, match="looks like a virtual address") as caught:
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst)
    assert caught.value.status == Status.HB_ERR_MMAP_FAILED
    param.src.dataPhyAddr = src.phy_addr
    param.src.stride = 1 << 20  # beyond its block
    with pytest.raises(OpFailedError, match="bytes past the end of its block") as caught:
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst)
    assert caught.value.status == Status.HB_ERR_MMAP_FAILED


def test_what_was_mapped_before_is_looked_up_again_when_a_block_has_gone(dsp_board: Board) -> None:
    param, src, dst = raw(dsp_board)
    for _ in range(3):
        dst[...] = 0
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst)
        np.testing.assert_array_equal(dst, blurred(GRAY))
    src[...] = src[::-1].copy()  # the pixels are read anew each time
    dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst)
    np.testing.assert_array_equal(dst, blurred(GRAY[::-1]))
    buffer = src.board_buffer
    assert buffer is not None
    buffer.free()
    with pytest.raises(OpFailedError, match=r"is in freed memory: the block .*test_cv\.py:") as caught:
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst)
    assert caught.value.status == Status.HB_ERR_MMAP_FAILED


def test_a_plan_is_for_one_output_block(dsp_board: Board) -> None:
    param, src, dst = raw(dsp_board)
    dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst, core=1)
    with pytest.raises(OpFailedError, match="is not in the call's output block"):
        dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, src, core=1)
    dsp_board.call(HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, dst, core=1)


class Recorder:
    """A board that remembers the last call, and what else it put into device memory for it."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.put: list[BoardArray] = []
        self.again: Callable[[], Any] = self._nothing

    def from_array(self, array: Any) -> BoardArray:
        self.put.append(self._board.from_array(array))
        return self.put[-1]

    def call(self, cmd: int, param: Any, output: Any, **_: Any) -> Any:
        self.again = lambda: self._board.call(cmd, bytes(param), output, core=1)
        return self.again()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._board, name)

    def _nothing(self) -> None:
        raise AssertionError("No call was made.")


HALF = np.array([[0, 0, 0], [0, 0.5, 0], [0, 0, 0]])
IN_DDR: dict[str, tuple[Callable[[Any], Any], Callable[[list[BoardArray]], object]]] = {
    "filter2d": (lambda b: cv.filter2d(b, GRAY, HALF), lambda put: put[0].__imul__(2)),
    "sep_filter2d": (
        lambda b: cv.sep_filter2d(b, GRAY, [0, 0.5, 0], [0, 1, 0]),
        lambda put: put[0].__imul__(2),
    ),
    "erode": (lambda b: cv.erode(b, GRAY, np.roll(np.eye(3), 1, 0)[:1]), lambda put: put[0].put([0, 1, 2], [0, 1, 0])),
    "dilate": (lambda b: cv.dilate(b, GRAY, [[1, 0, 0]]), lambda put: put[0].put([0, 1, 2], [0, 1, 0])),
    "remap": (lambda b: cv.remap(b, GRAY, IDENTITY_MAP[:, ::-1]), lambda put: np.copyto(put[-1], IDENTITY_MAP)),
    "roi_resize": (
        lambda b: cv.roi_resize(b, GRAY, [(0, 0, 3, 3)], (53, 37)),
        lambda put: np.copyto(put[-1], [[0, 0, 52, 36]]),
    ),
}


@pytest.mark.parametrize("name", IN_DDR)
def test_kernels_maps_and_lists_are_read_anew_at_every_call(dsp_board: Board, name: str) -> None:
    call, change = IN_DDR[name]
    recorder = Recorder(dsp_board)
    result = call(recorder)
    first = np.array(result)
    recorder.again()
    np.testing.assert_array_equal(result, first)
    change(recorder.put)  # to what leaves the picture as it is
    recorder.again()
    np.testing.assert_array_equal(np.asarray(result).reshape(GRAY.shape), GRAY)
    assert not np.array_equal(result, first)


def test_a_kernel_that_is_spoilt_later_is_refused_then(dsp_board: Board) -> None:
    recorder = Recorder(dsp_board)
    result = cv.filter2d(recorder, GRAY, HALF * 2)  # type: ignore[arg-type]
    weights = recorder.put[0]
    for spoilt in (np.nan, np.inf):
        weights[0, 0] = spoilt
        for _ in range(2):
            with pytest.raises(OpFailedError, match=f"kernel has the weight {spoilt} at index 0"):
                recorder.again()
    weights[0, 0] = 0
    result[...] = 0
    recorder.again()
    np.testing.assert_array_equal(result, GRAY)


def has_opencv(board: Board) -> list[bool]:
    return ["cv2" in Path(f"/proc/{core['pid']}/maps").read_text() for core in board.status()["cores"]]


@pytest.mark.dsp_board(fresh=True)
def test_opencv_loads_only_in_a_core_that_runs_a_cv_op(dsp_board: Board) -> None:
    from arm_client import nn

    nn.softmax(dsp_board, [1.0, 2.0], core=1)
    nn.softmax(dsp_board, [1.0, 2.0], core=2)
    assert has_opencv(dsp_board) == [False, False]
    cv.gaussian_blur(dsp_board, GRAY, core=2)
    assert has_opencv(dsp_board) == [False, True]


def test_memory_comes_back(dsp_board: Board) -> None:
    before = dsp_board.live_bytes()
    for call, _ in EXACT.values():
        call(dsp_board)
    gc.collect()
    assert dsp_board.live_bytes() == before
