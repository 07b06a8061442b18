"""Canny, command 0x802: edges one pixel wide."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.edges import hbDSPCvCannyParam
from hbrt.cv.enums import HB_VP_NORM_L2

ABOVE_EVERY_GRADIENT = 2.0**20
"""No |dx| + |dy| reaches it; OpenCV makes an int of a threshold, which one of 2^31 is not."""


def canny(param: hbDSPCvCannyParam, src: Planes, dst: Planes) -> Run:
    """255 on an edge, 0 elsewhere.

    1. dx and dy by Sobel of kernelSize, the border replicated; the gradient is |dx| + |dy|, or its length under L2.
       With kernelSize 7 dx and dy are divided by 16 and rounded to nearest, and both thresholds are divided by 16.
    2. A pixel stays when its gradient is the largest across the edge, of four directions; docs/cv-ops.md has them.
    3. Those above threshold2 are edges, and those above threshold1 that touch an edge, in eight directions.

    Exact, but for kernelSize 5 under L2: there of two gradients above 4096 whose squares are within 2^-22 of each other
    either may count as the larger.

    Y of U8, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Canny.
    Emulator: the image is one tile, so `overlap` changes nothing.
    """
    return settled(
        dst[0],
        cv2.Canny,
        src[0],
        min(param.threshold1, ABOVE_EVERY_GRADIENT),
        min(param.threshold2, ABOVE_EVERY_GRADIENT),
        edges=dst[0],
        apertureSize=param.kernelSize,
        L2gradient=param.norm == HB_VP_NORM_L2,
    )


hb_dsp_canny = cv_op(hbDSPCvCannyParam, canny, instructions=60)
