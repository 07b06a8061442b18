"""``hbrt ps``, ``rm`` and ``prune``: the boards of this user, and the files of stopped ones."""

from __future__ import annotations

import os
from typing import Any

import click

from hbrt.board.files import boards_in, daemon_pid, leftovers, remove_stopped
from hbrt.board.paths import BoardPaths, home
from hbrt.cli.options import complete_board, to_paths
from hbrt.cli.report import Report, reports, watched
from hbrt.cli.tables import Column, Table, duration, number, numbers, state
from hbrt.control.ask import ask, why_not_running
from hbrt.errors import BoardBusyError, BoardError, NotRunningError

ANSWER_SECONDS = 2.0  # a daemon that hangs must not hold up the list
_COLUMNS = (
    Column("BOARD"),
    state("STATE"),
    *numbers("PID"),
    number("UP", lambda row: None if row["uptime_s"] is None else duration(row["uptime_s"])),
    *numbers("CORES"),
    number("CLIENTS", "programs"),
    *numbers("TASKS"),
)


@click.command(epilog="Example: hbrt ps --json")
@watched
@reports
def command() -> Report:
    """List this user's boards: running, offline or crashed, and programs' private ones.

    TASKS counts queued and running tasks. 'hbrt status --board NAME' shows one board.
    """
    place = home()
    rows = [_look(board) for board in boards_in(place)]
    table = Table(_COLUMNS, rows, f"No boards in {place}. Start one with 'hbrt start'.")
    problems = [f"Board {row['board']}: {row['problem']}" for row in rows if row["problem"]]
    return Report({"home": str(place), "boards": rows}, table, warnings=problems)


def _look(board: BoardPaths) -> dict[str, Any]:
    """Return a board's data; unknown values are None, and ``problem`` says why."""
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


@click.command(epilog="Example: hbrt rm default")
@click.argument("board", callback=to_paths, shell_complete=complete_board)
@reports
def rm(board: BoardPaths) -> Report:
    """Remove the files of the stopped board BOARD: a name, or a directory (with a slash).

    A running board is refused: stop it first with 'hbrt stop'.
    """
    if not _is_board(board):
        raise NotRunningError(why_not_running(board))
    removed = _remove(board)
    data = {"board": board.name, "directory": str(board.path), "removed": removed}
    return Report(data, f"Removed board {board.name}: {', '.join(removed)}.")


@click.command(epilog="Example: hbrt prune")
@reports
def prune() -> Report:
    """Remove the files of all of this user's stopped boards, including their logs. Running boards are kept."""
    place = home()
    removed, kept = [], []
    for board in boards_in(place):
        try:
            if _is_board(board) and daemon_pid(board) is None:
                _remove(board)
                removed.append(board.name)
        except BoardBusyError:
            continue  # started just now
        except BoardError as error:
            kept.append({"board": board.name, "problem": str(error)})
    return Report(
        {"home": str(place), "removed": removed, "kept": kept},
        f"Removed {', '.join(removed)}." if removed else f"No stopped boards in {place}.",
        warnings=[f"Board {one['board']}: {one['problem']}" for one in kept],
    )


def _is_board(board: BoardPaths) -> bool:
    """Whether a directory contains a board, rather than being one of the user's own that happens to be there."""
    return os.path.lexists(board.log) or os.path.lexists(board.lock)


def _remove(board: BoardPaths) -> list[str]:
    """Remove a board's files; return their names.

    Raises:
        BoardBusyError: it is running. BoardError: it is not this user's alone.
    """
    daemon_pid(board)  # refuses a directory that is not the user's alone
    return sorted(remove_stopped(board, keep_log=False))
