"""Canny, CornerHarris and Sobel as Python calls."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import DTypeLike, NDArray

from arm_client.client import Board
from arm_client.cv.dispatch import BORDERS, Border, Options, chosen, filled, run
from arm_client.cv.images import describe, kind_of, kind_of_array, new_array, to_board
from hbrt.cv.edges import hbDSPCvCannyParam, hbDSPCvCornerHarrisParam, hbDSPCvSobelParam
from hbrt.cv.enums import HB_VP_BORDER_REPLICATE, HB_VP_NORM_L1, HB_VP_NORM_L2, hbDSPCvCmd
from hbrt.cv.rules import CvRules

Array = NDArray[Any]
NORMS = {"l1": HB_VP_NORM_L1, "l2": HB_VP_NORM_L2}


def canny(
    board: Board,
    src: Array,
    threshold1: float = 100.0,
    threshold2: float = 400.0,
    kernel_size: int = 3,
    norm: Literal["l1", "l2"] = "l1",
    overlap: int = 64,
    **options: Unpack[Options],
) -> Array:
    """Find edges one pixel wide with the op at 0x802.

    Args:
        board: Connection to a board.
        src: (height, width) uint8.
        threshold1: An edge continues while the gradient is above this.
        threshold2: An edge begins where the gradient is above this; at least threshold1.
        kernel_size: Kernel size of the derivatives: 3, 5 or 7.
        norm: "l1" |dx| + |dy|, "l2" sqrt(dx^2 + dy^2).
        overlap: Halo of a tile on the chip; has no effect here.
        **options: See Options.

    Returns:
        Board array (height, width) uint8: 255 on an edge, 0 elsewhere. Exact, except for kernel_size 5 with "l2": of
        two gradients above 4096 whose squares are within 2^-22 of each other, either may count as the larger.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Canny.
    """
    param = filled(
        hbDSPCvCannyParam,
        threshold1=threshold1,
        threshold2=threshold2,
        kernelSize=kernel_size,
        norm=chosen("norm", norm, NORMS),
        overlap=overlap,
        borderType=HB_VP_BORDER_REPLICATE,
    )
    return _detect(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_CANNY, param, src, np.uint8, options)


def corner_harris(
    board: Board,
    src: Array,
    block_size: int = 3,
    kernel_size: int = 3,
    sensitivity: float = 0.04,
    border: Border = "replicate",
    *,
    dtype: DTypeLike = np.int32,
    **options: Unpack[Options],
) -> Array:
    """Compute the corner response of each pixel with the op at 0x803: det(A) - sensitivity * trace(A)^2.

    Args:
        board: Connection to a board.
        src: (height, width) uint8.
        block_size: Side of the window over which products of derivatives are averaged, odd, 1..31.
        kernel_size: Kernel size of the derivatives: 3, 5 or 7.
        sensitivity: Above 0, up to 0.25.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        dtype: Result type: float32, or int32 for 2^30 times the value (kernel_size 5: 2^23, 7: 2^16).
        **options: See Options.

    Returns:
        Board array (height, width). With T the largest trace(A) of the image, float32 is within 1e-6 T^2 of the exact
        values, for kernel_size 7 within 1e-6 T^2 + 2e-6 T^1.5.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), CornerHarris.
    docs/cv-ops.md gives the divisor of the derivatives.
    """
    param = filled(
        hbDSPCvCornerHarrisParam,
        sensitivity=sensitivity,
        blockSize=block_size,
        kernelSize=kernel_size,
        borderType=chosen("border", border, BORDERS),
    )
    return _detect(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_CORNER_HARRIS, param, src, dtype, options)


def sobel(
    board: Board,
    src: Array,
    dx: int = 1,
    dy: int = 0,
    kernel_size: int = 3,
    scale: float = 1.0,
    delta: float = 0.0,
    border: Border = "replicate",
    **options: Unpack[Options],
) -> Array:
    """Compute a derivative, smoothed in the other direction, with the op at 0x814.

    Args:
        board: Connection to a board.
        src: (height, width) uint8.
        dx: Order of the derivative along a row, 0..2.
        dy: Order of the derivative along a column, 0..2.
        kernel_size: 1, 3, 5 or 7.
        scale: Factor applied to the derivative.
        delta: Added afterwards.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        **options: See Options.

    Returns:
        Board array (height, width) int16, saturated.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Sobel.
    """
    param = filled(
        hbDSPCvSobelParam,
        scale=scale,
        delta=delta,
        dx=dx,
        dy=dy,
        kernelSize=kernel_size,
        borderType=chosen("border", border, BORDERS),
    )
    return _detect(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_SOBEL, param, src, np.int16, options)


def _detect(board: Board, cmd: hbDSPCvCmd, param: CvRules, src: Array, dtype: DTypeLike, options: Options) -> Array:
    kind = kind_of_array(src)
    source = to_board(board, src)
    result = new_array(board, src.shape[:2], dtype, options.get("out"))
    param.src, param.dst = describe(source, kind), describe(result, kind_of(result))
    return run(board, cmd, param, result, options, source)
