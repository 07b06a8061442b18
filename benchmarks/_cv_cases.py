"""The calls of the CV benchmark: each op through a remote call, and by OpenCV here, on the same arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from arm_client import cv
from arm_client.arrays import BoardArray
from arm_client.client import Board
from benchmarks._measure import ROOT
from dsp_server.ops.cv.opencv import aligned_empty, cv2  # with the core's settings: threads, and memory that is kept
from hbrt.cv.enums import hbDSPCvCmd

PICTURE = ROOT / "samples" / "arm" / "cv" / "data" / "input.png"
REPLICATE = cv2.BORDER_REPLICATE
SQUARE = np.ones((3, 3), np.uint8)
WEIGHTS = np.full((5, 5), 1 / 25, np.float32)
TAPS = np.full(5, 1 / 5, np.float32)


class Recorder:
    """A board that remembers the last call, so that it can be made again with nothing else around it."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.cmd = 0
        self.params = b""
        self.output: Any = None
        self._held: list[BoardArray] = []

    def from_array(self, array: Any) -> BoardArray:
        """Kernels and lists stay alive for the calls to come."""
        self._held.append(self._board.from_array(array))
        return self._held[-1]

    def call(self, cmd: int, params: Any, output: Any, **options: Any) -> Any:
        """Remember, and continue."""
        self.cmd, self.params, self.output = int(cmd), bytes(params), output
        return self._board.call(cmd, params, output, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._board, name)


@dataclass(frozen=True)
class Case:
    """One op on arrays in device memory: by a remote call, and by OpenCV here. Both write `dst`."""

    on_board: Callable[[], object]
    directly: Callable[[], object]


