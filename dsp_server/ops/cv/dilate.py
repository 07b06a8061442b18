"""Dilate, command 0x805: the largest pixel under a mask."""

from __future__ import annotations

from dsp_server.ops.cv.kernels import under_mask
from dsp_server.ops.cv.op import Planes, Run, cv_op
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvDilateParam


def dilate(param: hbDSPCvDilateParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = max of src(x + i - width / 2, y + j - height / 2) where the mask's element (i, j) is not 0.

    With a constant border pixels outside src never win; with a replicated one they are as the nearest pixel.

    U8: Y, RGB or BGR, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Dilate, for the anchor.
    Emulator: the border is OpenCV's.
    """
    anchor = (param.kernel.width // 2, param.kernel.height // 2)
    return under_mask(cv2.dilate, param.kernel, src[0], dst[0], anchor=anchor, borderType=param.borderType)


hb_dsp_dilate = cv_op(hbDSPCvDilateParam, dilate, instructions=12)
