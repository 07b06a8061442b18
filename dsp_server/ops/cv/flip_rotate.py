"""Flips, rotations and the transpose: pixels move but keep their values."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.flip_rotate import hbDSPCvFlipParam, hbDSPCvRotateParam, hbDSPCvTransposeParam

# Flip, command 0x809: vertically, horizontally, or both.


def flip(param: hbDSPCvFlipParam, src: Planes, dst: Planes) -> Run:
    """Code 0: dst(x, y) = src(x, H - 1 - y); 1: src(W - 1 - x, y); -1: both. NV12: each plane separately.

    src: Y of U8, S16, S32 or F32, RGB, BGR or NV12; dst: the same.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the codes are its choice; they equal OpenCV's.
    """
    return in_turn(
        settled(target, cv2.flip, source, param.flipCode, dst=target) for source, target in zip(src, dst, strict=True)
    )


hb_dsp_flip = cv_op(hbDSPCvFlipParam, flip, instructions=3)


# Rotate, command 0x812: by a quarter turn or a half turn.


def rotate(param: hbDSPCvRotateParam, src: Planes, dst: Planes) -> Run:
    """90 right: dst(x, y) = src(y, H - 1 - x); 180: src(W - 1 - x, H - 1 - y); 90 left: src(W - 1 - y, x).

    W and H are those of src. NV12: each plane separately.

    src: Y of U8, S16, S32 or F32, RGB, BGR or NV12; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Rotate.
    Emulator: the codes' numbers are its choice; they equal OpenCV's.
    """
    return in_turn(
        settled(target, cv2.rotate, source, param.rotateCode, dst=target)
        for source, target in zip(src, dst, strict=True)
    )


hb_dsp_rotate = cv_op(hbDSPCvRotateParam, rotate, instructions=4)


# Transpose, command 0x816: rows become columns.


def transpose(param: hbDSPCvTransposeParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = src(y, x). NV12: each plane separately.

    src: Y of U8, S16, S32 or F32, RGB, BGR or NV12; dst: the same.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    Emulator: the structure is the emulator's choice.
    """
    return in_turn(settled(target, cv2.transpose, source, dst=target) for source, target in zip(src, dst, strict=True))


hb_dsp_transpose = cv_op(hbDSPCvTransposeParam, transpose, instructions=4)