class Arrays:
    """The picture in device memory, gray and in color, and what ops need besides."""

    def __init__(self, board: Board, width: int, height: int) -> None:
        self.board = board
        self.size = (width, height)
        picture = cv2.imread(str(PICTURE))
        if picture is None:
            raise FileNotFoundError(f"{PICTURE} cannot be read.")
        self.color = board.from_array(cv2.resize(picture, self.size))
        self.gray = board.from_array(cv2.cvtColor(np.asarray(self.color), cv2.COLOR_BGR2GRAY))
        x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
        self.map = board.from_array(np.dstack([x + 3 * np.sin(y / 9), y]).astype(np.float32))
        self.rois = [(width // 8, height // 8, width // 2, height // 2), (0, 0, width - 1, height - 1)]

    def new(self, height: int, width: int, dtype: Any = np.uint8) -> Any:
        """An array for results."""
        return self.board.empty((height, width), dtype)


HARRIS = hbDSPCvCmd.HB_DSP_RPC_CMD_CV_CORNER_HARRIS
Maker = Callable[[Any, Arrays], tuple[Callable[[Any], object], Callable[[], object]]]


def harris(_: Any, a: Arrays) -> tuple[Callable[[Any], object], Callable[[], object]]:
    """CornerHarris to S32: two calls of OpenCV, with an image between them."""
    out, response = a.new(*a.size[::-1], np.int32), aligned_empty(a.size[::-1], np.float32)

    def directly() -> object:
        cv2.cornerHarris(a.gray, 3, 3, 0.04, dst=response, borderType=REPLICATE)
        return cv2.addWeighted(response, 2.0**30, response, 0, 0, dst=out, dtype=cv2.CV_32S)

    return lambda b: cv.corner_harris(b, a.gray, out=out), directly


def cases() -> dict[str, Maker]:
    """How each op is called: through `arm_client.cv`, and as OpenCV. A maker gets an array of the picture's size."""
    turn = np.array([[0.94, -0.34, 90.0], [0.34, 0.94, -40.0]])
    tilt = np.array([[1.05, 0.1, -2.4], [-0.08, 0.95, 1.6], [0.0001, -0.0001, 1.0]])
    backwards = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP

    def same(ours: Callable[..., object], theirs: Callable[..., object]) -> Maker:
        """An op whose result has the size of its gray source."""
        return lambda out, a: (lambda b: ours(b, a.gray, out=out), lambda: theirs(a.gray, dst=out))

    def sized(
        height: Callable[[int, int], tuple[int, int]],
        dtype: Any,
        ours: Callable[..., object],
        theirs: Callable[..., object],
    ) -> Maker:
        def make(_: Any, a: Arrays) -> tuple[Callable[[Any], object], Callable[[], object]]:
            out = a.new(*height(*a.size), dtype)
            return lambda b: ours(b, a, out), lambda: theirs(a, out)

        return make

    def rois(a: Arrays, out: Any) -> None:
        for index, (left, top, right, bottom) in enumerate(a.rois):
            part = a.gray[top : bottom + 1, left : right + 1]
            cv2.resize(part, out.shape[:0:-1], dst=out[index])

    def regions(_: Any, a: Arrays) -> tuple[Callable[[Any], object], Callable[[], object]]:
        width, height = max(a.size[0] // 2, 1), max(a.size[1] // 2, 1)
        out = a.board.empty((len(a.rois), height, width), np.uint8)
        return lambda b: cv.roi_resize(b, a.gray, a.rois, (width, height), out=out), lambda: rois(a, out)

    def whole(width: int, height: int) -> tuple[int, int]:
        return height, width

    def turned(width: int, height: int) -> tuple[int, int]:
        return width, height

    remap: Any = cv2.remap
    return {
        "bilateral_filter": same(
            lambda b, s, out: cv.bilateral_filter(b, s, 5, out=out),
            lambda s, dst: cv2.bilateralFilter(s, 5, 15.0, 2.0, dst=dst, borderType=REPLICATE),
        ),
        "box_filter": same(
            lambda b, s, out: cv.box_filter(b, s, out=out),
            lambda s, dst: cv2.boxFilter(s, -1, (3, 3), dst=dst, borderType=REPLICATE),
        ),
        "canny": same(lambda b, s, out: cv.canny(b, s, out=out), lambda s, dst: cv2.Canny(s, 100, 400, edges=dst)),
        "corner_harris": harris,
        "cvt_color": sized(
            whole,
            np.uint8,
            lambda b, a, out: cv.cvt_color(b, a.color, "y", "bgr", out=out),
            lambda a, out: cv2.cvtColor(a.color, cv2.COLOR_BGR2GRAY, dst=out),
        ),
        "dilate": same(
            lambda b, s, out: cv.dilate(b, s, SQUARE, out=out), lambda s, dst: cv2.dilate(s, SQUARE, dst=dst)
        ),
        "equalize_hist": same(cv.equalize_hist, cv2.equalizeHist),
        "erode": same(lambda b, s, out: cv.erode(b, s, SQUARE, out=out), lambda s, dst: cv2.erode(s, SQUARE, dst=dst)),
        "filter2d": same(
            lambda b, s, out: cv.filter2d(b, s, WEIGHTS, out=out),
            lambda s, dst: cv2.filter2D(s, -1, WEIGHTS, dst=dst, borderType=REPLICATE),
        ),
        "flip": same(lambda b, s, out: cv.flip(b, s, "horizontal", out=out), lambda s, dst: cv2.flip(s, 1, dst=dst)),
        "gaussian_blur": same(
            lambda b, s, out: cv.gaussian_blur(b, s, 5, out=out),
            lambda s, dst: cv2.GaussianBlur(s, (5, 5), 0, dst=dst, borderType=REPLICATE),
        ),
        "integral": sized(
            lambda w, h: (h + 1, w + 1),
            np.int32,
            lambda b, a, out: cv.integral(b, a.gray, out=out),
            lambda a, out: cv2.integral(a.gray, sum=out, sdepth=cv2.CV_32S),
        ),
        "median_blur": same(
            lambda b, s, out: cv.median_blur(b, s, 5, out=out), lambda s, dst: cv2.medianBlur(s, 5, dst=dst)
        ),
        "pyr_down": sized(
            lambda w, h: ((h + 1) // 2, (w + 1) // 2),
            np.uint8,
            lambda b, a, out: cv.pyr_down(b, a.gray, out=out),
            lambda a, out: cv2.pyrDown(a.gray, dst=out),
        ),
        "pyr_up": sized(
            lambda w, h: (h * 2, w * 2),
            np.uint8,
            lambda b, a, out: cv.pyr_up(b, a.gray, out=out),
            lambda a, out: cv2.pyrUp(a.gray, dst=out),
        ),
        "remap": sized(
            whole,
            np.uint8,
            lambda b, a, out: cv.remap(b, a.gray, a.map, out=out),
            lambda a, out: remap(a.gray, a.map, None, cv2.INTER_LINEAR, dst=out),
        ),
        "resize": sized(
            lambda w, h: (h * 2 // 3, w * 2 // 3),
            np.uint8,
            lambda b, a, out: cv.resize(b, a.gray, out.shape[::-1], out=out),
            lambda a, out: cv2.resize(a.gray, out.shape[::-1], dst=out),
        ),
        "roi_resize": regions,
        "rotate": sized(
            turned,
            np.uint8,
            lambda b, a, out: cv.rotate(b, a.gray, 90, out=out),
            lambda a, out: cv2.rotate(a.gray, cv2.ROTATE_90_CLOCKWISE, dst=out),
        ),
        "sep_filter2d": same(
            lambda b, s, out: cv.sep_filter2d(b, s, TAPS, TAPS, out=out),
            lambda s, dst: cv2.sepFilter2D(s, -1, TAPS, TAPS, dst=dst, borderType=REPLICATE),
        ),
        "sobel": sized(
            whole,
            np.int16,
            lambda b, a, out: cv.sobel(b, a.gray, out=out),
            lambda a, out: cv2.Sobel(a.gray, cv2.CV_16S, 1, 0, dst=out, borderType=REPLICATE),
        ),
        "threshold": same(
            lambda b, s, out: cv.threshold(b, s, 100, out=out),
            lambda s, dst: cv2.threshold(s, 100, 255, cv2.THRESH_BINARY, dst=dst),
        ),
        "transpose": sized(
            turned,
            np.uint8,
            lambda b, a, out: cv.transpose(b, a.gray, out=out),
            lambda a, out: cv2.transpose(a.gray, dst=out),
        ),
        "warp_affine": same(
            lambda b, s, out: cv.warp_affine(b, s, turn, out=out),
            lambda s, dst: cv2.warpAffine(s, turn, s.shape[::-1], dst=dst),
        ),
        "warp_perspective": same(
            lambda b, s, out: cv.warp_perspective(b, s, tilt, out=out),
            lambda s, dst: cv2.warpPerspective(s, tilt, s.shape[::-1], dst=dst, flags=backwards),
        ),
    }


def case_of(make: Maker, arrays: Arrays) -> Case:
    """Fill the parameters by one call through the wrapper; see that both ways give the same."""
    result = arrays.new(*arrays.size[::-1])
    recorder = Recorder(arrays.board)
    by_wrapper, directly = make(result, arrays)
    by_wrapper(recorder)
    params = arrays.board.alloc(256)
    params.view()[: len(recorder.params)] = recorder.params
    case = Case(lambda: arrays.board.call(recorder.cmd, params, recorder.output), directly)
    case.on_board()
    on_board = bytes(recorder.output.view())
    case.directly()
    by_opencv = bytes(recorder.output.view())
    if on_board != by_opencv and not (recorder.cmd == HARRIS and _is_near(on_board, by_opencv)):
        raise ValueError(f"{hbDSPCvCmd(recorder.cmd).op_name} on the board differs from OpenCV here.")
    return case


def _is_near(on_board: bytes, by_opencv: bytes) -> bool:
    """Whether corners are the same but for rounding: the board sums bands of rows, OpenCV the whole image."""
    corners, others = (np.frombuffer(raw, np.int32).astype(np.int64) for raw in (on_board, by_opencv))
    return bool(np.abs(corners - others).max() <= 1e-6 * np.abs(others).max())
