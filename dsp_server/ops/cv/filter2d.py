"""Filter2D, command 0x808: a weighted sum of a window, with the caller's weights."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, cv_op, settle, view
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvFilter2DParam
from hbrt.cv.image import ELEMENTS, hbVPImageType

DEPTHS = {"uint8": cv2.CV_8U, "int16": cv2.CV_16S, "float32": cv2.CV_32F}
"""OpenCV's number of each element type that a filter writes."""


def filter2d(param: hbDSPCvFilter2DParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = delta + sum of kernel(i, j) * src(x + i - pointLocX, y + j - pointLocY): a correlation.

    In float32; U8 and S16 are rounded to nearest and saturate.

    Source: VP operator manual (J6), Filter2D.
    """
    result = cv2.filter2D(
        src[0],
        DEPTHS[ELEMENTS[hbVPImageType(param.dst.imageType)].dtype],
        view(param.kernel.plane()),
        dst=dst[0],
        anchor=(param.pointLocX, param.pointLocY),
        delta=param.delta,
        borderType=param.borderType,
    )
    settle(dst[0], result)


hb_dsp_filter2d = cv_op(hbDSPCvFilter2DParam, filter2d, instructions=40)
