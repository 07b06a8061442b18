"""``hbrt tasks``: the finished tasks of a board, with their times."""

from __future__ import annotations

import csv
import sys
import time
from typing import Any

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import any_board_option
from hbrt.cli.report import Report, is_json, reports, watched
from hbrt.cli.tables import Column, Table, Time, command_of, modeled_time, number, numbers, shares, state
from hbrt.control.ask import ask
from hbrt.errors import WrongUseError
from hbrt.status import name_of

LAST = 20
MOST = 1_000_000


def _ended(task: dict[str, Any]) -> str:
    ended_s, rest_ns = divmod(task["ended_unix_ns"], 10**9)
    return f"{time.strftime('%H:%M:%S', time.localtime(ended_s))}.{rest_ns // 1_000_000:03d}"


def _of_it(task: dict[str, Any]) -> str:
    return name_of(task["result"]) if task["state"] == "failed" else shares(task)


_COLUMNS = (
    Column("ENDED", _ended),
    Column("PROGRAM"),
    *numbers("PID"),
    number("COMMAND", command_of),
    Column("OP", lambda task: task["name"] or None),
    number("CORE", lambda task: None if task["core"] < 0 else task["core"]),
    *numbers("PRIORITY"),
    state("STATE"),
    number("WAITED", lambda task: Time(task["waited_ns"])),
    number("RAN", lambda task: Time(task["ran_ns"]) if task["started_ns"] else None),
    number("MODELED", modeled_time),
    Column("OF IT", _of_it),
)


@click.command(epilog="Example: hbrt tasks --last 100 --csv")
@any_board_option
@click.option(
    "--last",
    "-n",
    metavar="N",
    type=click.IntRange(1, MOST),
    default=LAST,
    show_default=True,
    help="Number of tasks to show; a board keeps each core's newest 4096.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, one line per task, with a header.")
@watched
@reports
def command(board: BoardPaths, last: int, *, as_csv: bool) -> Report | None:
    """Show the tasks that ended last, oldest first.

    WAITED is the time from submission until a core claimed the task, RAN is the op's run time: both are measured on
    this machine. MODELED is how long the op's cycles take on the board; a ~ marks an estimate from what the op reads
    and writes, because the op charges nothing. OF IT says what it was spent on: vector and scalar instructions, direct
    DDR accesses (ddr), waits for iDMA; for a failed task, it has the status. A task that its program canceled before a
    core claimed it is not shown.
    """
    if as_csv and is_json():
        raise WrongUseError("Use either --csv or --json.")
    rows: list[dict[str, Any]] = ask(board, "tasks", last=last)
    if not as_csv:
        return Report(rows, Table(_COLUMNS, rows, "No tasks have ended on this board."))
    if rows:
        flat = [_flat(row) for row in rows]
        writer = csv.DictWriter(sys.stdout, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
    return None


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Flatten a task's nested maps, for one line of values."""
    work = {f"work_{name}": count for name, count in row["work"].items()}
    return {**{name: value for name, value in row.items() if name != "work"}, **work}
