"""Sobel, command 0x814: a derivative along rows or columns, smoothed across."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.edges import hbDSPCvSobelParam


def sobel(param: hbDSPCvSobelParam, src: Planes, dst: Planes) -> None:
    """Writes scale * (src correlated with the kernel) + delta, rounded to nearest, saturated to int16.

    For dx 1, dy 0, kernelSize 3 the kernel is [-1 0 1; -2 0 2; -1 0 1], for dx 0, dy 1 its transpose. In general it is
    the binomial smoothing of kernelSize, differenced dx times along rows and dy times along columns.

    Source: VP operator manual (J6), Sobel.
    """
    result = cv2.Sobel(
        src[0],
        cv2.CV_16S,
        param.dx,
        param.dy,
        dst=dst[0],
        ksize=param.kernelSize,
        scale=param.scale,
        delta=param.delta,
        borderType=param.borderType,
    )
    settle(dst[0], result)


hb_dsp_sobel = cv_op(hbDSPCvSobelParam, sobel, instructions=12)
