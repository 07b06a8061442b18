"""``hbrt restart`` and ``hbrt recovery``: restart cores, or have them restart by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hbrt.board.launch import LOAD_SECONDS, SPARE_SECONDS
from hbrt.board.paths import BoardPaths
from hbrt.cli.options import board_option, image_option, timeout_option
from hbrt.cli.report import Report, reports
from hbrt.control.ask import Daemon, ask


@click.command(epilog="Example: hbrt restart --image my_image.py")
@board_option
@click.option("--core", metavar="N", type=click.IntRange(min=0), help="This core only; default: all cores.")
@image_option("--image", "-i", metavar="FILE.py", help="Image to load. Default: the current one, as its file is now.")
@timeout_option(LOAD_SECONDS)
@reports
def command(board: BoardPaths, core: int | None, image: Path | None, timeout: float) -> Report:
    """Load the image in new processes and, once all of them are ready, have these take over.

    Queued tasks stay queued, attached clients stay attached. A running task has 3 seconds to end; one that hangs
    then fails with HB_DSP_CORE_LOST. If the image does not load, its traceback is printed, and the last good image
    stays in use.
    """
    args: dict[str, Any] = {"load_ms": max(1, int(timeout * 1000))}
    if core is not None:
        args["core"] = core
    if image is not None:
        args["image"] = str(image.absolute())
    with Daemon(board) as daemon:
        daemon.request("restart", timeout + SPARE_SECONDS, **args)
        status = daemon.request("status")
    # Only the restarted cores': others may run another image.
    images = list(dict.fromkeys(each["image"] for each in status["cores"] if core in {None, each["core"]}))
    who = f"All cores of board {board.name} now run" if core is None else f"Core {core} of board {board.name} now runs"
    data = {"board": board.name, "state": status["state"], "image": images[0], "cores": status["cores"]}
    return Report(data, f"{who} {' and '.join(images)}.")


@click.command(epilog="Example: hbrt recovery disabled")
@board_option
@click.argument("wanted", type=click.Choice(["enabled", "disabled"]), required=False)
@reports
def recovery(board: BoardPaths, wanted: str | None) -> Report:
    """Show whether crashed cores restart automatically, or change that while the board runs.

    The words are those of Linux remoteproc: 'disabled' leaves a crashed core as it is, so that you can inspect it;
    'enabled' restarts it, even a core that crashed earlier. 'hbrt start --recovery' sets it for a new board.
    """
    args: dict[str, Any] = {} if wanted is None else {"enabled": int(wanted == "enabled")}
    state = "enabled" if ask(board, "recovery", **args) else "disabled"
    return Report({"board": board.name, "recovery": state}, f"Recovery of board {board.name} is {state}.")
