"""CornerHarris, command 0x803: how much of a corner each pixel is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dsp_server.ops.cv.op import Planes, Run, cv_op, settle, settled
from dsp_server.ops.cv.opencv import aligned_empty, cv2
from hbrt.cv.edges import hbDSPCvCornerHarrisParam
from hbrt.cv.image import Y_F32

S32_SCALES = {3: 2.0**30, 5: 2.0**23, 7: 2.0**16}
"""By kernelSize: a response is within -1..1, -81..81 or -10000..10000, so that it fits an int32."""


BAND_BYTES = 1664 << 10
"""Responses in float32 that an S32 image goes through at a time: they stay in the cache for the second step."""
MIN_BAND_REACHES = 8


class Band(NamedTuple):
    """Rows of a result, and what they need."""

    first: int
    end: int
    first_source: int
    end_source: int


def bands(height: int, width: int, reach: int) -> Iterator[Band]:
    """Cut a result into bands of rows whose float32 values take about BAND_BYTES.

    Args:
        height: Rows of the result, and of its source.
        width: Pixels of a row.
        reach: How many rows above and below it a value depends on.
    """
    rows = max(BAND_BYTES // (4 * width), MIN_BAND_REACHES * reach, 1)
    for first in range(0, height, rows):
        end = min(first + rows, height)
        yield Band(first, end, max(first - reach, 0), min(end + reach, height))


def corner_harris(param: hbDSPCvCornerHarrisParam, src: Planes, dst: Planes) -> Run:
    """R = det(A) - sensitivity * trace(A)^2, in float32; S32 holds R * 2^30, rounded to nearest.

    A is [[sum of dx^2, sum of dx dy], [sum of dx dy, sum of dy^2]] over the block of blockSize. dx and dy are Sobel
    derivatives, divided by 255 * 2^(kernelSize - 1) * blockSize. For kernelSize 5 and 7 the scale of S32 is 2^23 and
    2^16. Outside src, and outside the products, lies 0 with a constant border, the last one with a replicated one.

    Within 1e-6 T^2 of this, with T the largest trace(A) of the image; with kernelSize 7 within 1e-6 T^2 + 2e-6 T^1.5.
    An S32 image of more than 425 984 pixels is computed in bands of rows: its R may differ in the last bit from the F32
    image's.

    Y of U8, to Y of S32 or F32.

    Source: VP operator manual (J6 OE 3.0.17), CornerHarris.
    Emulator: the divisor is OpenCV's; the scale of S32 is its own.
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
