"""What CV ops that look up pixels need to know about NV12's second plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dsp_server.ops.cv.op import Planes, Run, in_turn, settle, settled
from dsp_server.ops.cv.opencv import cv2

NEUTRAL_CHROMA = 128
"""Chroma of gray, and of anything outside the UV plane with a constant border."""


Matrix: TypeAlias = NDArray[np.float64]
LookUp: TypeAlias = Callable[[NDArray[Any], NDArray[Any] | None, tuple[int, ...]], Any]
"""Returns the values found in a plane, in the array if given one, using the border's values."""


def warp(plane: int, source: NDArray[Any], target: NDArray[Any], border_value: int, look_up: LookUp) -> Run:
    """Return what fills one plane by `look_up`.

    U and V are done one after the other: OpenCV looks up two channels at once only in steps of 1/32 pixel, but one or
    three exactly.
    """
    if plane == 0:
        return settled(target, look_up, source, target, (border_value,) * 4)

    def run() -> None:
        parts = [look_up(np.ascontiguousarray(source[..., part]), None, (NEUTRAL_CHROMA,)) for part in (0, 1)]
        settle(target, cv2.merge(parts, dst=target))

    return run


def warp_by(
    matrix: Matrix,
    half: Matrix,
    look_up_by: Callable[[Matrix, int, int], LookUp],
    src: Planes,
    dst: Planes,
    border: int,
) -> Run:
    """Return what fills all planes by a matrix, the UV plane by its `half`.

    `look_up_by` receives a plane's matrix, and the rows and columns to fill.
    """
    return in_turn(
        warp(plane, source, target, border, look_up_by(half if plane else matrix, *target.shape[:2]))
        for plane, (source, target) in enumerate(zip(src, dst, strict=True))
    )
