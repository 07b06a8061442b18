"""Filter2D, command 0x808: a weighted sum of a window, with the caller's weights."""

from __future__ import annotations

import numpy as np

from dsp_server.ops.cv.kernels import is_beyond_int, saturate, weights
from dsp_server.ops.cv.op import Planes, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvFilter2DParam
from hbrt.cv.image import Y_F32, Y_S16

SAME_DEPTH = -1
DEPTHS: dict[int, int] = {Y_S16.type: cv2.CV_16S, Y_F32.type: cv2.CV_32F}
"""OpenCV's number of the element types that a filter writes besides its source's own."""


def filter2d(param: hbDSPCvFilter2DParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = delta + sum of kernel(i, j) * src(x + i - pointLocX, y + j - pointLocY): a correlation.

    In float32; U8 and S16 are rounded to nearest and saturate.

    Source: VP operator manual (J6), Filter2D.
    """
    kernel, largest = weights(param.kernel, "kernel")
    anchor, border = (param.pointLocX, param.pointLocY), param.borderType
    if is_beyond_int(dst[0], largest + abs(param.delta)):
        whole = kernel.astype(np.float64)
        exact = cv2.filter2D(src[0], cv2.CV_64F, whole, anchor=anchor, delta=param.delta, borderType=border)
        saturate(dst[0], exact)
        return
    depth = DEPTHS.get(param.dst.imageType, SAME_DEPTH)
    result = cv2.filter2D(src[0], depth, kernel, dst=dst[0], anchor=anchor, delta=param.delta, borderType=border)
    settle(dst[0], result)


hb_dsp_filter2d = cv_op(hbDSPCvFilter2DParam, filter2d, instructions=40)
