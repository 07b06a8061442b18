"""SepFilter2D, command 0x813: a weighted sum along rows, then along columns."""

from __future__ import annotations

import numpy as np

from dsp_server.ops.cv.filter2d import DEPTHS, SAME_DEPTH
from dsp_server.ops.cv.kernels import LARGEST_PIXEL, is_beyond_int, saturate, weights
from dsp_server.ops.cv.op import Planes, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvSepFilter2DParam


def sep_filter2d(param: hbDSPCvSepFilter2DParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = delta + sum of kernelY(j) * kernelX(i) * src(x + i - pointLocX, y + j - pointLocY).

    In float32; U8 and S16 are rounded to nearest and saturate.

    Emulator: the structure is its choice.
    """
    along_x, largest_x = weights(param.kernelX, "kernelX")
    along_y, largest_y = weights(param.kernelY, "kernelY")
    anchor, border = (param.pointLocX, param.pointLocY), param.borderType
    largest = max(largest_x, largest_x * largest_y / LARGEST_PIXEL)
    if is_beyond_int(dst[0], largest + abs(param.delta)):
        whole_x, whole_y = along_x.astype(np.float64), along_y.astype(np.float64)
        exact = cv2.sepFilter2D(
            src[0], cv2.CV_64F, whole_x, whole_y, anchor=anchor, delta=param.delta, borderType=border
        )
        saturate(dst[0], exact)
        return
    depth = DEPTHS.get(param.dst.imageType, SAME_DEPTH)
    result = cv2.sepFilter2D(
        src[0], depth, along_x, along_y, dst=dst[0], anchor=anchor, delta=param.delta, borderType=border
    )
    settle(dst[0], result)


hb_dsp_sep_filter2d = cv_op(hbDSPCvSepFilter2DParam, sep_filter2d, instructions=20)
