"""``hbrt ps``: the boards of this user."""

from __future__ import annotations

from typing import Any

import click

from hbrt.board.files import boards_in, daemon_pid, leftovers
from hbrt.board.paths import BoardPaths, home
from hbrt.cli.options import json_option
from hbrt.cli.tables import Column, duration, numbers, show_json, show_table, show_text
from hbrt.control.ask import ask
from hbrt.errors import BoardError

ANSWER_SECONDS = 2.0  # a daemon that hangs must not keep the others from being listed
_COLUMNS = (
    Column("BOARD"),
    Column("STATE", is_state=True),
    *numbers("PID", "UP", "CORES", "PROGRAMS", "TASKS"),
)


@click.command(short_help="List the boards of this user ('hbrt ls' does the same).", epilog="Example: hbrt ps --json")
@json_option
def command(*, as_json: bool) -> None:
    """List the boards in the home of the boards: running, offline or crashed, and private ones of programs.

    TASKS are those that are queued or run. 'hbrt status --board NAME' shows one board.
    """
    place = home()
    rows = [_look(board) for board in boards_in(place)]
    if as_json:
        show_json({"home": str(place), "boards": rows})
    elif not rows:
        show_text(f"No board in {place}. Start one with 'hbrt start'.")
    else:
        show_table(_COLUMNS, [_row(row) for row in rows])
    for row in rows:
        if row["problem"]:
            show_text(f"Board {row['board']}: {row['problem']}", err=True)


def _look(board: BoardPaths) -> dict[str, Any]:
    """The data of a board; unknown values are None, and ``problem`` has the reason."""
    row: dict[str, Any] = {"board": board.name, "directory": str(board.path), "state": "unknown", "pid": None}
    row |= {"uptime_s": None, "cores": None, "programs": None, "tasks": None, "problem": None}
    try:
        row["pid"] = daemon_pid(board)
        if row["pid"] is None:
            return row | {"state": "crashed" if leftovers(board) else "offline"}
        status = ask(board, "status", ANSWER_SECONDS)
    except BoardError as error:
        return row | {"problem": str(error)}
    return row | {
        "state": status["state"],
        "uptime_s": status["uptime_s"],
        "cores": len(status["cores"]),
        "programs": len(status["clients"]),
        "tasks": status["tasks"]["ready"] + status["tasks"]["running"],
    }


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    up = None if row["uptime_s"] is None else duration(row["uptime_s"])
    known = (row["pid"], up, row["cores"], row["programs"], row["tasks"])
    return (row["board"], row["state"], *("-" if value is None else value for value in known))
