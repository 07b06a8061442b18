"""BoxFilter, command 0x801: the mean, or the sum, of a window."""

from __future__ import annotations

import numpy as np

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvBoxFilterParam
from hbrt.cv.image import Y_S32

MISCOUNTED_AREA = 2
"""OpenCV 5.0 divides sums in 16 bits, and for this area only they overflow: two pixels of 255 give 0."""


def box_filter(param: hbDSPCvBoxFilterParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = sum of src over the window, divided by its area when `normalize` is 1.

    The window's element (pointLocX, pointLocY) lies on the pixel. The mean is within 1 of the exact one; a sum in U8
    takes 255 where it does not fit, one in S32 always fits. Outside src lies 0 with a constant border, the nearest
    pixel with a replicated one.

    U8: Y, RGB or BGR, and dst the same; a sum of Y also to S32.

    Source: VP operator manual (J6 OE 3.0.17), BoxFilter.
    """
    if param.normalize and param.kernelWidth * param.kernelHeight == MISCOUNTED_AREA:
        halves = np.full((param.kernelHeight, param.kernelWidth), 0.5, np.float32)
        anchor = (param.pointLocX, param.pointLocY)
        return settled(dst[0], cv2.filter2D, src[0], -1, halves, dst=dst[0], anchor=anchor, borderType=param.borderType)
    return settled(
        dst[0],
        cv2.boxFilter,
        src[0],
        cv2.CV_32S if param.dst.imageType == Y_S32.type else -1,
        (param.kernelWidth, param.kernelHeight),
        dst=dst[0],
        anchor=(param.pointLocX, param.pointLocY),
        normalize=bool(param.normalize),
        borderType=param.borderType,
    )


hb_dsp_box_filter = cv_op(hbDSPCvBoxFilterParam, box_filter, instructions=8)
