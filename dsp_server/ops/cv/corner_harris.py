"""CornerHarris, command 0x803: how much of a corner each pixel is."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.op import Planes, Run, cv_op, settle, settled
from dsp_server.ops.cv.opencv import LARGEST_KEPT_BYTES, aligned_empty, cv2
from hbrt.cv.edges import hbDSPCvCornerHarrisParam
from hbrt.cv.image import Y_F32

S32_SCALES = {3: 2.0**30, 5: 2.0**23, 7: 2.0**16}
"""By kernelSize: a response is within -1..1, -81..81 or -10000..10000, so that it fits an int32."""


def corner_harris(param: hbDSPCvCornerHarrisParam, src: Planes, dst: Planes) -> Run:
    """R = det(A) - sensitivity * trace(A)^2, in float32; S32 holds R * 2^30, rounded to nearest.

    A is [[sum of dx^2, sum of dx dy], [sum of dx dy, sum of dy^2]] over the block of blockSize. dx and dy are Sobel
    derivatives, divided by 255 * 2^(kernelSize - 1) * blockSize. For kernelSize 5 and 7 the scale of S32 is 2^23 and
    2^16. Outside src, and outside the products, lies 0 with a constant border, the last one with a replicated one.

    Within 1e-6 T^2 of this, with T the largest trace(A) of the image; with kernelSize 7 within 1e-6 T^2 + 2e-6 T^1.5.

    Y of U8, to Y of S32 or F32.

    Source: VP operator manual (J6), CornerHarris. Emulator: the divisor is OpenCV's; the scale of S32 is its own.
    """
    corners = partial(
        cv2.cornerHarris, src[0], param.blockSize, param.kernelSize, param.sensitivity, borderType=param.borderType
    )
    if param.dst.imageType == Y_F32.type:
        return settled(dst[0], corners, dst=dst[0])
    target, scale = dst[0], S32_SCALES[param.kernelSize]

    def run() -> None:
        response = _responses.pop() if _responses else None
        if response is None or response.shape != target.shape:
            response = aligned_empty(target.shape, np.float32)
        settle(response, corners(dst=response))
        settle(target, cv2.addWeighted(response, scale, response, 0, 0, dst=target, dtype=cv2.CV_32S))
        if not _responses and response.nbytes <= LARGEST_KEPT_BYTES:
            _responses.append(response)

    return run


_responses: list[NDArray[np.float32]] = []
"""At most one image, kept for the next call. Taken out while in use: a call that interrupts another has its own."""

hb_dsp_corner_harris = cv_op(hbDSPCvCornerHarrisParam, corner_harris, instructions=24)
