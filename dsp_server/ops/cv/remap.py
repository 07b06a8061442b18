"""Remap, command 0x80f: each pixel from where a map says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.coordinates import FAR_OUTSIDE, look_up_at
from dsp_server.ops.cv.nv12 import warp
from dsp_server.ops.cv.op import Planes, Run, cv_op, view
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.enums import HB_VP_BORDER_CONSTANT, HB_VP_INTER_NEAREST
from hbrt.cv.image import NV12
from hbrt.cv.warps import hbDSPCvRemapParam


def remap(param: hbDSPCvRemapParam, src: Planes, dst: Planes) -> Run:
    """dst(x, y) = src(map(x, y)): the nearest pixel, or a blend of the four around it, in float32.

    A map of float64 is rounded to float32 first. A pair that is not finite, or 2^31 pixels away, lies outside src with
    a constant border, and gives no particular value with a replicated one. For NV12 the UV plane takes the entries of
    even x and y, halved, and its constant border is 128.

    With a constant border a pixel outside src is borderValue, with a replicated one the nearest. Y of U8, S16 or F32,
    RGB, BGR or NV12, and dst the same; the map is F32C2 or F64C2.

    Source: VP operator manual (J6 OE 3.0.17), Remap.
    Emulator: how UV is mapped is its choice.
    """
    table = view(param.extras()[0])
    takes_any = _takes_any_map(param, src[0].dtype)

    def fill(plane: int, coordinates: NDArray[np.float32]) -> Run:
        def look_up(pixels: NDArray[Any], out: NDArray[Any] | None, border: tuple[int, ...]) -> Any:
            return look_up_at(pixels, coordinates, out, param.interpolation, param.borderType, border)

        return warp(plane, src[plane], dst[plane], param.borderValue, look_up)

    if takes_any and table.dtype == np.float32 and len(src) == 1:
        return fill(0, table)  # the map is what OpenCV takes: no step of its own at each call

    def run() -> None:
        coordinates = _prepared(table, takes_any=takes_any)
        fill(0, coordinates)()
        if len(src) > 1:
            fill(1, coordinates[::2, ::2] * np.float32(0.5))()

    return run


def _takes_any_map(param: hbDSPCvRemapParam, dtype: np.dtype[Any]) -> bool:
    """Whether pairs that are not finite need no care: OpenCV blends NaN for them, which is 0 in 8 bits.

    So a constant border of 0 in 8 bits is right by itself, as is the look-up of the nearest pixel.
    """
    is_one_plane_of_8_bits = param.src.imageFormat != NV12.format and dtype == np.uint8
    return (
        param.interpolation == HB_VP_INTER_NEAREST
        or param.borderType != HB_VP_BORDER_CONSTANT
        or (is_one_plane_of_8_bits and param.borderValue == 0)
    )


def _prepared(table: NDArray[Any], *, takes_any: bool) -> NDArray[np.float32]:
    """The map in float32; pairs that are not finite lie far outside, where that makes a difference."""
    with np.errstate(over="ignore", invalid="ignore"):
        coordinates: NDArray[np.float32] = table.astype(np.float32, copy=False)
        if takes_any or math.isfinite(cv2.norm(coordinates, cv2.NORM_L2SQR)):
            return coordinates
        return np.where(np.isfinite(coordinates).all(axis=2, keepdims=True), coordinates, FAR_OUTSIDE)


hb_dsp_remap = cv_op(hbDSPCvRemapParam, remap, instructions=60)
