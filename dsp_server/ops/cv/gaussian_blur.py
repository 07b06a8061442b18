"""GaussianBlur, command 0x80a: a mean with fixed binomial weights."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvGaussianBlurParam


def gaussian_blur(param: hbDSPCvGaussianBlurParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = sum of w(i) w(j) src(x + i, y + j), with w = [1 2 1] / 4 or [1 4 6 4 1] / 16 about 0; exact, ties up.

    Outside src lies 0 with a constant border, the nearest pixel with a replicated one.

    U8: Y, RGB or BGR, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), GaussianBlur.
    With a sigma of 0 OpenCV has these weights too.
    """
    return settled(
        dst[0], cv2.GaussianBlur, src[0], (param.kernelSize,) * 2, 0, dst=dst[0], borderType=param.borderType
    )


hb_dsp_gaussian_blur = cv_op(hbDSPCvGaussianBlurParam, gaussian_blur, instructions=12)
