"""Flip, Rotate and Transpose as Python calls."""

from __future__ import annotations

from typing import Literal, Unpack

from arm_client.checks import refusal
from arm_client.client import Board
from arm_client.cv.dispatch import Options, filled, run
from arm_client.cv.images import Picture, describe, kind_of, new_image, size_of, to_board
from hbrt.cv.enums import (
    HB_VP_FLIP_BOTH,
    HB_VP_FLIP_HORIZONTAL,
    HB_VP_FLIP_VERTICAL,
    HB_VP_ROTATE_90_CLOCKWISE,
    HB_VP_ROTATE_90_COUNTER_CLOCKWISE,
    HB_VP_ROTATE_180,
    hbDSPCvCmd,
)
from hbrt.cv.flip_rotate import hbDSPCvFlipParam, hbDSPCvRotateParam, hbDSPCvTransposeParam
from hbrt.cv.rules import CvRules

FLIPS = {"vertical": HB_VP_FLIP_VERTICAL, "horizontal": HB_VP_FLIP_HORIZONTAL, "both": HB_VP_FLIP_BOTH}
ROTATIONS = {90: HB_VP_ROTATE_90_CLOCKWISE, 180: HB_VP_ROTATE_180, 270: HB_VP_ROTATE_90_COUNTER_CLOCKWISE}
HALF_TURN = 180


def flip(
    board: Board, src: Picture, direction: Literal["vertical", "horizontal", "both"], **options: Unpack[Options]
) -> Picture:
    """Flip upside down ("vertical"), left to right ("horizontal") or both with the op at 0x809.

    Args:
        board: Connection to a board.
        src: (height, width) uint8, int16, int32 or float32, (height, width, 3) uint8, or an Nv12.
        direction: The direction.
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src`.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    """
    if direction not in list(FLIPS):  # a list, since unhashable values are possible
        raise refusal(f"direction is {direction!r}: use one of {', '.join(map(repr, FLIPS))}.")
    param = filled(hbDSPCvFlipParam, flipCode=FLIPS[direction])
    return _turn(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_FLIP, param, src, options, sideways=False)


def rotate(board: Board, src: Picture, degrees: Literal[90, 180, 270], **options: Unpack[Options]) -> Picture:
    """Rotate clockwise with the op at 0x812.

    Args:
        board: Connection to a board.
        src: As for `flip`.
        degrees: 90, 180 or 270; the last is 90 counter-clockwise.
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src`; after 90 and 270 with its sides exchanged.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: VP operator manual (J6 OE 3.0.17), Rotate.
    """
    if degrees not in list(ROTATIONS):
        raise refusal(f"degrees is {degrees!r}: use 90, 180 or 270, clockwise.")
    param = filled(hbDSPCvRotateParam, rotateCode=ROTATIONS[degrees])
    return _turn(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_ROTATE, param, src, options, sideways=degrees != HALF_TURN)


def transpose(board: Board, src: Picture, **options: Unpack[Options]) -> Picture:
    """Transpose rows and columns with the op at 0x816.

    Args:
        board: Connection to a board.
        src: As for `flip`.
        **options: See Options.

    Returns:
        Board array, or Nv12, like `src`, with its sides exchanged.

    Raises:
        CallerError: arguments that break a rule of the op. TimeoutError. OpFailedError.

    Source: DSP sample package guide (J5 OE 1.1.77), 10.4.1, the list of ops; the VP operator manual omits it.
    """
    return _turn(board, hbDSPCvCmd.HB_DSP_RPC_CMD_CV_TRANSPOSE, hbDSPCvTransposeParam(), src, options, sideways=True)


def _turn(board: Board, cmd: hbDSPCvCmd, param: CvRules, src: Picture, options: Options, *, sideways: bool) -> Picture:
    kind = kind_of(src)
    height, width = size_of(src)
    if sideways:
        height, width = width, height
    source = to_board(board, src)
    result = new_image(board, src, height, width, options.get("out"))
    param.src, param.dst = describe(source, kind), describe(result, kind)
    return run(board, cmd, param, result, options, source)
