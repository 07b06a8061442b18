"""CvtColor, EqualizeHist, Integral and Threshold as Python calls."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from arm_client.client import Board
from arm_client.cv.dispatch import Options, chosen, filled, run
from arm_client.cv.images import (
    COLOR_CHANNELS,
    FORMATS,
    ORDERS,
    Nv12,
    describe,
    kind_of,
    kind_of_array,
    new_array,
    new_image,
    size_of,
    to_board,
)
from hbrt.cv.enums import (
    HB_VP_THRESH_BINARY,
    HB_VP_THRESH_BINARY_INV,
    HB_VP_THRESH_TOZERO,
    HB_VP_THRESH_TOZERO_INV,
    HB_VP_THRESH_TRUNC,
    hbDSPCvCmd,
)
from hbrt.cv.pointwise import (
    hbDSPCvCvtColorParam,
    hbDSPCvEqualizeHistParam,
    hbDSPCvIntegralParam,
    hbDSPCvThresholdParam,
)

Array = NDArray[Any]
Order: TypeAlias = Literal["rgb", "bgr"]
ThresholdType: TypeAlias = Literal["binary", "binary_inv", "trunc", "tozero", "tozero_inv"]

THRESHOLDS = {
    "binary": HB_VP_THRESH_BINARY,
    "binary_inv": HB_VP_THRESH_BINARY_INV,
    "trunc": HB_VP_THRESH_TRUNC,
    "tozero": HB_VP_THRESH_TOZERO,
    "tozero_inv": HB_VP_THRESH_TOZERO_INV,
}


@overload
def cvt_color(
    board: Board, src: Array | Nv12, to: Literal["nv12"], channels: Order = "rgb", **options: Unpack[Options]
) -> Nv12: ...
@overload
def cvt_color(
    board: Board, src: Array | Nv12, to: Literal["rgb", "bgr", "y"], channels: Order = "rgb", **options: Unpack[Options]
) -> Array: ...
def cvt_color(
    board: Board,
    src: Array | Nv12,
    to: Literal["rgb", "bgr", "y", "nv12"],
    channels: Order = "rgb",
    **options: Unpack[Options],
) -> Array | Nv12:
    """Convert between NV12, RGB, BGR and Y with the op at 0x804.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8, or an Nv12.
        to: Format of the result.
        channels: Channel order of a (height, width, 3).
        **options: See Options.

    Returns:
        Board array, or Nv12, of the same width and height.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: ITU-R BT.601, the luma and color-difference equations, https://www.itu.int/rec/R-REC-BT.601
    docs/cv-ops.md describes the ranges and the handling of chroma.
    """
    wanted = chosen("to", to, FORMATS)
    kind = kind_of(src, chosen("channels", channels, ORDERS))
    height, width = size_of(src)
    result: Array | Nv12
    if to == "nv12":
        model = Nv12(np.empty(0), np.empty(0))
        result = new_image(board, model, height, width, options.get("out"))
    else:
        shape = (height, width) if to == "y" else (height, width, COLOR_CHANNELS)
        result = new_array(board, shape, np.uint8, options.get("out"))
    given: Any = src
    source: Any = to_board(board, given)
    param = filled(hbDSPCvCvtColorParam, src=describe(source, kind), dst=describe(result, wanted))
    cmd = hbDSPCvCmd.HB_DSP_RPC_CMD_CV_CVT_COLOR
    if isinstance(result, Nv12):
        return run(board, cmd, param, result, options, source)
    return run(board, cmd, param, result, options, source)


def equalize_hist(board: Board, src: Array, **options: Unpack[Options]) -> Array:
    """Equalize the histogram of gray values with the op at 0x806.

    Args:
        board: Connection to a board.
        src: (height, width) uint8.
        **options: See Options; `out` may be `src`.

    Returns:
        Board array like `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), EqualizeHist.
    """
    kind = kind_of_array(src)
    source, result = to_board(board, src), new_array(board, src.shape, np.uint8, options.get("out"))
    param = filled(hbDSPCvEqualizeHistParam, src=describe(source, kind), dst=describe(result, kind_of(result)))
    return run(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_EQUALIZE_HIST, param, result, options, source)


def integral(board: Board, src: Array, **options: Unpack[Options]) -> Array:
    """Sum all pixels above and to the left with the op at 0x80b.

    Args:
        board: Connection to a board.
        src: (height, width) uint8, at most 8421504 pixels.
        **options: See Options.

    Returns:
        Board array (height + 1, width + 1) int32: [Y, X] is the sum of src[:Y, :X].

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Integral.
    """
    kind = kind_of_array(src)
    source = to_board(board, src)
    result = new_array(board, (src.shape[0] + 1, src.shape[1] + 1), np.int32, options.get("out"))
    param = filled(hbDSPCvIntegralParam, src=describe(source, kind), dst=describe(result, kind_of(result)))
    return run(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_INTEGRAL, param, result, options, source)


def threshold(
    board: Board,
    src: Array,
    thresh: float,
    max_val: float = 255,
    type: ThresholdType = "binary",
    **options: Unpack[Options],
) -> Array:
    """Apply a threshold with the op at 0x815.

    Args:
        board: Connection to a board.
        src: (height, width) uint8, int16 or float32.
        thresh: The threshold, which a pixel must exceed.
        max_val: The value that "binary" and "binary_inv" write.
        type: The values written above thresh and otherwise: "binary" max_val, 0; "binary_inv" 0, max_val; "trunc"
            thresh, the pixel; "tozero" the pixel, 0; "tozero_inv" 0, the pixel.
        **options: See Options; `out` may be `src`.

    Returns:
        Board array like `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Threshold.
    """
    kind = kind_of_array(src)
    source, result = to_board(board, src), new_array(board, src.shape, src.dtype, options.get("out"))
    param = filled(
        hbDSPCvThresholdParam,
        src=describe(source, kind),
        dst=describe(result, kind_of(result)),
        thresh=thresh,
        maxVal=max_val,
        type=chosen("type", type, THRESHOLDS),
    )
    return run(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_THRESHOLD, param, result, options, source)
