"""``hbrt tasks``: the tasks that a board has ended, with their times."""

from __future__ import annotations

import csv
import sys
import time
from typing import Any

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.modelled import modelled_time, shares
from hbrt.cli.options import any_board_option, json_option
from hbrt.cli.tables import Column, numbers, short_time, show_json, show_table, show_text
from hbrt.control.ask import ask
from hbrt.errors import WrongUseError

LAST = 20
MOST = 1_000_000
_COLUMNS = (
    Column("ENDED"),
    *numbers("COMMAND"),
    Column("OP"),
    *numbers("CORE", "PRIORITY"),
    Column("STATE", is_state=True),
    *numbers("WAITED", "RAN", "MODELLED"),
    Column("OF IT"),
    *numbers("PID"),
    Column("PROGRAM"),
)


@click.command(
    short_help="Show the tasks that a board has ended, with their times.", epilog="Example: hbrt tasks --last 100 --csv"
)
@any_board_option
@click.option(
    "--last",
    "-n",
    metavar="N",
    type=click.IntRange(1, MOST),
    default=LAST,
    show_default=True,
    help="Number of tasks to show; a board keeps the 4096 newest of each core.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, a line a task, with headings.")
@json_option
def command(board: BoardPaths, last: int, *, as_csv: bool, as_json: bool) -> None:
    """Show the tasks that ended last, in the order of their ends.

    WAITED is from the submission until a core claimed the task, RAN is the time of the op: both are measured on this
    machine. MODELLED is what the cycles of the op take on the board; with ~ it is estimated from what the op reads and
    writes, as the op charges nothing. OF IT says what for: vector and scalar instructions, accesses straight to DDR
    (ddr), waits for iDMA. A task that its program took back before a core claimed it is not shown.
    """
    if as_csv and as_json:
        raise WrongUseError("Use either --csv or --json.")
    rows: list[dict[str, Any]] = ask(board, "tasks", last=last)
    if as_json:
        show_json(rows)
    elif as_csv:
        if rows:
            flat = [_flat(row) for row in rows]
            writer = csv.DictWriter(sys.stdout, list(flat[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(flat)
    elif rows:
        show_table(_COLUMNS, [_row(row) for row in rows])
    else:
        show_text("No task has ended on this board.")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A task without maps in it, for a line of values."""
    work = {f"work_{name}": count for name, count in row["work"].items()}
    return {**{name: value for name, value in row.items() if name != "work"}, **work}


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    ended_s, rest_ns = divmod(row["ended_unix_ns"], 10**9)
    return (
        f"{time.strftime('%H:%M:%S', time.localtime(ended_s))}.{rest_ns // 1000:06d}",
        f"{row['cmd']:#x}",
        row["name"],
        "-" if row["core"] < 0 else row["core"],
        row["priority"],
        row["state"] if row["state"] != "failed" else f"failed {row['result']}",
        short_time(row["waited_ns"]),
        short_time(row["ran_ns"]) if row["started_ns"] else "-",
        modelled_time(row),
        shares(row),
        row["pid"],
        row["program"],
    )
