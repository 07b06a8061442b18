"""``hbrt trace``: a timeline of what a board has done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dsp_server.commands.tasks.command import MOST
from dsp_server.commands.trace.timeline import timeline
from hbrt.board.paths import BoardPaths
from hbrt.cli.options import any_board_option
from hbrt.control.ask import ask
from hbrt.errors import WrongUseError
from hbrt.findings.text import counted


@click.group(short_help="Save what a board has done as a timeline.", epilog="Example: hbrt trace save board.json")
def command() -> None:
    """Save what a board has done as a timeline, which https://ui.perfetto.dev and chrome://tracing show."""


@command.command(short_help="Write the timeline into a file.", epilog="Example: hbrt trace save board.json")
@any_board_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--last",
    "-n",
    metavar="N",
    type=click.IntRange(1, MOST),
    default=MOST,
    help="Take so many tasks, those that ended last. Default: all that the board keeps, 4096 of each core.",
)
def save(board: BoardPaths, file: Path, last: int) -> None:
    """Write the tasks that a board keeps into FILE, as Chrome's JSON: open it in Perfetto's UI.

    Each core has a track with its ops, each program one with its submissions and an arrow from each to its op, and a
    counter shows how many tasks of each priority wait. The times are measured on this machine; what is modelled for the
    board stands among the facts of an op.
    """
    tasks: list[dict[str, Any]] = ask(board, "tasks", last=last)
    try:
        file.write_text(json.dumps(timeline(board.name, tasks)), encoding="utf-8")
    except OSError as error:
        raise WrongUseError(f"{file} cannot be written: {error.strerror}.") from None
    click.echo(f"Wrote {file}: {counted(len(tasks), 'task')}.")
