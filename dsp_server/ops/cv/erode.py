"""Erode, command 0x807: the smallest pixel under a mask."""

from __future__ import annotations

from dsp_server.ops.cv.kernels import under_mask
from dsp_server.ops.cv.op import Planes, Run, cv_op
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvErodeParam


def erode(param: hbDSPCvErodeParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = min of src(x + i - (width - 1) / 2, y + j - (height - 1) / 2) where mask (i, j) is not 0.

    With a constant border pixels outside src never win; with a replicated one they are as the nearest pixel. The
    anchor differs from Dilate's for even sides.

    U8: Y, RGB or BGR, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Erode, for the anchor.
    Emulator: the border is OpenCV's.
    """
    anchor = ((param.kernel.width - 1) // 2, (param.kernel.height - 1) // 2)
    return under_mask(cv2.erode, param.kernel, src[0], dst[0], anchor=anchor, borderType=param.borderType)


hb_dsp_erode = cv_op(hbDSPCvErodeParam, erode, instructions=12)
