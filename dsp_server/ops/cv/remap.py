"""Remap, command 0x80f: each pixel from where a map says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import warp
from dsp_server.ops.cv.op import Planes, cv_op, view
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.warps import hbDSPCvRemapParam


def remap(param: hbDSPCvRemapParam, src: Planes, dst: Planes) -> None:
    """dst(x, y) = src(map(x, y)): the nearest pixel, or a blend of the four around it, in float32.

    A map of float64 is rounded to float32 first. A pair that is no number, or infinite, lies outside src with a
    constant border, and gives no particular value with a replicated one. For NV12 the UV plane takes the entries of
    even x and y, halved, and its constant border is 128.

    Source: VP operator manual (J6), Remap. Emulator: how UV is mapped is its choice.
    """
    with np.errstate(over="ignore"):
        coordinates = view(param.extras()[0]).astype(np.float32, copy=False)
    for plane, (source, target) in enumerate(zip(src, dst, strict=True)):
        places = coordinates if plane == 0 else coordinates[::2, ::2] * np.float32(0.5)

        def look_up(
            pixels: NDArray[Any],
            out: NDArray[Any] | None,
            border: tuple[int, ...],
            places: NDArray[Any] = places,
        ) -> Any:
            # Both coordinates are in one array; OpenCV's types do not know that the second map may then be None.
            return cv2.remap(  # type: ignore[call-overload]
                pixels,
                places,
                None,
                param.interpolation,
                dst=out,
                borderMode=param.borderType,
                borderValue=border,
            )

        warp(plane, source, target, param.borderValue, look_up)


hb_dsp_remap = cv_op(hbDSPCvRemapParam, remap, instructions=60)
