"""WarpAffine, command 0x817: scaled, turned, sheared, moved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import warp
from dsp_server.ops.cv.op import Planes, cv_op
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.places import look_up_at, places_beyond_opencv
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.warps import hbDSPCvWarpAffineParam


def warp_affine(param: hbDSPCvWarpAffineParam, src: Planes, dst: Planes) -> None:
    """dst(M p) = src(p): M takes a point of src to dst, so dst(q) is looked up at the inverse of M.

    For NV12 the UV plane takes M with its translation halved, and its constant border is 128.

    Source: VP operator manual (J6), WarpAffine, whose text maps forward. Emulator: the reading "forward" is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(2, 3)
    flags = METHODS.get(param.interpolation, cv2.INTER_LINEAR)
    for plane, (source, target) in enumerate(zip(src, dst, strict=True)):
        transform = matrix if plane == 0 else _for_half(matrix)
        height, width = target.shape[:2]
        size, places = (width, height), places_beyond_opencv(_inverse(transform), height, width)

        def look_up(
            pixels: NDArray[Any],
            out: NDArray[Any] | None,
            border: tuple[int, ...],
            transform: NDArray[np.float64] = transform,
            size: tuple[int, int] = size,
            places: NDArray[np.float32] | None = places,
        ) -> Any:
            if places is not None:
                return look_up_at(pixels, places, out, param.interpolation, param.borderType, border)
            return cv2.warpAffine(
                pixels, transform, size, dst=out, flags=flags, borderMode=param.borderType, borderValue=border
            )

        warp(plane, source, target, param.borderValue, look_up)


def _inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """What takes a point of the result to src, 3 x 3."""
    (a, b, c), (d, e, f) = matrix.tolist()
    determinant = a * e - b * d
    with np.errstate(all="ignore"):
        turned: NDArray[np.float64] = np.array([[e, -b, 0.0], [-d, a, 0.0], [0.0, 0.0, determinant]]) / determinant
        turned[:2, 2] = -(turned[:2, :2] @ (c, f))
    return turned


def _for_half(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same transform between images of half the size."""
    half = matrix.copy()
    half[:, 2] /= 2
    return half


hb_dsp_warp_affine = cv_op(hbDSPCvWarpAffineParam, warp_affine, instructions=60)
