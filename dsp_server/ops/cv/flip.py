"""Flip, command 0x809: upside down, left to right, or both."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.flip_rotate import hbDSPCvFlipParam


def flip(param: hbDSPCvFlipParam, src: Planes, dst: Planes) -> Run:
    """Code 0: dst(x, y) = src(x, H - 1 - y); 1: src(W - 1 - x, y); -1: both. Each plane of NV12 for itself.

    Y of U8, S16, S32 or F32, RGB, BGR or NV12, and dst the same.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the codes are its choice, and OpenCV's.
    """
    return in_turn(
        settled(target, cv2.flip, source, param.flipCode, dst=target) for source, target in zip(src, dst, strict=True)
    )


hb_dsp_flip = cv_op(hbDSPCvFlipParam, flip, instructions=3)
