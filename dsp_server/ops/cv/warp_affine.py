"""WarpAffine, command 0x817: scaled, turned, sheared, moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import border_of
from dsp_server.ops.cv.op import Planes, cv_op, settle
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.warps import hbDSPCvWarpAffineParam


def warp_affine(param: hbDSPCvWarpAffineParam, src: Planes, dst: Planes) -> None:
    """dst(M p) = src(p): M takes a point of src to dst, so dst(q) is looked up at the inverse of M.

    For NV12 the UV plane takes M with its translation halved, and its constant border is 128.

    Source: VP operator manual (J6), WarpAffine, whose text maps forward. Emulator: the reading "forward" is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(2, 3)
    for plane, (source, target) in enumerate(zip(src, dst, strict=True)):
        result = cv2.warpAffine(
            source,
            matrix if plane == 0 else _for_half(matrix),
            (target.shape[1], target.shape[0]),
            dst=target,
            flags=METHODS.get(param.interpolation, cv2.INTER_LINEAR),
            borderMode=param.borderType,
            borderValue=border_of(plane, param.borderValue),
        )
        settle(target, result)


def _for_half(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same transform between images of half the size."""
    half = matrix.copy()
    half[:, 2] /= 2
    return half


hb_dsp_warp_affine = cv_op(hbDSPCvWarpAffineParam, warp_affine, instructions=60)
