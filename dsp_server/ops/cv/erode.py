"""Erode, command 0x807: the smallest pixel under a mask."""

from __future__ import annotations

from functools import partial

from dsp_server.ops.cv.kernels import Mask
from dsp_server.ops.cv.op import Planes, Run, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvErodeParam


def erode(param: hbDSPCvErodeParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = min of src(x + i - (width - 1) / 2, y + j - (height - 1) / 2) where mask (i, j) is not 0.

    With a constant border pixels outside the image never win. The anchor differs from Dilate's for even sides.

    Source: VP operator manual (J6), Erode, for the anchor. Emulator: the border is OpenCV's.
    """
    mask = Mask(param.kernel)
    erode_under = partial(
        cv2.erode,
        src[0],
        mask.values,
        dst=dst[0],
        anchor=((param.kernel.width - 1) // 2, (param.kernel.height - 1) // 2),
        borderType=param.borderType,
    )

    def run() -> None:
        mask.check()
        settle(dst[0], erode_under())

    return run


hb_dsp_erode = cv_op(hbDSPCvErodeParam, erode, instructions=12)
