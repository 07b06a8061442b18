"""PyrDown, command 0x80d: half the size, smoothed."""

from __future__ import annotations

from dsp_server.ops.cv.op import Planes, Run, cv_op, in_turn, settled
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import resize_planes
from hbrt.cv.enums import HB_VP_INTER_GAUSSIAN
from hbrt.cv.resize import hbDSPCvPyrDownParam


def pyr_down(param: hbDSPCvPyrDownParam, src: Planes, dst: Planes) -> Run:
    """GAUSSIAN: [1 4 6 4 1] / 16 both ways, then every second pixel from the first on. LINEAR: as Resize does it.

    The border is mirrored about its last pixel. Rounded to nearest, ties up. Each plane of NV12 for itself.

    U8: Y, RGB, BGR or NV12, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), Pyramid.
    Emulator: the weights and the border are OpenCV's.
    """
    if param.interpolation != HB_VP_INTER_GAUSSIAN:
        return resize_planes(src, dst, cv2.INTER_LINEAR)
    return in_turn(
        settled(target, cv2.pyrDown, source, dst=target, dstsize=(target.shape[1], target.shape[0]))
        for source, target in zip(src, dst, strict=True)
    )


hb_dsp_pyr_down = cv_op(hbDSPCvPyrDownParam, pyr_down, instructions=10)
