"""Ops on pixel values: color conversion, thresholds, histogram equalization, and running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import NEUTRAL_CHROMA
from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settle, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.image import BGR, KINDS, NV12, RGB, Y_U8
from hbrt.cv.pointwise import (
    hbDSPCvCvtColorParam,
    hbDSPCvEqualizeHistParam,
    hbDSPCvIntegralParam,
    hbDSPCvThresholdParam,
)

ONE_PLANE = {
    (RGB, BGR): cv2.COLOR_RGB2BGR,
    (BGR, RGB): cv2.COLOR_BGR2RGB,
    (RGB, Y_U8): cv2.COLOR_RGB2GRAY,
    (BGR, Y_U8): cv2.COLOR_BGR2GRAY,
    (Y_U8, RGB): cv2.COLOR_GRAY2RGB,
    (Y_U8, BGR): cv2.COLOR_GRAY2BGR,
}
TO_I420 = {RGB: cv2.COLOR_RGB2YUV_I420, BGR: cv2.COLOR_BGR2YUV_I420}
FROM_NV12 = {RGB: cv2.COLOR_YUV2RGB_NV12, BGR: cv2.COLOR_YUV2BGR_NV12}


# CvtColor, command 0x804: converts between NV12, RGB, BGR and Y.


def cvt_color(param: hbDSPCvCvtColorParam, src: Planes, dst: Planes) -> Run:
    """Convert between the two given formats.

    Between RGB and NV12: BT.601 with limited range (16..235 luma, 16..240 chroma). NV12 takes the chroma of the first
    pixel of each 2 x 2; on the way back all four get it. RGB to Y: 0.299 R + 0.587 G + 0.114 B over 0..255. Y to RGB
    copies Y to the three channels. Between NV12 and Y the luma is copied, and chroma becomes 128.

    src in U8: Y, RGB, BGR or NV12; dst: another of these formats.

    Source: ITU-R BT.601, the luma and color-difference equations, https://www.itu.int/rec/R-REC-BT.601
    Emulator: the available conversions and their matrices are its choice.
    """
    have = KINDS[param.src.imageFormat, param.src.imageType]
    want = KINDS[param.dst.imageFormat, param.dst.imageType]
    if have is NV12 and want is Y_U8:
        return lambda: np.copyto(dst[0], src[0])
    if have is NV12:
        return settled(dst[0], cv2.cvtColorTwoPlane, src[0], src[1], FROM_NV12[want], dst=dst[0])
    if want is not NV12:
        return settled(dst[0], cv2.cvtColor, src[0], ONE_PLANE[have, want], dst=dst[0])
    if have is Y_U8:
        return in_turn([lambda: np.copyto(dst[0], src[0]), lambda: np.copyto(dst[1], NEUTRAL_CHROMA)])
    return lambda: _to_nv12(src[0], TO_I420[have], dst)


def _to_nv12(source: NDArray[Any], code: int, dst: Planes) -> None:
    """Convert via I420, whose U and V planes follow each other: OpenCV has no conversion to NV12."""
    height, width = source.shape[:2]
    planar = cv2.cvtColor(source, code)
    dst[0][...] = planar[:height]
    u, v = planar[height:].reshape(2, height // 2, width // 2)
    settle(dst[1], cv2.merge((u, v), dst=dst[1]))


hb_dsp_cvt_color = cv_op(hbDSPCvCvtColorParam, cvt_color, instructions=12)


# EqualizeHist, command 0x806: spreads gray values so that all are about equally frequent.


def equalize_hist(param: hbDSPCvEqualizeHistParam, src: Planes, dst: Planes) -> Run:
    """Write round(255 * (cdf(src) - h) / (pixels - h)), where h is the count of the smallest value that occurs.

    cdf(v) is the number of pixels with a value of at most v. An image with only one value does not change.

    src: Y of U8; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), EqualizeHist.
    Emulator: the exact formula is OpenCV's.
    """
    return settled(dst[0], cv2.equalizeHist, src[0], dst=dst[0])


hb_dsp_equalize_hist = cv_op(hbDSPCvEqualizeHistParam, equalize_hist, instructions=20)


# Integral, command 0x80b: the sum of all pixels above and to the left.


def integral(param: hbDSPCvIntegralParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(X, Y) = sum of src(x, y) over x < X and y < Y; the first row and column are 0.

    src: Y of U8; dst: Y of S32.

    Source: VP operator manual (J6 OE 3.0.17), Integral.
    Emulator: dst is larger by one in both directions, so that it has every sum.
    """
    return settled(dst[0], cv2.integral, src[0], sum=dst[0], sdepth=cv2.CV_32S)


hb_dsp_integral = cv_op(hbDSPCvIntegralParam, integral, instructions=8)


# Threshold, command 0x815: separates pixels above a value from the others.


def threshold(param: hbDSPCvThresholdParam, src: Planes, dst: Planes) -> Run:
    """Write for a pixel above thresh, and for any other: BINARY maxVal, 0; BINARY_INV 0, maxVal.

    TRUNC thresh, itself; TOZERO itself, 0; TOZERO_INV 0, itself. The result for NaN is undefined.

    src: Y of U8, S16 or F32; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Threshold, which describes the five types.
    Emulator: all five are implemented.
    """
    source, target, numbers = src[0], dst[0], (param.thresh, param.maxVal, param.type)
    return lambda: settle(target, cv2.threshold(source, *numbers, dst=target)[1])


hb_dsp_threshold = cv_op(hbDSPCvThresholdParam, threshold, instructions=3)
