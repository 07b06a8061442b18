"""BilateralFilter, command 0x800: a mean of the pixels nearby that counts those of a similar value."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvBilateralFilterParam


def bilateral_filter(param: hbDSPCvBilateralFilterParam, src: Planes, dst: Planes) -> Run:
    """dst(p) = sum over q of w(q) src(q) / sum of w(q).

    w(q) = exp(-d(p, q)^2 / (2 sigmaSpace^2)) * exp(-dI^2 / (2 sigmaColor^2)), where dI is |src(p) - src(q)|, in color
    the sum over the channels. q runs over the disc of diameter kernelSize. Within 1 of this. Outside src lies 0 with a
    constant border, the nearest pixel with a replicated one.

    U8: Y, RGB or BGR, and dst the same.

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
