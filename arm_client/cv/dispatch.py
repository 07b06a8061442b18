"""Shared code of the CV ops' wrappers: options, names of choices, kernels, and the call itself."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from operator import index
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from arm_client.arrays import BoardArray
from arm_client.cabi.arguments import short_repr
from arm_client.checks import need_known, refusal
from arm_client.client import ANY, Board
from arm_client.cv.images import Picture, first_plane
from hbrt.cv.enums import (
    HB_VP_BORDER_CONSTANT,
    HB_VP_BORDER_REPLICATE,
    HB_VP_INTER_GAUSSIAN,
    HB_VP_INTER_LINEAR,
    HB_VP_INTER_NEAREST,
    hbDSPCvCmd,
)
from hbrt.cv.image import Y_F32, Y_U8, CvRuleError
from hbrt.cv.rules import CvRules
from hbrt.cv.structures import hbVPFilterKernel

Border: TypeAlias = Literal["constant", "replicate"]
Interpolation: TypeAlias = Literal["nearest", "linear"]
PyramidFilter: TypeAlias = Literal["gaussian", "linear"]

BORDERS = {"constant": HB_VP_BORDER_CONSTANT, "replicate": HB_VP_BORDER_REPLICATE}
INTERPOLATIONS = {"nearest": HB_VP_INTER_NEAREST, "linear": HB_VP_INTER_LINEAR}
PYRAMID_FILTERS = {"gaussian": HB_VP_INTER_GAUSSIAN, "linear": HB_VP_INTER_LINEAR}

MAX_KNOWN = 64
_known_good: set[tuple[type[CvRules], bytes]] = set()  # structures that keep the rules, which see their bytes alone


class Options(TypedDict, total=False):
    """Keyword arguments that all CV functions share.

    Attributes:
        out: Destination: a matching board array or an Nv12 of two; None, the default, for a new one.
        priority: 0..255, larger first; 0 by default.
        core: Core mask; 0, the default, for any core.
        timeout: Seconds; None, the default, for no limit.
    """

    out: Any
    priority: int
    core: int
    timeout: float | None


Filled = TypeVar("Filled", bound=CvRules)
Choice = TypeVar("Choice")


def filled(structure: type[Filled], **fields: Any) -> Filled:
    """Create a structure with these fields.

    Raises:
        CallerError: a value has the wrong type, or an integer does not fit its field; ctypes would truncate it
            silently.
    """
    try:
        param = structure(**fields)
    except TypeError as error:
        given = ", ".join(
            f"{name} {int(value) if isinstance(value, IntEnum) else value!r}"
            for name, value in fields.items()
            if not isinstance(value, ctypes.Structure)
        )
        raise refusal(f"One of {given} has the wrong type for its field of {structure.__name__}: {error}.") from None
    for name, value in fields.items():
        if isinstance(value, int | np.integer) and getattr(param, name) != value:
            raise refusal(f"{name} is {value}, which does not fit its field of {structure.__name__}.")
    return param


def pair(name: str, values: object) -> tuple[int, int]:
    """Return two integers, such as width and height; raises CallerError for anything else."""
    try:
        first, second = (index(value) for value in values)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise refusal(f"{name} is {values!r}, but must be two integers.") from None
    return first, second


def floats(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return the values as an array of floats; raises CallerError if they are not real numbers."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError):
        given = None
    if given is None or given.dtype.kind not in "biuf":  # numpy would drop imaginary parts and parse numbers in strings
        what = f"of type {values.dtype}" if isinstance(values, np.ndarray) else short_repr(values)
        raise refusal(f"The {name} is {what}: use real numbers, the same count in each row.")
    return given.astype(np.float64)


def chosen(name: str, value: str, choices: dict[str, Choice]) -> Choice:
    """Return the value of a choice; raises CallerError if it is unknown."""
    if value not in list(choices):  # a list, since a value may have any type
        raise refusal(f"{name} is {value!r}: use one of {', '.join(map(repr, choices))}.")
    return choices[value]


def run(board: Board, cmd: hbDSPCvCmd, param: CvRules, result: Picture, options: Options, *used: object) -> Picture:
    """Validate the structure, call the op, and wait.

    Args:
        board: Connection to a board.
        cmd: The op.
        param: Its input block, filled.
        result: Image that `param.dst` describes; its memory is the output block.
        options: See Options.
        *used: Objects to keep alive while a core may access them: the source, kernels, maps.

    Returns:
        `result`.

    Raises:
        CallerError: the arguments break a rule of the op. TimeoutError. OpFailedError.
    """
    need_known(options, Options)
    board.call(
        cmd,
        _checked(param),
        first_plane(result).board_buffer,
        priority=options.get("priority", 0),
        core=options.get("core", ANY),
        timeout=options.get("timeout"),
        keep=(result, used),
    )
    return result


def _checked(param: CvRules) -> bytes:
    """The bytes of a valid structure; a structure equal to the previous frame's is not validated again."""
    raw = bytes(param)
    if (type(param), raw) not in _known_good:
        try:
            param.check()
        except CvRuleError as error:
            raise refusal(str(error)) from None
        if len(_known_good) >= MAX_KNOWN:
            _known_good.clear()
        _known_good.add((type(param), raw))
    return raw


def mask_on_board(board: Board, mask: ArrayLike) -> tuple[hbVPFilterKernel, BoardArray]:
    """Return a morphology mask in device memory, and its descriptor: nonzero is true."""
    return _kernel(board, floats("mask", mask) != 0, np.uint8, Y_U8.type)


def weights_on_board(board: Board, weights: ArrayLike) -> tuple[hbVPFilterKernel, BoardArray]:
    """Return a filter's weights in device memory, as float32, and their descriptor."""
    return _kernel(board, floats("kernel", weights), np.float32, Y_F32.type)


def _kernel(board: Board, values: NDArray[Any], dtype: DTypeLike, number: int) -> tuple[hbVPFilterKernel, BoardArray]:
    if values.ndim != 2 or not values.size:
        raise refusal(f"A kernel cannot have shape {values.shape}: use (rows, columns).")
    with np.errstate(over="ignore"):  # infinities are then refused by the op's rules
        held = board.from_array(values.astype(dtype))
    return hbVPFilterKernel(values.shape[1], values.shape[0], number, held.phy_addr), held
