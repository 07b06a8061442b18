"""Filters over a window around each pixel: means, custom weights, and the smallest, largest or median pixel."""

from __future__ import annotations

from functools import partial

import numpy as np

from dsp_server.ops.cv.kernels import LARGEST_PIXEL, Weights, is_beyond_int, saturate, under_mask
from dsp_server.ops.cv.op import Planes, Run, cv_op, settle, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import (
    hbDSPCvBilateralFilterParam,
    hbDSPCvBoxFilterParam,
    hbDSPCvDilateParam,
    hbDSPCvErodeParam,
    hbDSPCvFilter2DParam,
    hbDSPCvGaussianBlurParam,
    hbDSPCvMedianBlurParam,
    hbDSPCvSepFilter2DParam,
)
from hbrt.cv.image import Y_F32, Y_S16, Y_S32

MISCOUNTED_AREA = 2
"""OpenCV 5.0 divides sums in 16 bits, which overflow only for this area: two pixels of 255 give 0."""
SAME_DEPTH = -1
DEPTHS: dict[int, int] = {Y_S16.type: cv2.CV_16S, Y_F32.type: cv2.CV_32F}
"""OpenCV's numbers for the element types that a filter can write, besides its source's type."""


# BilateralFilter, command 0x800: a mean of nearby pixels that favors similar values.


def bilateral_filter(param: hbDSPCvBilateralFilterParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(p) = sum over q of w(q) src(q) / sum of w(q).

    w(q) = exp(-d(p, q)^2 / (2 sigmaSpace^2)) * exp(-dI^2 / (2 sigmaColor^2)), where dI is |src(p) - src(q)|, for color
    summed over the channels. q covers the disc of diameter kernelSize. Accurate to 1. Pixels outside src are 0 with a
    constant border, the nearest pixel with a replicated one.

    src in U8: Y, RGB or BGR; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), BilateralFilter.
    Emulator: the disc, and the sum over channels, are OpenCV's.
    """
    return settled(
        dst[0],
        cv2.bilateralFilter,
        src[0],
        param.kernelSize,
        param.sigmaColor,
        param.sigmaSpace,
        dst=dst[0],
        borderType=param.borderType,
    )


hb_dsp_bilateral_filter = cv_op(hbDSPCvBilateralFilterParam, bilateral_filter, instructions=160)


# BoxFilter, command 0x801: the mean, or the sum, of a window.


def box_filter(param: hbDSPCvBoxFilterParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = sum of src over the window, divided by its area if `normalize` is 1.

    The window's element (pointLocX, pointLocY) is on the pixel. The mean is accurate to 1; a sum in U8 saturates at
    255, a sum in S32 always fits. Pixels outside src are 0 with a constant border, the nearest pixel with a replicated
    one.

    src in U8: Y, RGB or BGR; dst: the same; for a sum of Y also S32.

    Source: VP operator manual (J6 OE 3.0.17), BoxFilter.
    """
    if param.normalize and param.kernelWidth * param.kernelHeight == MISCOUNTED_AREA:
        halves = np.full((param.kernelHeight, param.kernelWidth), 0.5, np.float32)
        anchor = (param.pointLocX, param.pointLocY)
        return settled(dst[0], cv2.filter2D, src[0], -1, halves, dst=dst[0], anchor=anchor, borderType=param.borderType)
    return settled(
        dst[0],
        cv2.boxFilter,
        src[0],
        cv2.CV_32S if param.dst.imageType == Y_S32.type else -1,
        (param.kernelWidth, param.kernelHeight),
        dst=dst[0],
        anchor=(param.pointLocX, param.pointLocY),
        normalize=bool(param.normalize),
        borderType=param.borderType,
    )


hb_dsp_box_filter = cv_op(hbDSPCvBoxFilterParam, box_filter, instructions=8)


# Dilate, command 0x805: the largest pixel under a mask.


