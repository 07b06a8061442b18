"""Integral, command 0x80b: the sum of all pixels above and to the left."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.pointwise import hbDSPCvIntegralParam


def integral(param: hbDSPCvIntegralParam, src: Planes, dst: Planes) -> Run:
    """dst(X, Y) = sum of src(x, y) over x < X and y < Y; its first row and column are 0.

    Y of U8, to Y of S32.

    Source: VP operator manual (J6 OE 3.0.17), Integral.
    Emulator: dst is larger by one both ways, so that it has every sum.
    """
    return settled(dst[0], cv2.integral, src[0], sum=dst[0], sdepth=cv2.CV_32S)


hb_dsp_integral = cv_op(hbDSPCvIntegralParam, integral, instructions=8)
