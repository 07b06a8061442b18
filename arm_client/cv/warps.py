"""Remap, WarpAffine and WarpPerspective as Python calls."""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_client.arrays import is_on_board
from arm_client.checks import refusal
from arm_client.client import Board
from arm_client.cv.dispatch import (
    BORDERS,
    INTERPOLATIONS,
    Border,
    Interpolation,
    Options,
    chosen,
    filled,
    floats,
    pair,
    run,
)
from arm_client.cv.images import Picture, describe, kind_of, new_image, size_of, to_board
from hbrt.cv.enums import hbDSPCvCmd, hbVPImageType
from hbrt.cv.warps import hbDSPCvRemapParam, hbDSPCvWarpAffineParam, hbDSPCvWarpPerspectiveParam

MAP_TYPES = {
    np.dtype(np.float64): hbVPImageType.HB_VP_IMAGE_TYPE_F64C2,
    np.dtype(np.float32): hbVPImageType.HB_VP_IMAGE_TYPE_F32C2,
}

Warp = TypeVar("Warp", hbDSPCvWarpAffineParam, hbDSPCvWarpPerspectiveParam)


def remap(
    board: Board,
    src: Picture,
    map: NDArray[Any],
    interpolation: Interpolation = "linear",
    border: Border = "constant",
    border_value: int = 0,
    **options: Unpack[Options],
) -> Picture:
    """Remap pixels with the op at 0x80f: result[y, x] = src at (map[y, x, 0], map[y, x, 1]).

    Args:
        board: Connection to a board.
        src: (height, width) uint8, int16 or float32, (height, width, 3) uint8, or an Nv12.
        map: (rows, columns, 2) float32 or float64: x and y in src. A board array in C order is used in place.
        interpolation: "nearest" or "linear".
        border: Pixels outside the image: "constant" border_value, "replicate" the last pixel.
        border_value: 0..255, in every channel; UV of an Nv12 is 128 outside.
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src` and the size of the map.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Remap.
    """
    if not isinstance(map, np.ndarray):
        raise refusal(f"The map is a {type(map).__name__}: use an array (rows, columns, 2) of float32 or float64.")
    if map.ndim != 3 or map.shape[2] != 2 or map.dtype not in MAP_TYPES:
        raise refusal(
            f"The map has shape {map.shape} and type {map.dtype}: use (rows, columns, 2) of float32 or float64."
        )
    kind = kind_of(src)
    source = to_board(board, src)
    places = map if is_on_board(map) and map.flags.c_contiguous else board.from_array(map)
    result = new_image(board, src, map.shape[0], map.shape[1], options.get("out"))
    param = filled(
        hbDSPCvRemapParam,
        src=describe(source, kind),
        dst=describe(result, kind),
        mapPhyAddr=places.phy_addr,
        mapWidth=map.shape[1],
        mapHeight=map.shape[0],
        dataType=MAP_TYPES[map.dtype],
        interpolation=chosen("interpolation", interpolation, INTERPOLATIONS),
        borderType=chosen("border", border, BORDERS),
        borderValue=border_value,
    )
    return run(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_REMAP, param, result, options, source, places)


def warp_affine(
    board: Board,
    src: Picture,
    matrix: ArrayLike,
    size: tuple[int, int] | None = None,
    interpolation: Interpolation = "linear",
    border: Border = "constant",
    border_value: int = 0,
    **options: Unpack[Options],
) -> Picture:
    """Scale, rotate, shear and move with the op at 0x817.

    Args:
        board: Connection to a board.
        src: (height, width) or (height, width, 3), uint8, or an Nv12.
        matrix: 2 x 3, invertible; maps a point of `src` to the result.
        size: Width and height of the result; None for the size of `src`.
        interpolation: "nearest" or "linear".
        border: Pixels outside the image: "constant" border_value, "replicate" the last pixel.
        border_value: 0..255, in every channel; UV of an Nv12 is 128 outside.
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), WarpAffine.
    """
    param = _warp_param(hbDSPCvWarpAffineParam, _numbers(matrix, (2, 3)), interpolation, border, border_value)
    return _warp(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_WARP_AFFINE, param, src, size, options)


def warp_perspective(
    board: Board,
    src: Picture,
    matrix: ArrayLike,
    size: tuple[int, int] | None = None,
    interpolation: Interpolation = "linear",
    border: Border = "constant",
    border_value: int = 0,
    **options: Unpack[Options],
) -> Picture:
    """Change the perspective with the op at 0x818.

    Like `warp_affine`, but `matrix` is 3 x 3, maps a point of the result to `src`, and need not be invertible.

    Source: VP operator manual (J6 OE 3.0.17), WarpPerspective.
    """
    param = _warp_param(hbDSPCvWarpPerspectiveParam, _numbers(matrix, (3, 3)), interpolation, border, border_value)
    return _warp(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_WARP_PERSPECTIVE, param, src, size, options)


def _numbers(matrix: ArrayLike, shape: tuple[int, int]) -> ctypes.Array[ctypes.c_double]:
    values = floats("matrix", matrix)
    if values.shape != shape:
        raise refusal(f"The matrix has shape {values.shape}, but this op takes {shape}.")
    return (ctypes.c_double * values.size)(*values.reshape(-1).tolist())


def _warp_param(
    structure: type[Warp], matrix: ctypes.Array[ctypes.c_double], interpolation: str, border: str, border_value: int
) -> Warp:
    param = filled(
        structure,
        interpolation=chosen("interpolation", interpolation, INTERPOLATIONS),
        borderType=chosen("border", border, BORDERS),
        borderValue=border_value,
    )
    param.transformMatrix = matrix
    return param


def _warp(
    board: Board,
    cmd: hbDSPCvCmd,
    param: hbDSPCvWarpAffineParam | hbDSPCvWarpPerspectiveParam,
    src: Picture,
    size: tuple[int, int] | None,
    options: Options,
) -> Picture:
    kind = kind_of(src)
    height, width = size_of(src)
    if size is not None:
        width, height = pair("size", size)
    source = to_board(board, src)
    result = new_image(board, src, height, width, options.get("out"))
    param.src, param.dst = describe(source, kind), describe(result, kind)
    return run(board, cmd, param, result, options, source)
