"""Rotate, command 0x812: by a quarter of a turn, or half of one."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.flip_rotate import hbDSPCvRotateParam


def rotate(param: hbDSPCvRotateParam, src: Planes, dst: Planes) -> Run:
    """90 clockwise: dst(x, y) = src(y, H - 1 - x); 180: src(W - 1 - x, H - 1 - y); 90 the other way: src(W - 1 - y, x).

    W and H are those of src. Each plane of NV12 for itself.

    Y of U8, S16, S32 or F32, RGB, BGR or NV12, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Rotate.
    Emulator: the numbers of the codes are its choice, and OpenCV's.
    """
    return in_turn(
        settled(target, cv2.rotate, source, param.rotateCode, dst=target)
        for source, target in zip(src, dst, strict=True)
    )


hb_dsp_rotate = cv_op(hbDSPCvRotateParam, rotate, instructions=4)
