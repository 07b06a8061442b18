"""WarpPerspective, command 0x818: seen from elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import border_of
from dsp_server.ops.cv.op import Planes, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.warps import hbDSPCvWarpPerspectiveParam


def warp_perspective(param: hbDSPCvWarpPerspectiveParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = src((M11 x + M12 y + M13) / w, (M21 x + M22 y + M23) / w), with w = M31 x + M32 y + M33.

    M takes a point of dst to src, so it needs no inverse. Where w is 0 the pixel is src(0, 0). For NV12 the UV plane
    takes the same transform between images of half the size, and its constant border is 128.

    Source: VP operator manual (J6), WarpPerspective. Emulator: what a w of 0 gives is OpenCV's.
    """
    matrix = np.array(param.transformMatrix).reshape(3, 3)
    for plane, (source, target) in enumerate(zip(src, dst, strict=True)):
        result = cv2.warpPerspective(
            source,
            matrix if plane == 0 else _for_half(matrix),
            (target.shape[1], target.shape[0]),
            dst=target,
            flags=METHODS.get(param.interpolation, cv2.INTER_LINEAR) | cv2.WARP_INVERSE_MAP,
            borderMode=param.borderType,
            borderValue=border_of(plane, param.borderValue),
        )
        settle(target, result)


def _for_half(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """S M S^-1 with S = diag(1/2, 1/2, 1)."""
    half = matrix.copy()
    half[:2, 2] /= 2
    half[2, :2] *= 2
    return half


hb_dsp_warp_perspective = cv_op(hbDSPCvWarpPerspectiveParam, warp_perspective, instructions=80)
