"""One rule for the board of a verb: the running one that --board or HBRT_BOARD names, else a private one.

A verb whose board has to be its own, for other constants, chosen orders or recorded addresses, gives it the DSP image
of the running one. Each says in its first line where it runs what.
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
    """Say which board a verb uses, which is private unless it runs, or is elsewhere."""
    if settings.flag("HBRT_INLINE"):
        _say("in this process (HBRT_INLINE)")
    elif isinstance(board, RemoteBoard) or daemon_pid(board) is not None:
        _say(f"on board {board.name}")
    else:
        say_private(settings.text("HBRT_IMAGE"))


def say_private(image: str | Path | None, profile: str = "") -> None:
    """Say that a verb uses its own board.

    Args:
        image: Its DSP image; nothing for the packaged ops.
        profile: Name of its profile; nothing for that of HBRT_PROFILE.
    """
    is_packaged = not image or str(image).endswith(PACKAGED)
    ops = "the packaged ops" if is_packaged else image
    _say(f"on a private board: profile {profile or active().name}, DSP image {ops}")


def private_image(image: str | Path | None) -> str:
    """The DSP image of a verb's own board: the one given, else the running board's, else that of HBRT_IMAGE.

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
        except BoardError:  # it ends just now, or hangs: the private board is none of its business
            pass
    return settings.text("HBRT_IMAGE")


def _say(where: str) -> None:
    if not is_json():
        show_text(f"Runs {where}.")
