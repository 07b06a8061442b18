"""MedianBlur, command 0x80c: the middle value of a square."""

from __future__ import annotations

import numpy as np

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvMedianBlurParam


def median_blur(param: hbDSPCvMedianBlurParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = median of the square of maskWidth around the pixel, each channel for itself, the border replicated.

    U8: Y, RGB or BGR, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), MedianBlur.
    Emulator: the border is OpenCV's.
    """
    if param.maskWidth == 1:  # OpenCV would want 3 at least
        return lambda: np.copyto(dst[0], src[0])
    return settled(dst[0], cv2.medianBlur, src[0], param.maskWidth, dst=dst[0])


hb_dsp_median_blur = cv_op(hbDSPCvMedianBlurParam, median_blur, instructions=60)
