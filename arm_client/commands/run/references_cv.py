"""The result of each CV op on the CPU, by OpenCV and numpy, with the parameters of the op's sample."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np

REPLICATE = cv2.BORDER_REPLICATE
Compute = Callable[[Any, SimpleNamespace], Any]


def expected(op: str, input_file: str, sample: SimpleNamespace) -> Any:
    """The expected result of a sample.

    Args:
        op: Name of the op.
        input_file: Picture that the sample read.
        sample: Names of the sample's file.
    """
    is_gray = op in GRAY
    picture = cv2.imread(input_file, cv2.IMREAD_GRAYSCALE if is_gray else cv2.IMREAD_COLOR)
    return (GRAY if is_gray else COLOR)[op](picture, sample)


def _corners(gray: Any, sample: SimpleNamespace) -> Any:
    response = cv2.cornerHarris(gray, sample.BLOCK_SIZE, sample.KERNEL_SIZE, sample.SENSITIVITY, borderType=REPLICATE)
    return np.rint(response.astype(np.float64) * 2.0**30)  # the op's scale of an S32 result, for a kernel of 3


def _nv12(picture: Any, _sample: SimpleNamespace) -> Any:
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    planar = cv2.cvtColor(picture[:height, :width], cv2.COLOR_BGR2YUV_I420)
    pairs = planar[height:].reshape(2, -1).T
    return np.vstack([planar[:height], pairs.reshape(height // 2, width)])


def _resized(picture: Any, sample: SimpleNamespace) -> Any:
    frame, size = _nv12(picture, sample), (sample.WIDTH, sample.HEIGHT)
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    pairs = frame[height:].reshape(height // 2, width // 2, 2)
    halves = cv2.resize(pairs, (sample.WIDTH // 2, sample.HEIGHT // 2))
    return np.vstack([cv2.resize(frame[:height], size), halves.reshape(sample.HEIGHT // 2, sample.WIDTH)])


def _regions(picture: Any, sample: SimpleNamespace) -> Any:
    height, width = picture.shape[:2]
    parts = [picture[top : bottom + 1, left : right + 1] for left, top, right, bottom in sample.regions(width, height)]
    return np.stack([cv2.resize(part, (sample.WIDTH, sample.HEIGHT)) for part in parts])


def _waved(picture: Any, sample: SimpleNamespace) -> Any:
    height, width = picture.shape[:2]
    x, y = np.moveaxis(sample.wave(width, height).astype(np.float32), 2, 0)
    return cv2.remap(picture, x.copy(), y.copy(), cv2.INTER_LINEAR)


def _turned(picture: Any, sample: SimpleNamespace) -> Any:
    height, width = picture.shape[:2]
    return cv2.warpAffine(picture, sample.matrix(width, height), (width, height))


def _from_above(picture: Any, sample: SimpleNamespace) -> Any:
    height, width = picture.shape[:2]
    how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpPerspective(picture, sample.matrix(width, height), (width, height), flags=how)


GRAY: dict[str, Compute] = {
    "bilateral_filter": lambda x, s: cv2.bilateralFilter(
        x, s.KERNEL_SIZE, s.SIGMA_COLOR, s.SIGMA_SPACE, borderType=REPLICATE
    ),
    "box_filter": lambda x, s: cv2.boxFilter(x, -1, (s.WIDTH, s.HEIGHT), borderType=REPLICATE),
    "canny": lambda x, s: cv2.Canny(x, s.THRESHOLD_1, s.THRESHOLD_2, apertureSize=s.KERNEL_SIZE),
    "corner_harris": _corners,
    "dilate": lambda x, s: cv2.dilate(x, s.MASK),
    "equalize_hist": lambda x, _: cv2.equalizeHist(x),
    "erode": lambda x, s: cv2.erode(x, s.MASK),
    "filter2d": lambda x, s: cv2.filter2D(x, -1, s.WEIGHTS, borderType=REPLICATE),
    "gaussian_blur": lambda x, s: cv2.GaussianBlur(x, (s.KERNEL_SIZE, s.KERNEL_SIZE), 0, borderType=REPLICATE),
    "integral": lambda x, _: np.pad(x.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0))),
    "sep_filter2d": lambda x, s: cv2.sepFilter2D(x, -1, s.ALONG_X, s.ALONG_Y, borderType=REPLICATE),
    "sobel": lambda x, _: cv2.Sobel(x, cv2.CV_16S, 1, 0, borderType=REPLICATE),
    "threshold": lambda x, s: np.where(x > s.THRESH, s.MAX_VAL, 0),
}
COLOR: dict[str, Compute] = {
    "cvt_color": _nv12,
    "flip": lambda x, _: x[:, ::-1],
    "median_blur": lambda x, s: cv2.medianBlur(x, s.MASK_WIDTH),
    "pyr_down": lambda x, _: cv2.pyrDown(x),
    "pyr_up": lambda x, _: cv2.pyrUp(x),
    "remap": _waved,
    "resize": _resized,
    "roi_resize": _regions,
    "rotate": lambda x, _: np.rot90(x, -1),
    "transpose": lambda x, _: np.swapaxes(x, 0, 1),
    "warp_affine": _turned,
    "warp_perspective": _from_above,
}
