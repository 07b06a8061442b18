"""Edges and corners: Canny, CornerHarris, Sobel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.kernels import LARGEST_PIXEL, is_beyond_int, saturate
from dsp_server.ops.cv.op import Planes, Run, cv_op, settle, settled
from dsp_server.ops.cv.opencv import aligned_empty, cv2
from hbrt.cv.edges import hbDSPCvCannyParam, hbDSPCvCornerHarrisParam, hbDSPCvSobelParam
from hbrt.cv.enums import HB_VP_NORM_L2
from hbrt.cv.image import Y_F32

ABOVE_EVERY_GRADIENT = 2.0**20
"""|dx| + |dy| is always below this; OpenCV converts a threshold to int, and 2^31 does not fit in one."""
S32_SCALES = {3: 2.0**30, 5: 2.0**23, 7: 2.0**16}
"""By kernelSize: a response is within -1..1, -81..81 or -10000..10000, so that it fits in an int32."""
BAND_BYTES = 1664 << 10
"""Size of the float32 bands in which an S32 image is processed: they stay in the cache for the second step."""
MIN_BAND_REACHES = 8


# Canny, command 0x802: edges one pixel wide.


def canny(param: hbDSPCvCannyParam, src: Planes, dst: Planes) -> Run:
    """Write 255 on edges, 0 elsewhere.

    1. Compute dx and dy by Sobel of kernelSize, with a replicated border; the gradient is |dx| + |dy|, or its length
    with L2. With kernelSize 7, dx and dy are divided by 16 and rounded, and both thresholds are divided by 16.
    2. Keep a pixel if its gradient is the largest across the edge, in four directions; see docs/cv-ops.md for these.
    3. Edges are the pixels above threshold2, and those above threshold1 that touch an edge, in eight directions.

    Exact except for kernelSize 5 with L2: of two gradients above 4096 whose squares are within 2^-22 of each other,
    either may count as the larger.

    src: Y of U8; dst: the same.

    Source: VP operator manual (J6 OE 3.0.17), Canny.
    Emulator: the image is processed as a single tile, so `overlap` has no effect.
    """
    return settled(
        dst[0],
        cv2.Canny,
        src[0],
        min(param.threshold1, ABOVE_EVERY_GRADIENT),
        min(param.threshold2, ABOVE_EVERY_GRADIENT),
        edges=dst[0],
        apertureSize=param.kernelSize,
        L2gradient=param.norm == HB_VP_NORM_L2,
    )


hb_dsp_canny = cv_op(hbDSPCvCannyParam, canny, instructions=60)


# CornerHarris, command 0x803: how corner-like each pixel is.


class Band(NamedTuple):
    """Rows of a result, and the source rows that they need."""

    first: int
    end: int
    first_source: int
    end_source: int


def bands(height: int, width: int, reach: int) -> Iterator[Band]:
    """Divide a result into bands of rows whose float32 values take about BAND_BYTES.

    Args:
        height: Rows of the result and of its source.
        width: Pixels per row.
        reach: How many rows above and below it a value depends on.
    """
    rows = max(BAND_BYTES // (4 * width), MIN_BAND_REACHES * reach, 1)
    for first in range(0, height, rows):
        end = min(first + rows, height)
        yield Band(first, end, max(first - reach, 0), min(end + reach, height))


def corner_harris(param: hbDSPCvCornerHarrisParam, src: Planes, dst: Planes) -> Run:
    """Compute R = det(A) - sensitivity * trace(A)^2 in float32; S32 holds R * 2^30, rounded to nearest.

    A is [[sum of dx^2, sum of dx dy], [sum of dx dy, sum of dy^2]] over the block of blockSize. dx and dy are Sobel
    derivatives, divided by 255 * 2^(kernelSize - 1) * blockSize. For kernelSize 5 and 7 the scale of S32 is 2^23 and
    2^16. Outside src, and outside the products, values are 0 with a constant border, the last value with a replicated.

    Accurate to 1e-6 T^2, where T is the image's largest trace(A); with kernelSize 7, to 1e-6 T^2 + 2e-6 T^1.5. An S32
    image of more than 425 984 pixels is computed in bands of rows, so its R may differ in the last bit from that of the
    F32 image.

    src: Y of U8; dst: Y of S32 or F32.

    Source: VP operator manual (J6 OE 3.0.17), CornerHarris.
    Emulator: the divisor is OpenCV's; the scale of S32 is the emulator's own.
    """
    source, target = src[0], dst[0]
    what = (param.blockSize, param.kernelSize, param.sensitivity)
    if param.dst.imageType == Y_F32.type:
        return settled(target, cv2.cornerHarris, source, *what, dst=target, borderType=param.borderType)
    scale, border_type = S32_SCALES[param.kernelSize], param.borderType
    height, width = target.shape
    parts = [
        (source[band.first_source : band.end_source], band.first - band.first_source, target[band.first : band.end])
        for band in bands(height, width, param.blockSize // 2 + param.kernelSize // 2)
    ]
    most_rows = max(len(pixels) for pixels, _, _ in parts)

    def run() -> None:
        room = aligned_empty((most_rows, width), np.float32)
        for pixels, skipped, whole in parts:
            response = cv2.cornerHarris(pixels, *what, dst=room[: len(pixels)], borderType=border_type)
            wanted = response[skipped : skipped + len(whole)]
            settle(whole, cv2.addWeighted(wanted, scale, wanted, 0, 0, dst=whole, dtype=cv2.CV_32S))

    return run


hb_dsp_corner_harris = cv_op(hbDSPCvCornerHarrisParam, corner_harris, instructions=24)


# Sobel, command 0x814: a derivative along rows or columns, smoothed in the other direction.


def sobel(param: hbDSPCvSobelParam, src: Planes, dst: Planes) -> Run:
    """Write scale * (src correlated with the kernel) + delta, rounded to nearest, saturated to int16.

    For dx 1, dy 0, kernelSize 3 the kernel is [-1 0 1; -2 0 2; -1 0 1], for dx 0, dy 1 its transpose. In general it is
    the binomial smoothing of kernelSize, differenced dx times along rows and dy times along columns. Pixels outside src
    are 0 with a constant border, the nearest pixel with a replicated one.

    src: Y of U8; dst: Y of S16.

    Source: VP operator manual (J6 OE 3.0.17), Sobel.
    """
    side, border = param.kernelSize, param.borderType
    largest = LARGEST_PIXEL * 4.0 ** (max(side, 3) - 1)  # no kernel's absolute weights are larger
    if is_beyond_int(dst[0], largest * abs(param.scale) + abs(param.delta)):
        return lambda: _sobel_exactly(param, src[0], dst[0])
    return settled(
        dst[0],
        cv2.Sobel,
        src[0],
        cv2.CV_16S,
        param.dx,
        param.dy,
        dst=dst[0],
        ksize=side,
        scale=param.scale,
        delta=param.delta,
        borderType=border,
    )


def _sobel_exactly(param: hbDSPCvSobelParam, source: NDArray[Any], target: NDArray[Any]) -> None:
    with np.errstate(over="ignore"):
        exact = cv2.Sobel(source, cv2.CV_64F, param.dx, param.dy, ksize=param.kernelSize, borderType=param.borderType)
        saturate(target, exact * param.scale + param.delta)


hb_dsp_sobel = cv_op(hbDSPCvSobelParam, sobel, instructions=12)
