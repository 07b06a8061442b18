"""The packaged CV ops as Python calls: arrays or board arrays in, board arrays out; `Nv12` for two-plane images."""

from __future__ import annotations

from arm_client.cv.edges import canny, corner_harris, sobel
from arm_client.cv.filters import (
    bilateral_filter,
    box_filter,
    dilate,
    erode,
    filter2d,
    gaussian_blur,
    median_blur,
    sep_filter2d,
)
from arm_client.cv.flip_rotate import flip, rotate, transpose
from arm_client.cv.images import Nv12
from arm_client.cv.pointwise import cvt_color, equalize_hist, integral, threshold
from arm_client.cv.resize import pyr_down, pyr_up, resize, roi_resize
from arm_client.cv.warps import remap, warp_affine, warp_perspective

__all__ = [
    "Nv12",
    "bilateral_filter",
    "box_filter",
    "canny",
    "corner_harris",
    "cvt_color",
    "dilate",
    "equalize_hist",
    "erode",
    "filter2d",
    "flip",
    "gaussian_blur",
    "integral",
    "median_blur",
    "pyr_down",
    "pyr_up",
    "remap",
    "resize",
    "roi_resize",
    "rotate",
    "sep_filter2d",
    "sobel",
    "threshold",
    "transpose",
    "warp_affine",
    "warp_perspective",
]
