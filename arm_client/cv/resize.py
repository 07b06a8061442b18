"""PyrDown, PyrUp, Resize and RoiResize as Python calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from arm_client.checks import refusal
from arm_client.client import Board
from arm_client.cv.dispatch import (
    INTERPOLATIONS,
    PYRAMID_FILTERS,
    Interpolation,
    Options,
    PyramidFilter,
    chosen,
    filled,
    pair,
    run,
)
from arm_client.cv.images import Nv12, Picture, describe, kind_of, new_array, new_image, planes_of, to_board
from hbrt.cv.enums import hbDSPCvCmd
from hbrt.cv.image import CvRuleError
from hbrt.cv.resize import (
    PyramidParam,
    hbDSPCvPyrDownParam,
    hbDSPCvPyrUpParam,
    hbDSPCvResizeParam,
    hbDSPCvRoiResizeParam,
)

CORNERS = 4


def resize(
    board: Board,
    src: Picture,
    size: tuple[int, int],
    interpolation: Interpolation = "linear",
    **options: Unpack[Options],
) -> Picture:
    """Resize to another width and height with the op at 0x810.

    Args:
        board: Connection to a board.
        src: (height, width) uint8, int16 or float32, (height, width, 3) uint8, or an Nv12.
        size: Width and height of the result; even for an Nv12.
        interpolation: "nearest" or "linear".
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src`. "linear" is within 1 of the exact blend in uint8.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Resize.
    """
    kind = kind_of(src)
    width, height = pair("size", size)
    source = to_board(board, src)
    result = new_image(board, src, height, width, options.get("out"))
    param = filled(
        hbDSPCvResizeParam,
        src=describe(source, kind),
        dst=describe(result, kind),
        interpolation=chosen("interpolation", interpolation, INTERPOLATIONS),
    )
    return run(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_RESIZE, param, result, options, source)


def roi_resize(
    board: Board,
    src: Picture,
    rois: Sequence[tuple[int, int, int, int]],
    size: tuple[int, int],
    interpolation: Interpolation = "linear",
    **options: Unpack[Options],
) -> Picture:
    """Resize several regions of an image to one size with the op at 0x811.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8, or an Nv12.
        rois: 1..256 regions: left, top, right, bottom, all four inside. For an Nv12 left and top are even, right and
            bottom odd.
        size: Width and height of each result.
        interpolation: "nearest" or "linear".
        **options: See Options.

    Returns:
        Board array (regions, height, width) or (regions, height, width, 3), or an Nv12 of (regions, height, width)
        and (regions, height / 2, width / 2, 2).

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    """
    kind = kind_of(src)
    corners = _corners(rois)
    source = to_board(board, src)
    results: Picture = _results(board, src, len(corners), size, options.get("out"))
    first, steps = _first_of(results)
    table = board.from_array(np.clip(corners, -(1 << 31), (1 << 31) - 1).astype(np.int32))
    param = filled(
        hbDSPCvRoiResizeParam,
        src=describe(source, kind),
        dst=describe(first, kind),
        roiPhyAddr=table.phy_addr,
        dstStep=steps[0],
        dstUvStep=steps[1],
        roiCount=len(corners),
        interpolation=chosen("interpolation", interpolation, INTERPOLATIONS),
    )
    try:
        param.check_rois([(left, top, right, bottom) for left, top, right, bottom in corners.tolist()])
    except CvRuleError as error:
        raise refusal(str(error)) from None
    return run(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_ROI_RESIZE, param, results, options, source, table)


def _corners(rois: object) -> NDArray[Any]:
    try:
        corners = np.asarray(rois)
    except ValueError:
        raise refusal(f"rois is {rois!r}: give (left, top, right, bottom) for each region.") from None
    if corners.ndim != 2 or corners.shape[1] != CORNERS or corners.dtype.kind not in "iu":
        raise refusal(
            f"rois has shape {corners.shape} and type {corners.dtype}: give (left, top, right, bottom) for each "
            "region, four integers."
        )
    return corners


def _results(board: Board, src: Picture, count: int, size: tuple[int, int], out: Any) -> Any:
    width, height = pair("size", size)
    if isinstance(src, Nv12):
        y, uv = planes_of(out)
        return Nv12(_stack(board, (count, height, width), y), _stack(board, (count, height // 2, width // 2, 2), uv))
    return _stack(board, (count, height, width, *src.shape[2:]), out)


def _first_of(results: Any) -> tuple[Any, tuple[int, int]]:
    """Return the first result, and the bytes from each to the next, for both planes."""
    if isinstance(results, Nv12):
        return Nv12(results.y[0], results.uv[0]), (results.y.strides[0], results.uv.strides[0])
    return results[0], (results.strides[0], 0)


def _stack(board: Board, shape: tuple[int, ...], out: Any) -> Any:
    """Return an array for all results; the caller's array must be in C order."""
    if out is not None and not isinstance(out, np.ndarray):
        raise refusal(f"out is a {type(out).__name__}: create it with board.empty().")
    if out is not None and not out.flags.c_contiguous:
        raise refusal(f"out has strides {out.strides}: an array for the results of several regions must be in C order.")
    flat = None if out is None or out.shape != shape else out.reshape(shape[0] * shape[1], *shape[2:])
    if out is not None and flat is None:
        raise refusal(f"out has shape {out.shape}, but the results have {shape}.")
    return new_array(board, (shape[0] * shape[1], *shape[2:]), np.uint8, flat).reshape(shape)


def pyr_down(
    board: Board, src: Picture, interpolation: PyramidFilter = "gaussian", **options: Unpack[Options]
) -> Picture:
    """Smooth and halve the size with the op at 0x80d.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8, or an Nv12 whose sides are multiples of 4.
        interpolation: "gaussian": weights 1 4 6 4 1 in both directions; "linear": like `resize`.
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src`, with half its width and height, rounded up.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Pyramid.
    """
    param = filled(hbDSPCvPyrDownParam, interpolation=chosen("interpolation", interpolation, PYRAMID_FILTERS))
    return _pyramid(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_PYR_DOWN, param, src, options)


def pyr_up(
    board: Board, src: Picture, interpolation: PyramidFilter = "gaussian", **options: Unpack[Options]
) -> Picture:
    """Double the size and smooth with the op at 0x80e; otherwise like `pyr_down`."""
    param = filled(hbDSPCvPyrUpParam, interpolation=chosen("interpolation", interpolation, PYRAMID_FILTERS))
    return _pyramid(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_PYR_UP, param, src, options)


def _pyramid(board: Board, cmd: hbDSPCvCmd, param: PyramidParam, src: Picture, options: Options) -> Picture:
    kind = kind_of(src)
    source = to_board(board, src)
    param.src = describe(source, kind)
    width, height = param.result_size(param.src)
    result = new_image(board, src, height, width, options.get("out"))
    param.dst = describe(result, kind)
    return run(board, cmd, param, result, options, source)
