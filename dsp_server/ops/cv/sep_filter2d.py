"""SepFilter2D, command 0x813: a weighted sum along rows, then along columns."""

from __future__ import annotations

from functools import partial

import numpy as np

from dsp_server.ops.cv.filter2d import DEPTHS, SAME_DEPTH
from dsp_server.ops.cv.kernels import LARGEST_PIXEL, Weights, is_beyond_int, saturate
from dsp_server.ops.cv.op import Planes, Run, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvSepFilter2DParam


def sep_filter2d(param: hbDSPCvSepFilter2DParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = delta + sum of kernelY(j) * kernelX(i) * src(x + i - pointLocX, y + j - pointLocY).

    In float32; U8 and S16 are rounded to nearest and saturate. Outside src lies 0 with a constant border, the nearest
    pixel with a replicated one.

    U8: Y, RGB or BGR, and dst the same; Y also to S16 or F32.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the structure is its choice.
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
