"""Sobel, command 0x814: a derivative along rows or columns, smoothed across."""

from __future__ import annotations

import numpy as np

from dsp_server.ops.cv.kernels import LARGEST_PIXEL, is_beyond_int, saturate
from dsp_server.ops.cv.op import Planes, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.edges import hbDSPCvSobelParam


def sobel(param: hbDSPCvSobelParam, src: Planes, dst: Planes) -> None:
    """Writes scale * (src correlated with the kernel) + delta, rounded to nearest, saturated to int16.

    For dx 1, dy 0, kernelSize 3 the kernel is [-1 0 1; -2 0 2; -1 0 1], for dx 0, dy 1 its transpose. In general it is
    the binomial smoothing of kernelSize, differenced dx times along rows and dy times along columns.

    Source: VP operator manual (J6), Sobel.
    """
    side, border = param.kernelSize, param.borderType
    largest = LARGEST_PIXEL * 4.0 ** (max(side, 3) - 1)  # no kernel has larger weights, each taken as positive
    if is_beyond_int(dst[0], largest * abs(param.scale) + abs(param.delta)):
        with np.errstate(over="ignore"):
            exact = cv2.Sobel(src[0], cv2.CV_64F, param.dx, param.dy, ksize=side, borderType=border) * param.scale
            saturate(dst[0], exact + param.delta)
        return
    result = cv2.Sobel(
        src[0],
        cv2.CV_16S,
        param.dx,
        param.dy,
        dst=dst[0],
        ksize=side,
        scale=param.scale,
        delta=param.delta,
        borderType=border,
    )
    settle(dst[0], result)


hb_dsp_sobel = cv_op(hbDSPCvSobelParam, sobel, instructions=12)
