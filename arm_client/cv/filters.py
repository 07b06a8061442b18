"""BilateralFilter, BoxFilter, Dilate, Erode, Filter2D, GaussianBlur, MedianBlur and SepFilter2D as Python calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from arm_client.checks import refusal
from arm_client.client import Board
from arm_client.cv.dispatch import (
    BORDERS,
    Border,
    Options,
    chosen,
    filled,
    floats,
    mask_on_board,
    pair,
    run,
    weights_on_board,
)
from arm_client.cv.images import describe, kind_of, kind_of_array, new_array, to_board
from hbrt.cv.enums import hbDSPCvCmd
from hbrt.cv.filters import (
    hbDSPCvBilateralFilterParam,
    hbDSPCvBoxFilterParam,
    hbDSPCvDilateParam,
    hbDSPCvErodeParam,
    hbDSPCvFilter2DParam,
    hbDSPCvGaussianBlurParam,
    hbDSPCvMedianBlurParam,
    hbDSPCvSepFilter2DParam,
)
from hbrt.cv.image import CvRuleError
from hbrt.cv.rules import CvRules, need_mask, need_weights

Array = NDArray[Any]


def bilateral_filter(
    board: Board,
    src: Array,
    kernel_size: int = 5,
    sigma_color: float = 15.0,
    sigma_space: float = 2.0,
    border: Border = "replicate",
    **options: Unpack[Options],
) -> Array:
    """Average nearby pixels of similar value with the op at 0x800.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8. A board array with contiguous rows is used in place.
        kernel_size: Diameter of the disc, odd, 3..31.
        sigma_color: Standard deviation for value differences, above 0.
        sigma_space: Standard deviation for distances in pixels, above 0.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        **options: See Options.

    Returns:
        Board array like `src`; weights exp(-d^2 / (2 sigma_space^2)) exp(-dI^2 / (2 sigma_color^2)), normalized.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), BilateralFilter.
    """
    param = filled(
        hbDSPCvBilateralFilterParam,
        kernelSize=kernel_size,
        sigmaColor=sigma_color,
        sigmaSpace=sigma_space,
        borderType=chosen("border", border, BORDERS),
    )
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_BILATERAL_FILTER, param, src, None, options)


def box_filter(
    board: Board,
    src: Array,
    size: tuple[int, int] = (3, 3),
    anchor: tuple[int, int] = (-1, -1),
    border: Border = "replicate",
    *,
    normalize: bool = True,
    dtype: DTypeLike = np.uint8,
    **options: Unpack[Options],
) -> Array:
    """Compute the mean or the sum of a window with the op at 0x801.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8.
        size: Width and height of the window, 1..127.
        anchor: Column and row of the window at the pixel; -1 for its middle.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        normalize: Compute the mean, within 1 of the exact value; otherwise the sum.
        dtype: Result type: uint8, where a sum saturates, or int32 for the sum of a (height, width).
        **options: See Options.

    Returns:
        Board array of the shape of `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), BoxFilter.
    """
    (width, height), (left, top) = pair("size", size), pair("anchor", anchor)
    flag: Any = normalize  # may also be a numpy bool, which ctypes does not accept
    param = filled(
        hbDSPCvBoxFilterParam,
        kernelWidth=width,
        kernelHeight=height,
        pointLocX=left,
        pointLocY=top,
        normalize=flag.item() if isinstance(flag, np.bool_) else flag,
        borderType=chosen("border", border, BORDERS),
    )
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_BOX_FILTER, param, src, dtype, options)


def dilate(board: Board, src: Array, mask: ArrayLike, border: Border = "constant", **options: Unpack[Options]) -> Array:
    """Take the largest pixel under a mask with the op at 0x805.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8.
        mask: (rows, columns), 1..31 both; nonzero elements count. Its element (rows // 2, columns // 2) is at the
            pixel.
        border: Pixels outside the image: "constant" never wins, "replicate" is the last pixel.
        **options: See Options.

    Returns:
        Board array like `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Dilate.
    """
    kernel, held = mask_on_board(board, mask)
    _hold(need_mask, "kernel", held)
    param = filled(hbDSPCvDilateParam, kernel=kernel, borderType=chosen("border", border, BORDERS))
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_DILATE, param, src, None, options, held)


def erode(board: Board, src: Array, mask: ArrayLike, border: Border = "constant", **options: Unpack[Options]) -> Array:
    """Take the smallest pixel under a mask with the op at 0x807.

    Like `dilate`, but the mask's element ((rows - 1) // 2, (columns - 1) // 2) is at the pixel.

    Source: VP operator manual (J6 OE 3.0.17), Erode.
    """
    kernel, held = mask_on_board(board, mask)
    _hold(need_mask, "kernel", held)
    param = filled(hbDSPCvErodeParam, kernel=kernel, borderType=chosen("border", border, BORDERS))
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_ERODE, param, src, None, options, held)


def filter2d(
    board: Board,
    src: Array,
    kernel: ArrayLike,
    anchor: tuple[int, int] = (-1, -1),
    delta: float = 0.0,
    border: Border = "replicate",
    *,
    dtype: DTypeLike = np.uint8,
    **options: Unpack[Options],
) -> Array:
    """Compute the weighted sum of a window with the op at 0x808: a correlation, so the kernel is not flipped.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8.
        kernel: (rows, columns), 1..31 both; float32.
        anchor: Column and row of the kernel at the pixel; -1 for its middle.
        delta: Added to each sum.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        dtype: Result type: uint8, or for a (height, width) also int16 or float32. Integers saturate.
        **options: See Options.

    Returns:
        Board array of the shape of `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Filter2D.
    """
    left, top = pair("anchor", anchor)
    weights, held = weights_on_board(board, kernel)
    _hold(need_weights, "kernel", held)
    param = filled(
        hbDSPCvFilter2DParam,
        kernel=weights,
        delta=delta,
        pointLocX=left,
        pointLocY=top,
        borderType=chosen("border", border, BORDERS),
    )
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_FILTER2D, param, src, dtype, options, held)


def gaussian_blur(
    board: Board, src: Array, kernel_size: int = 3, border: Border = "replicate", **options: Unpack[Options]
) -> Array:
    """Blur with weights 1 2 1 or 1 4 6 4 1 in both directions with the op at 0x80a.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8.
        kernel_size: 3 or 5.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        **options: See Options.

    Returns:
        Board array like `src`, exactly rounded, ties up.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), GaussianBlur.
    """
    param = filled(hbDSPCvGaussianBlurParam, kernelSize=kernel_size, borderType=chosen("border", border, BORDERS))
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_GAUSSIAN_BLUR, param, src, None, options)


def median_blur(board: Board, src: Array, mask_width: int = 3, **options: Unpack[Options]) -> Array:
    """Take the median of a square with the op at 0x80c; the border is replicated.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8.
        mask_width: Side of the square, odd, 1..127.
        **options: See Options.

    Returns:
        Board array like `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), MedianBlur.
    """
    param = filled(hbDSPCvMedianBlurParam, maskWidth=mask_width)
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_MEDIAN_BLUR, param, src, None, options)


def sep_filter2d(
    board: Board,
    src: Array,
    kernel_x: ArrayLike,
    kernel_y: ArrayLike,
    anchor: tuple[int, int] = (-1, -1),
    delta: float = 0.0,
    border: Border = "replicate",
    *,
    dtype: DTypeLike = np.uint8,
    **options: Unpack[Options],
) -> Array:
    """Compute weighted sums along rows, then along columns, with the op at 0x813.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8.
        kernel_x: Weights along a row, 1..31 of them: (n,), (1, n) or (n, 1).
        kernel_y: Weights along a column, likewise.
        anchor: Index of the weight at the pixel; -1 for the middle one.
        delta: Added to each sum.
        border: Pixels outside the image: "replicate" the last pixel, "constant" 0.
        dtype: Result type, as for `filter2d`.
        **options: See Options.

    Returns:
        Board array of the shape of `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    """
    left, top = pair("anchor", anchor)
    along_x, held_x = weights_on_board(board, _taps("kernel_x", kernel_x).reshape(1, -1))
    along_y, held_y = weights_on_board(board, _taps("kernel_y", kernel_y).reshape(-1, 1))
    _hold(need_weights, "kernelX", held_x)
    _hold(need_weights, "kernelY", held_y)
    param = filled(
        hbDSPCvSepFilter2DParam,
        kernelX=along_x,
        kernelY=along_y,
        delta=delta,
        pointLocX=left,
        pointLocY=top,
        borderType=chosen("border", border, BORDERS),
    )
    return _filter(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_SEP_FILTER2D, param, src, dtype, options, held_x, held_y)


def _taps(name: str, values: ArrayLike) -> Array:
    """Return the weights along one axis; raises CallerError unless they are a list, one row or one column."""
    taps = floats(name, values)
    if taps.ndim not in {1, 2} or not 0 < taps.size == max(taps.shape):
        raise refusal(f"The {name} has shape {taps.shape}: give its weights along one axis, (n,), (1, n) or (n, 1).")
    return taps


def _hold(rule: Callable[[str, list[Any]], object], name: str, held: Array) -> None:
    """Validate the elements of a kernel as stored on the board; raises CallerError."""
    try:
        rule(name, held.reshape(-1).tolist())
    except CvRuleError as error:
        raise refusal(str(error)) from None


def _filter(
    board: Board, cmd: hbDSPCvCmd, param: CvRules, src: Array, dtype: DTypeLike | None, options: Options, *held: object
) -> Array:
    """Call an op whose result has its source's shape, and `dtype` or the source's type."""
    kind = kind_of_array(src)
    source = to_board(board, src)
    result = new_array(board, src.shape, src.dtype if dtype is None else dtype, options.get("out"))
    param.src, param.dst = describe(source, kind), describe(result, kind_of(result))
    return run(board, cmd, param, result, options, source, *held)
