"""Look-up by a map of coordinates, and the map of a matrix that OpenCV's own warps cannot follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.nv12 import LookUp, Matrix
from dsp_server.ops.cv.opencv import cv2
from hbrt.cv.enums import HB_VP_INTER_LINEAR

FAR_OUTSIDE = np.float32(-1e6)
"""A coordinate outside every image."""

WHAT_AN_INT_REACHES = 2.0**30
"""OpenCV makes ints of coordinates. One that is farther away would come back on the other side of the image."""


def look_up_at(
    pixels: NDArray[Any],
    coordinates: NDArray[np.float32],
    out: NDArray[Any] | None,
    interpolation: int,
    border_type: int,
    border: tuple[int, ...],
) -> Any:
    """The pixels at these coordinates, (height, width, 2) of x and y; in `out` when there is one.

    16-bit pixels are blended as float32: OpenCV would look them up in steps of 1/32 pixel.
    """
    if pixels.dtype == np.int16 and interpolation == HB_VP_INTER_LINEAR:
        blended = look_up_at(pixels.astype(np.float32), coordinates, None, interpolation, border_type, border)
        with np.errstate(invalid="ignore"):  # NaN, from coordinates of no pixel beyond a replicated border
            return np.rint(blended, out=out, casting="unsafe")
    # Both coordinates are in one array; OpenCV's types do not know that the second map may then be None.
    return cv2.remap(  # type: ignore[call-overload]
        pixels, coordinates, None, interpolation, dst=out, borderMode=border_type, borderValue=border
    )


def look_up_through(to_source: Matrix, height: int, width: int, interpolation: int, border_type: int) -> LookUp:
    """What finds the pixels of a result by a matrix that OpenCV's own warp cannot follow.

    Args:
        to_source: As for `is_beyond_opencv`, as are the next two.
        height: Rows of the result.
        width: Pixels of a row.
        interpolation: HB_VP_INTER_NEAREST or HB_VP_INTER_LINEAR.
        border_type: HB_VP_BORDER_*.
    """

    def look_up(pixels: NDArray[Any], out: NDArray[Any] | None, border: tuple[int, ...]) -> Any:
        coordinates = coordinates_of(to_source, height, width)
        return look_up_at(pixels, coordinates, out, interpolation, border_type, border)

    return look_up


def is_beyond_opencv(to_source: Matrix, height: int, width: int) -> bool:
    """Whether OpenCV's own warp cannot follow a matrix, as it nearly always can.

    It cannot where the horizon of a perspective, w = 0, crosses the result, or where a place is beyond an int. The
    corners tell, since w and both numerators are linear.

    Args:
        to_source: 3 x 3, takes (x, y, 1) of the result to (u w, v w, w) of the source.
        height: Rows of the result.
        width: Pixels of a row.
    """
    corners = [_at(to_source.tolist(), x, y) for x in (0, width - 1) for y in (0, height - 1)]
    divisors = [w for _, _, w in corners]
    nearest, farthest = min(map(abs, divisors)), max(max(abs(u), abs(v)) for u, v, _ in corners)
    is_one_side = min(divisors) > 0 or max(divisors) < 0
    return not (is_one_side and farthest < WHAT_AN_INT_REACHES * nearest)


def coordinates_of(to_source: Matrix, height: int, width: int) -> NDArray[np.float32]:
    """Where a matrix finds the pixels of a result; one whose w is 0 is outside. Arguments as for `is_beyond_opencv`."""
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
