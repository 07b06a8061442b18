"""Transpose, command 0x816: rows become columns."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.flip_rotate import hbDSPCvTransposeParam


def transpose(param: hbDSPCvTransposeParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = src(y, x). Each plane of NV12 for itself.

    Y of U8, S16, S32 or F32, RGB, BGR or NV12, and dst the same.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the structure is its choice.
    """
    return in_turn(settled(target, cv2.transpose, source, dst=target) for source, target in zip(src, dst, strict=True))


hb_dsp_transpose = cv_op(hbDSPCvTransposeParam, transpose, instructions=4)
