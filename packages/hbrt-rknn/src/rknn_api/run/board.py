"""The board whose NPU cores run a program's models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from arm_client.session.session import attached
from hbrt.errors import RequestRefusedError
from hbrt.profiles.profile import packaged
from rknn_api.errors import RknnError, RknnStatus

if TYPE_CHECKING:
    from arm_client.session.session import Session

_CHOSEN: Final = "rk3588"  # of a private board that a program needs before any model
_ALIKE: Final = ({"rk3566", "rk3568"},)


def npu_board(target: str) -> Session:
    """This process's board; attaches, or starts a private one.

    Args:
        target: Chip of the model to run; a private board gets it if HBRT_PROFILE names no chip.

    Raises:
        RknnError: RKNN_ERR_DEVICE_UNAVAILABLE: the board has no NPU. RequestRefusedError: no board is available.
    """
    session = attached(target or _CHOSEN)
    if "npu" not in session.profile.cores:
        raise RknnError(
            RknnStatus.RKNN_ERR_DEVICE_UNAVAILABLE,
            f"Board {session.link.paths.name} has the profile {session.profile.name} without an NPU: start one with an "
            "NPU, as by 'hbrt start --profile rk3588', or set HBRT_PROFILE.",
        )
    return session


def why_in_process(target: str) -> str:
    """Why this process's board cannot run a model of the toolkit, so that it runs in the process; "" if it can.

    The toolkit's objects need no board: one program may hold models for several chips.
    """
    try:
        check_platform(npu_board(target), target)
    except (RknnError, RequestRefusedError) as error:
        return f"The model runs in this process, not on a board: {error.text}"
    return ""


def check_platform(session: Session, target: str) -> None:
    """Reject a model for another chip than the board's.

    Raises:
        RknnError: RKNN_ERR_TARGET_PLATFORM_UNMATCH.
    """
    chip = session.profile.name
    is_own = chip not in packaged()  # a user's own profile: its name is not a chip's
    if is_own or target == chip or any({target, chip} <= one for one in _ALIKE):
        return
    raise RknnError(
        RknnStatus.RKNN_ERR_TARGET_PLATFORM_UNMATCH,
        f"The model is for {target}, but board {session.link.paths.name} is an {chip}: convert it with "
        f"target_platform={chip!r}, or start a board by 'hbrt start --profile {target}'.",
    )
