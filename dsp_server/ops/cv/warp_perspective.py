"""WarpPerspective, command 0x818: seen from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import warp
from dsp_server.ops.cv.op import Planes, cv_op
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.places import look_up_at, places_beyond_opencv
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.warps import hbDSPCvWarpPerspectiveParam


def warp_perspective(param: hbDSPCvWarpPerspectiveParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = src((M11 x + M12 y + M13) / w, (M21 x + M22 y + M23) / w), with w = M31 x + M32 y + M33.

    M takes a point of dst to src, so it needs no inverse. A pixel whose w is 0 lies outside src. For NV12 the UV plane
    takes the same transform between images of half the size, and its constant border is 128.

    Source: VP operator manual (J6), WarpPerspective. Emulator: what a w of 0 gives is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(3, 3)
    matrix = np.ldexp(matrix, -np.frexp(np.abs(matrix).max())[1])  # the same transform, and no sum of it overflows
    flags = METHODS.get(param.interpolation, cv2.INTER_LINEAR) | cv2.WARP_INVERSE_MAP
    for plane, (source, target) in enumerate(zip(src, dst, strict=True)):
        transform = matrix if plane == 0 else _for_half(matrix)
        height, width = target.shape[:2]
        size, places = (width, height), places_beyond_opencv(transform, height, width)

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
            return cv2.warpPerspective(
                pixels, transform, size, dst=out, flags=flags, borderMode=param.borderType, borderValue=border
            )

        warp(plane, source, target, param.borderValue, look_up)


def _for_half(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """S M S^-1 with S = diag(1/2, 1/2, 1)."""
    half = matrix.copy()
    half[:2, 2] /= 2
    half[2, :2] *= 2
    return half


hb_dsp_warp_perspective = cv_op(hbDSPCvWarpPerspectiveParam, warp_perspective, instructions=80)
