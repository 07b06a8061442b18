"""``hbrt restart``: put the image, as its file is now, on running cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hbrt.board.launch import LOAD_SECONDS, SPARE_SECONDS
from hbrt.board.paths import BoardPaths
from hbrt.cli.options import ImageFile, board_option, json_option, timeout_option
from hbrt.cli.tables import show_json, show_text
from hbrt.control.daemon import Daemon


@click.command(
    short_help="Load the image again, or another one, on running cores.",
    epilog="Example: hbrt restart --image my_image.py",
)
@board_option
@click.option("--core", metavar="N", type=click.IntRange(min=0), help="This core only; default: all cores.")
@click.option(
    "--image",
    "-i",
    metavar="FILE.py",
    type=ImageFile(),
    help="Another image; default: the present one's file, as it is now.",
)
@timeout_option(LOAD_SECONDS)
@json_option
def command(board: BoardPaths, core: int | None, image: Path | None, timeout: float, *, as_json: bool) -> None:
    """Load the image in new processes and, when all of them are ready, let these take over.

    Queued tasks stay queued, attached programs stay attached. A task that runs has 3 seconds to end; one that hangs
    then fails with HB_DSP_CORE_LOST. When the image does not load, its traceback is printed, and the last good one goes
    on.
    """
    args: dict[str, Any] = {"load_ms": max(1, int(timeout * 1000))}
    if core is not None:
        args["core"] = core
    if image is not None:
        args["image"] = str(image.absolute())
    with Daemon(board) as daemon:
        daemon.request("restart", timeout + SPARE_SECONDS, **args)
        status = daemon.request("status")
    # Of the cores that were restarted: another one may run another image.
    images = list(dict.fromkeys(each["image"] for each in status["cores"] if core in {None, each["core"]}))
    if as_json:
        show_json({"board": board.name, "state": status["state"], "image": images[0], "cores": status["cores"]})
        return
    who = f"All cores of board {board.name} now run" if core is None else f"Core {core} of board {board.name} now runs"
    show_text(f"{who} {' and '.join(images)}.")
