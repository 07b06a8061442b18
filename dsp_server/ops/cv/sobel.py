"""Sobel, command 0x814: a derivative along rows or columns, smoothed across."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.kernels import LARGEST_PIXEL, is_beyond_int, saturate
from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.edges import hbDSPCvSobelParam


def sobel(param: hbDSPCvSobelParam, src: Planes, dst: Planes) -> Run:
    """Writes scale * (src correlated with the kernel) + delta, rounded to nearest, saturated to int16.

    For dx 1, dy 0, kernelSize 3 the kernel is [-1 0 1; -2 0 2; -1 0 1], for dx 0, dy 1 its transpose. In general it is
    the binomial smoothing of kernelSize, differenced dx times along rows and dy times along columns. Outside
    src lies 0 with a constant border, the nearest pixel with a replicated one.

    Y of U8, to Y of S16.

    Source: VP operator manual (J6 OE 3.0.17), Sobel.
    """
    side, border = param.kernelSize, param.borderType
    largest = LARGEST_PIXEL * 4.0 ** (max(side, 3) - 1)  # no kernel has larger weights, each taken as positive
    if is_beyond_int(dst[0], largest * abs(param.scale) + abs(param.delta)):
        return lambda: _exactly(param, src[0], dst[0])
    return settled(
        dst[0],
        cv2.Sobel,
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


def _exactly(param: hbDSPCvSobelParam, source: NDArray[Any], target: NDArray[Any]) -> None:
    with np.errstate(over="ignore"):
        exact = cv2.Sobel(source, cv2.CV_64F, param.dx, param.dy, ksize=param.kernelSize, borderType=param.borderType)
        saturate(target, exact * param.scale + param.delta)


hb_dsp_sobel = cv_op(hbDSPCvSobelParam, sobel, instructions=12)
