"""Pixels from elsewhere: by a map or by a transform of the plane, including those OpenCV's warps cannot handle."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import LookUp, Matrix, warp, warp_by
from dsp_server.ops.cv.op import Planes, Run, cv_op, view
from dsp_server.ops.cv.opencv import cv2
from dsp_server.ops.cv.resize import METHODS
from hbrt.cv.enums import HB_VP_BORDER_CONSTANT, HB_VP_INTER_LINEAR, HB_VP_INTER_NEAREST
from hbrt.cv.image import NV12
from hbrt.cv.warps import hbDSPCvRemapParam, hbDSPCvWarpAffineParam, hbDSPCvWarpPerspectiveParam

FAR_OUTSIDE = np.float32(-1e6)
"""A coordinate outside every image."""

WHAT_AN_INT_REACHES = 2.0**30
"""OpenCV converts coordinates to int. One that is farther away would wrap around to the other side of the image."""


# Remap, command 0x80f: takes each pixel from where a map says.


def remap(param: hbDSPCvRemapParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = src(map(x, y)): the nearest pixel, or a blend of the four around it, in float32.

    A float64 map is first rounded to float32. A pair that is not finite, or 2^31 pixels away, is outside src with a
    constant border, and gives an unspecified value with a replicated one. For NV12 the UV plane uses the entries with
    even x and y, halved, and its constant border is 128.

    Pixels outside src are borderValue with a constant border, the nearest pixel with a replicated one. src: Y of U8,
    S16 or F32, RGB, BGR or NV12; dst: the same; the map is F32C2 or F64C2.

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
        return fill(0, table)  # OpenCV takes the map as it is: no extra step per call

    def run() -> None:
        coordinates = _prepared(table, takes_any=takes_any)
        fill(0, coordinates)()
        if len(src) > 1:
            fill(1, coordinates[::2, ::2] * np.float32(0.5))()

    return run


def _takes_any_map(param: hbDSPCvRemapParam, dtype: np.dtype[Any]) -> bool:
    """Whether non-finite pairs need no special handling: OpenCV blends NaN for them, which is 0 in 8 bits.

    So a constant border of 0 in 8 bits is right as is, and so is nearest-pixel lookup.
    """
    is_one_plane_of_8_bits = param.src.imageFormat != NV12.format and dtype == np.uint8
    return (
        param.interpolation == HB_VP_INTER_NEAREST
        or param.borderType != HB_VP_BORDER_CONSTANT
        or (is_one_plane_of_8_bits and param.borderValue == 0)
    )


def _prepared(table: NDArray[Any], *, takes_any: bool) -> NDArray[np.float32]:
    """Return the map in float32; non-finite pairs are moved far outside if that makes a difference."""
    with np.errstate(over="ignore", invalid="ignore"):
        coordinates: NDArray[np.float32] = table.astype(np.float32, copy=False)
        if takes_any or math.isfinite(cv2.norm(coordinates, cv2.NORM_L2SQR)):
            return coordinates
        return np.where(np.isfinite(coordinates).all(axis=2, keepdims=True), coordinates, FAR_OUTSIDE)


hb_dsp_remap = cv_op(hbDSPCvRemapParam, remap, instructions=60)


# WarpAffine, command 0x817: scale, rotate, shear, translate.


def warp_affine(param: hbDSPCvWarpAffineParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(M p) = src(p): M maps a point of src to dst, so dst(q) is looked up at the inverse of M.

    For NV12 the UV plane uses M with its translation halved, and its constant border is 128.

    Takes the nearest pixel, or a blend of the four around the point. Pixels outside src are borderValue with a constant
    border, the nearest pixel with a replicated one. src in U8: Y, RGB, BGR or NV12; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), WarpAffine, whose text maps forward.
    Emulator: the interpretation "forward" is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(2, 3)
    return warp_by(matrix, _half_affine(matrix), partial(_affine, param), src, dst, param.borderValue)


def _affine(param: hbDSPCvWarpAffineParam, transform: Matrix, height: int, width: int) -> LookUp:
    border_type, to_source = param.borderType, _inverse(transform)
    if is_beyond_opencv(to_source, height, width):
        return look_up_through(to_source, height, width, param.interpolation, border_type)
    flags = METHODS.get(param.interpolation, cv2.INTER_LINEAR)
    return lambda pixels, out, border: cv2.warpAffine(
        pixels, transform, (width, height), dst=out, flags=flags, borderMode=border_type, borderValue=border
    )


def _inverse(matrix: Matrix) -> Matrix:
    """Return what maps a point of the result to src, 3 x 3."""
    (a, b, c), (d, e, f) = matrix.tolist()
    determinant = a * e - b * d
    with np.errstate(all="ignore"):
        turned: Matrix = np.array([[e, -b, 0.0], [-d, a, 0.0], [0.0, 0.0, determinant]]) / determinant
        turned[:2, 2] = -(turned[:2, :2] @ (c, f))
    return turned


def _half_affine(matrix: Matrix) -> Matrix:
    """Return the same transform between images of half the size."""
    half = matrix.copy()
    half[:, 2] /= 2
    return half


hb_dsp_warp_affine = cv_op(hbDSPCvWarpAffineParam, warp_affine, instructions=60)


# WarpPerspective, command 0x818: the view from elsewhere.


def warp_perspective(param: hbDSPCvWarpPerspectiveParam, src: Planes, dst: Planes) -> Run:
    """Compute dst(x, y) = src((M11 x + M12 y + M13) / w, (M21 x + M22 y + M23) / w), with w = M31 x + M32 y + M33.

    M maps a point of dst to src, so it needs no inverse. A pixel whose w is 0 is outside src. For NV12 the UV plane
    uses the same transform between images of half the size, and its constant border is 128.

    Takes the nearest pixel, or a blend of the four around the point. Pixels outside src are borderValue with a constant
    border, the nearest pixel with a replicated one. src in U8: Y, RGB, BGR or NV12; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), WarpPerspective.
    Emulator: the result where w is 0 is its choice.
    """
    matrix = np.array(param.transformMatrix).reshape(3, 3)
    matrix = np.ldexp(matrix, -np.frexp(np.abs(matrix).max())[1])  # the same transform, whose sums cannot overflow
    return warp_by(matrix, _half_perspective(matrix), partial(_perspective, param), src, dst, param.borderValue)


def _perspective(param: hbDSPCvWarpPerspectiveParam, transform: Matrix, height: int, width: int) -> LookUp:
    border_type = param.borderType
    if is_beyond_opencv(transform, height, width):
        return look_up_through(transform, height, width, param.interpolation, border_type)
    flags = METHODS.get(param.interpolation, cv2.INTER_LINEAR) | cv2.WARP_INVERSE_MAP
    return lambda pixels, out, border: cv2.warpPerspective(
        pixels, transform, (width, height), dst=out, flags=flags, borderMode=border_type, borderValue=border
    )


def _half_perspective(matrix: Matrix) -> Matrix:
    """Return S M S^-1 with S = diag(1/2, 1/2, 1)."""
    half = matrix.copy()
    half[:2, 2] /= 2
    half[2, :2] *= 2
    return half


hb_dsp_warp_perspective = cv_op(hbDSPCvWarpPerspectiveParam, warp_perspective, instructions=80)


# Lookup by a map of coordinates, and the map of a matrix that OpenCV's own warps cannot handle.


def look_up_at(
    pixels: NDArray[Any],
    coordinates: NDArray[np.float32],
    out: NDArray[Any] | None,
    interpolation: int,
    border_type: int,
    border: tuple[int, ...],
) -> Any:
    """Return the pixels at these coordinates, (height, width, 2) of x and y; in `out` if given.

    16-bit pixels are blended as float32: OpenCV would look them up in steps of 1/32 pixel.
    """
    if pixels.dtype == np.int16 and interpolation == HB_VP_INTER_LINEAR:
        blended = look_up_at(pixels.astype(np.float32), coordinates, None, interpolation, border_type, border)
        with np.errstate(invalid="ignore"):  # NaN, from coordinates that no pixel has, beyond a replicated border
            return np.rint(blended, out=out, casting="unsafe")
    # Both coordinates are in one array; OpenCV's type hints do not know that the second map may then be None.
    return cv2.remap(  # type: ignore[call-overload]
        pixels, coordinates, None, interpolation, dst=out, borderMode=border_type, borderValue=border
    )


def look_up_through(to_source: Matrix, height: int, width: int, interpolation: int, border_type: int) -> LookUp:
    """Return what looks up a result's pixels by a matrix that OpenCV's own warp cannot handle.

    Args:
        to_source: See `is_beyond_opencv`, also for the next two.
        height: Rows of the result.
        width: Pixels per row.
        interpolation: HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR.
        border_type: HB_VP_BORDER_*.
    """

    def look_up(pixels: NDArray[Any], out: NDArray[Any] | None, border: tuple[int, ...]) -> Any:
        coordinates = coordinates_of(to_source, height, width)
        return look_up_at(pixels, coordinates, out, interpolation, border_type, border)

    return look_up


def is_beyond_opencv(to_source: Matrix, height: int, width: int) -> bool:
    """Whether OpenCV's own warp cannot handle a matrix, as it nearly always can.

    It cannot if the horizon of a perspective, w = 0, crosses the result, or if a coordinate does not fit in an int.
    Checking the corners is enough, since w and both numerators are linear.

    Args:
        to_source: 3 x 3; maps (x, y, 1) of the result to (u w, v w, w) of the source.
        height: Rows of the result.
        width: Pixels per row.
    """
    corners = [_at(to_source.tolist(), x, y) for x in (0, width - 1) for y in (0, height - 1)]
    divisors = [w for _, _, w in corners]
    nearest, farthest = min(map(abs, divisors)), max(max(abs(u), abs(v)) for u, v, _ in corners)
    is_one_side = min(divisors) > 0 or max(divisors) < 0
    return not (is_one_side and farthest < WHAT_AN_INT_REACHES * nearest)


def coordinates_of(to_source: Matrix, height: int, width: int) -> NDArray[np.float32]:
    """Return where a matrix finds a result's pixels; outside if w is 0. For the arguments see `is_beyond_opencv`."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    with np.errstate(all="ignore"):
        u, v, w = _at(to_source.tolist(), x, y)
        coordinates = np.stack([u / w, v / w], axis=-1)
    coordinates[(w == 0) | np.isnan(coordinates).any(axis=-1)] = FAR_OUTSIDE
    within: NDArray[np.float32] = np.clip(coordinates, FAR_OUTSIDE, -FAR_OUTSIDE).astype(np.float32)
    return within


def _at(m: list[list[float]], x: Any, y: Any) -> tuple[Any, Any, Any]:
    u, v, w = (row[0] * x + row[1] * y + row[2] for row in m)
    return u, v, w
