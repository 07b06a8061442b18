"""EqualizeHist, command 0x806: gray values spread so that each is about as frequent as the next."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.pointwise import hbDSPCvEqualizeHistParam


def equalize_hist(param: hbDSPCvEqualizeHistParam, src: Planes, dst: Planes) -> Run:
    """Writes round(255 * (cdf(src) - h) / (pixels - h)), with h the count of the smallest value that occurs.

    cdf(v) counts the pixels of v or less. An image of one value stays as it is.

    Y of U8, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), EqualizeHist.
    Emulator: the exact formula is OpenCV's.
    """
    return settled(dst[0], cv2.equalizeHist, src[0], dst=dst[0])


hb_dsp_equalize_hist = cv_op(hbDSPCvEqualizeHistParam, equalize_hist, instructions=20)