def dilate(param: hbDSPCvDilateParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = max of src(x + i - width / 2, y + j - height / 2) where mask element (i, j) is not 0.

    With a constant border, pixels outside src never win; with a replicated one, they equal the nearest pixel.

    src in U8: Y, RGB or BGR; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Dilate, for the anchor.
    Emulator: the border is OpenCV's.
    """
    anchor = (param.kernel.width // 2, param.kernel.height // 2)
    return under_mask(cv2.dilate, param.kernel, src[0], dst[0], anchor=anchor, borderType=param.borderType)


hb_dsp_dilate = cv_op(hbDSPCvDilateParam, dilate, instructions=12)


# Erode, command 0x807: the smallest pixel under a mask.


def erode(param: hbDSPCvErodeParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = min of src(x + i - (width - 1) / 2, y + j - (height - 1) / 2) where mask (i, j) is not 0.

    With a constant border, pixels outside src never win; with a replicated one, they equal the nearest pixel. For even
    sides the anchor differs from Dilate's.

    src in U8: Y, RGB or BGR; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Erode, for the anchor.
    Emulator: the border is OpenCV's.
    """
    anchor = ((param.kernel.width - 1) // 2, (param.kernel.height - 1) // 2)
    return under_mask(cv2.erode, param.kernel, src[0], dst[0], anchor=anchor, borderType=param.borderType)


hb_dsp_erode = cv_op(hbDSPCvErodeParam, erode, instructions=12)


# Filter2D, command 0x808: a weighted sum of a window, with the caller's weights.


def filter2d(param: hbDSPCvFilter2DParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = delta + sum of kernel(i, j) * src(x + i - pointLocX, y + j - pointLocY): a correlation.

    Computed in float32; U8 and S16 are rounded to nearest and saturate. Pixels outside src are 0 with a constant
    border, the nearest pixel with a replicated one.

    src in U8: Y, RGB or BGR; dst: the same; for Y also S16 or F32.

    Source: VP operator manual (J6 OE 3.0.17), Filter2D.
    """
    kernel = Weights(param.kernel, "kernel")
    source, target, delta = src[0], dst[0], param.delta
    filtered = partial(
        cv2.filter2D, anchor=(param.pointLocX, param.pointLocY), delta=delta, borderType=param.borderType
    )
    depth = DEPTHS.get(param.dst.imageType, SAME_DEPTH)

    def run() -> None:
        if is_beyond_int(target, kernel.largest_sum() + abs(delta)):
            saturate(target, filtered(source, cv2.CV_64F, kernel.values.astype(np.float64)))
        else:
            settle(target, filtered(source, depth, kernel.values, dst=target))

    return run


hb_dsp_filter2d = cv_op(hbDSPCvFilter2DParam, filter2d, instructions=40)


# GaussianBlur, command 0x80a: a mean with fixed binomial weights.


def gaussian_blur(param: hbDSPCvGaussianBlurParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = sum of w(i) w(j) src(x + i, y + j), w = [1 2 1] / 4 or [1 4 6 4 1] / 16; exact, ties up.

    Pixels outside src are 0 with a constant border, the nearest pixel with a replicated one.

    src in U8: Y, RGB or BGR; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), GaussianBlur.
    With a sigma of 0, OpenCV uses the same weights.
    """
    return settled(
        dst[0], cv2.GaussianBlur, src[0], (param.kernelSize,) * 2, 0, dst=dst[0], borderType=param.borderType
    )


hb_dsp_gaussian_blur = cv_op(hbDSPCvGaussianBlurParam, gaussian_blur, instructions=12)


# MedianBlur, command 0x80c: the median of a square.


def median_blur(param: hbDSPCvMedianBlurParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = median of the square of maskWidth around the pixel, per channel, with a replicated border.

    src in U8: Y, RGB or BGR; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), MedianBlur.
    Emulator: the border is OpenCV's.
    """
    if param.maskWidth == 1:  # OpenCV requires at least 3
        return lambda: np.copyto(dst[0], src[0])
    return settled(dst[0], cv2.medianBlur, src[0], param.maskWidth, dst=dst[0])


hb_dsp_median_blur = cv_op(hbDSPCvMedianBlurParam, median_blur, instructions=60)


# SepFilter2D, command 0x813: a weighted sum along rows, then along columns.


def sep_filter2d(param: hbDSPCvSepFilter2DParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = delta + sum of kernelY(j) * kernelX(i) * src(x + i - pointLocX, y + j - pointLocY).

    Computed in float32; U8 and S16 are rounded to nearest and saturate. Pixels outside src are 0 with a constant
    border, the nearest pixel with a replicated one.

    src in U8: Y, RGB or BGR; dst: the same; for Y also S16 or F32.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the structure is the emulator's choice.
    """
    along_x, along_y = Weights(param.kernelX, "kernelX"), Weights(param.kernelY, "kernelY")
    source, target, delta = src[0], dst[0], param.delta
    filtered = partial(
        cv2.sepFilter2D, anchor=(param.pointLocX, param.pointLocY), delta=delta, borderType=param.borderType
    )
    depth = DEPTHS.get(param.dst.imageType, SAME_DEPTH)

    def run() -> None:
        first, second = along_x.largest_sum(), along_y.largest_sum()
        if is_beyond_int(target, max(first, first * second / LARGEST_PIXEL) + abs(delta)):
            weights = (kernel.values.astype(np.float64) for kernel in (along_x, along_y))
            saturate(target, filtered(source, cv2.CV_64F, *weights))
        else:
            settle(target, filtered(source, depth, along_x.values, along_y.values, dst=target))

    return run


hb_dsp_sep_filter2d = cv_op(hbDSPCvSepFilter2DParam, sep_filter2d, instructions=20)
