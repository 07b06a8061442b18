"""WarpAffine, command 0x817: scaled, turned, sheared, moved."""

from __future__ import annotations

from functools import partial

import numpy as np

from dsp_server.ops.cv.coordinates import is_beyond_opencv, look_up_through
from dsp_server.ops.cv.nv12 import LookUp, Matrix, warp_by
from dsp_server.ops.cv.op import Planes, Run, cv_op
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.warps import hbDSPCvWarpAffineParam


def warp_affine(param: hbDSPCvWarpAffineParam, src: Planes, dst: Planes) -> Run:
    """dst(M p) = src(p): M takes a point of src to dst, so dst(q) is looked up at the inverse of M.

    For NV12 the UV plane takes M with its translation halved, and its constant border is 128.

    The nearest pixel, or a blend of the four around the place. With a constant border a pixel outside src is
    borderValue, with a replicated one the nearest. U8: Y, RGB, BGR or NV12, and dst the same.

    Source: VP operator manual (J6 OE 3.0.17), WarpAffine, whose text maps forward.
    Emulator: the reading "forward" is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(2, 3)
    return warp_by(matrix, _for_half(matrix), partial(_moved, param), src, dst, param.borderValue)


def _moved(param: hbDSPCvWarpAffineParam, transform: Matrix, height: int, width: int) -> LookUp:
    border_type, to_source = param.borderType, _inverse(transform)
    if is_beyond_opencv(to_source, height, width):
        return look_up_through(to_source, height, width, param.interpolation, border_type)
    flags = METHODS.get(param.interpolation, cv2.INTER_LINEAR)
    return lambda pixels, out, border: cv2.warpAffine(
        pixels, transform, (width, height), dst=out, flags=flags, borderMode=border_type, borderValue=border
    )


def _inverse(matrix: Matrix) -> Matrix:
    """What takes a point of the result to src, 3 x 3."""
    (a, b, c), (d, e, f) = matrix.tolist()
    determinant = a * e - b * d
    with np.errstate(all="ignore"):
        turned: Matrix = np.array([[e, -b, 0.0], [-d, a, 0.0], [0.0, 0.0, determinant]]) / determinant
        turned[:2, 2] = -(turned[:2, :2] @ (c, f))
    return turned


def _for_half(matrix: Matrix) -> Matrix:
    """The same transform between images of half the size."""
    half = matrix.copy()
    half[:, 2] /= 2
    return half


hb_dsp_warp_affine = cv_op(hbDSPCvWarpAffineParam, warp_affine, instructions=60)
