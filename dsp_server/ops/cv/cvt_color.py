"""CvtColor, command 0x804: NV12, RGB, BGR and Y into one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import NEUTRAL_CHROMA
from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settle, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.image import BGR, KINDS, NV12, RGB, Y_U8
from hbrt.cv.pointwise import hbDSPCvCvtColorParam

ONE_PLANE = {
    (RGB, BGR): cv2.COLOR_RGB2BGR,
    (BGR, RGB): cv2.COLOR_BGR2RGB,
    (RGB, Y_U8): cv2.COLOR_RGB2GRAY,
    (BGR, Y_U8): cv2.COLOR_BGR2GRAY,
    (Y_U8, RGB): cv2.COLOR_GRAY2RGB,
    (Y_U8, BGR): cv2.COLOR_GRAY2BGR,
}
TO_I420 = {RGB: cv2.COLOR_RGB2YUV_I420, BGR: cv2.COLOR_BGR2YUV_I420}
FROM_NV12 = {RGB: cv2.COLOR_YUV2RGB_NV12, BGR: cv2.COLOR_YUV2BGR_NV12}


def cvt_color(param: hbDSPCvCvtColorParam, src: Planes, dst: Planes) -> Run:
    """The conversion that the two formats name.

    Between RGB and NV12: BT.601 with a limited range (16..235 luma, 16..240 chroma). NV12 has the chroma of the first
    pixel of each 2 x 2; all four get it back. RGB to Y: 0.299 R + 0.587 G + 0.114 B over 0..255. Y to RGB copies Y to
    the three channels. Between NV12 and Y the luma goes over as it is, and chroma becomes 128.

    U8: Y, RGB, BGR and NV12; dst has another one of these formats.

    Source: ITU-R BT.601, the luma and color-difference equations, https://www.itu.int/rec/R-REC-BT.601
    Emulator: which conversions there are, and their matrices, are its choice.
    """
    have = KINDS[param.src.imageFormat, param.src.imageType]
    want = KINDS[param.dst.imageFormat, param.dst.imageType]
    if have is NV12 and want is Y_U8:
        return lambda: np.copyto(dst[0], src[0])
    if have is NV12:
        return settled(dst[0], cv2.cvtColorTwoPlane, src[0], src[1], FROM_NV12[want], dst=dst[0])
    if want is not NV12:
        return settled(dst[0], cv2.cvtColor, src[0], ONE_PLANE[have, want], dst=dst[0])
    if have is Y_U8:
        return in_turn([lambda: np.copyto(dst[0], src[0]), lambda: np.copyto(dst[1], NEUTRAL_CHROMA)])
    return lambda: _to_nv12(src[0], TO_I420[have], dst)


def _to_nv12(source: NDArray[Any], code: int, dst: Planes) -> None:
    """By way of I420, whose planes of U and V lie one after the other: OpenCV has no conversion to NV12."""
    height, width = source.shape[:2]
    planar = cv2.cvtColor(source, code)
    dst[0][...] = planar[:height]
    u, v = planar[height:].reshape(2, height // 2, width // 2)
    settle(dst[1], cv2.merge((u, v), dst=dst[1]))


hb_dsp_cvt_color = cv_op(hbDSPCvCvtColorParam, cvt_color, instructions=12)
