"""WarpPerspective, command 0x818: seen from elsewhere."""

from __future__ import annotations

from functools import partial

import numpy as np

from dsp_server.ops.cv.coordinates import is_beyond_opencv, look_up_through
from dsp_server.ops.cv.nv12 import LookUp, Matrix, warp_by
from dsp_server.ops.cv.op import Planes, Run, cv_op
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.warps import hbDSPCvWarpPerspectiveParam


def warp_perspective(param: hbDSPCvWarpPerspectiveParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = src((M11 x + M12 y + M13) / w, (M21 x + M22 y + M23) / w), with w = M31 x + M32 y + M33.

    M takes a point of dst to src, so it needs no inverse. A pixel whose w is 0 lies outside src. For NV12 the UV plane
    takes the same transform between images of half the size, and its constant border is 128.

    The nearest pixel, or a blend of the four around the place. With a constant border a pixel outside src is
    borderValue, with a replicated one the nearest. U8: Y, RGB, BGR or NV12, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), WarpPerspective.
    Emulator: the result for a w of 0 is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(3, 3)
    matrix = np.ldexp(matrix, -np.frexp(np.abs(matrix).max())[1])  # the same transform, and no sum of it overflows
    return warp_by(matrix, _for_half(matrix), partial(_seen, param), src, dst, param.borderValue)


def _seen(param: hbDSPCvWarpPerspectiveParam, transform: Matrix, height: int, width: int) -> LookUp:
    border_type = param.borderType
    if is_beyond_opencv(transform, height, width):
        return look_up_through(transform, height, width, param.interpolation, border_type)
    flags = METHODS.get(param.interpolation, cv2.INTER_LINEAR) | cv2.WARP_INVERSE_MAP
    return lambda pixels, out, border: cv2.warpPerspective(
        pixels, transform, (width, height), dst=out, flags=flags, borderMode=border_type, borderValue=border
    )


def _for_half(matrix: Matrix) -> Matrix:
    """S M S^-1 with S = diag(1/2, 1/2, 1)."""
    half = matrix.copy()
    half[:2, 2] /= 2
    half[2, :2] *= 2
    return half


hb_dsp_warp_perspective = cv_op(hbDSPCvWarpPerspectiveParam, warp_perspective, instructions=80)
