"""Resize, command 0x810: another width and height."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.enums import HB_VP_INTER_NEAREST
from hbrt.cv.resize import hbDSPCvResizeParam

METHODS = {HB_VP_INTER_NEAREST: cv2.INTER_NEAREST}


def resize(param: hbDSPCvResizeParam, src: Planes, dst: Planes) -> Run:
    """With scale = size of src / size of dst, for each direction; each plane of NV12 for itself.

    NEAREST: dst(x) = src(floor(x * scale)), in float64: where x * scale is whole, it may come out one less. LINEAR: a
    blend of the two pixels around (x + 0.5) * scale - 0.5, the border replicated; in U8 the weights have 11 bits, and
    the result is within 1 of the exact one.

    Y of U8, S16 or F32, RGB, BGR or NV12, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Resize.
    Emulator: that pixels have their centers at .5 is OpenCV's.
    """
    return resize_planes(src, dst, METHODS.get(param.interpolation, cv2.INTER_LINEAR))


def resize_planes(src: Planes, dst: Planes, method: int) -> Run:
    """Each plane to the size of its target."""
    return in_turn(
        settled(target, cv2.resize, source, (target.shape[1], target.shape[0]), dst=target, interpolation=method)
        for source, target in zip(src, dst, strict=True)
    )


hb_dsp_resize = cv_op(hbDSPCvResizeParam, resize, instructions=10)
