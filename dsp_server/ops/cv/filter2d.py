"""Filter2D, command 0x808: a weighted sum of a window, with the caller's weights."""

from __future__ import annotations

from functools import partial

import numpy as np

from dsp_server.ops.cv.kernels import Weights, is_beyond_int, saturate
from dsp_server.ops.cv.op import Planes, Run, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvFilter2DParam
from hbrt.cv.image import Y_F32, Y_S16

SAME_DEPTH = -1
DEPTHS: dict[int, int] = {Y_S16.type: cv2.CV_16S, Y_F32.type: cv2.CV_32F}
"""OpenCV's number of the element types that a filter writes besides its source's own."""


def filter2d(param: hbDSPCvFilter2DParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = delta + sum of kernel(i, j) * src(x + i - pointLocX, y + j - pointLocY): a correlation.

    In float32; U8 and S16 are rounded to nearest and saturate. Outside src lies 0 with a constant border, the nearest
    pixel with a replicated one.

    U8: Y, RGB or BGR, and dst the same; Y also to S16 or F32.

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
