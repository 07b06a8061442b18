"""The rule for a verb's board: the running one named by --board or HBRT_BOARD, otherwise a private one.

A verb that needs a board of its own, for different constants, chosen orders or recorded addresses, gives it the running
board's DSP image. Each verb prints its board and DSP image in its first line.
"""

from __future__ import annotations

from pathlib import Path

from hbrt import settings
from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardRef, RemoteBoard, board_ref
from hbrt.cli.report import is_json
from hbrt.cli.tables import show_text
from hbrt.control.ask import ask
from hbrt.errors import BoardError
from hbrt.profiles.profile import active

ANSWER_SECONDS = 5.0
PACKAGED = "/dsp_server/images/default.py"
"""End of the path of the image that a board has when none was given."""


def say_where(board: BoardRef) -> None:
    """Print the board that a verb uses: a running or remote one, otherwise a private one."""
    if settings.flag("HBRT_INLINE"):
        _say("in this process (HBRT_INLINE)")
    elif isinstance(board, RemoteBoard) or daemon_pid(board) is not None:
        _say(f"on board {board.name}")
    else:
        say_private(settings.text("HBRT_IMAGE"))


def say_private(image: str | Path | None, profile: str = "") -> None:
    """Print that a verb uses its own board.

    Args:
        image: Its DSP image; empty for the packaged ops.
        profile: Name of its profile; empty for that of HBRT_PROFILE.
    """
    is_packaged = not image or str(image).endswith(PACKAGED)
    ops = "the packaged ops" if is_packaged else image
    _say(f"on a private board: profile {profile or active().name}, DSP image {ops}")


def private_image(image: str | Path | None) -> str:
    """The DSP image of a verb's own board: the given one, otherwise the running board's, otherwise that of HBRT_IMAGE.

    Args:
        image: What --image has.

    Returns:
        Its file; "" for the packaged ops.
    """
    if image is not None:
        return str(Path(image).absolute())
    board = board_ref()
    if not isinstance(board, RemoteBoard) and daemon_pid(board) is not None:
        try:
            return str(ask(board, "status", ANSWER_SECONDS)["image"])
        except BoardError:  # it ends just now, or hangs: it has nothing to do with the private board
            pass
    return settings.text("HBRT_IMAGE")


def _say(where: str) -> None:
    if not is_json():
        show_text(f"Runs {where}.")
