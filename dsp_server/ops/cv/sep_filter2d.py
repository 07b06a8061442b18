"""SepFilter2D, command 0x813: a weighted sum along rows, then along columns."""

from __future__ import annotations

from dsp_server.ops.cv.filter2d import DEPTHS, SAME_DEPTH
from dsp_server.ops.cv.op import Planes, cv_op, settle, view
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.filters import hbDSPCvSepFilter2DParam


def sep_filter2d(param: hbDSPCvSepFilter2DParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = delta + sum of kernelY(j) * kernelX(i) * src(x + i - pointLocX, y + j - pointLocY).

    In float32; U8 and S16 are rounded to nearest and saturate.

    Emulator: the structure is its choice.
    """
    result = cv2.sepFilter2D(
        src[0],
        DEPTHS.get(param.dst.imageType, SAME_DEPTH),
        view(param.kernelX.plane()),
        view(param.kernelY.plane()),
        dst=dst[0],
        anchor=(param.pointLocX, param.pointLocY),
        delta=param.delta,
        borderType=param.borderType,
    )
    settle(dst[0], result)


hb_dsp_sep_filter2d = cv_op(hbDSPCvSepFilter2DParam, sep_filter2d, instructions=20)
