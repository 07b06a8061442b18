"""``hbrt ops``: the commands that a board's image registered."""

from __future__ import annotations

from typing import Any

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import any_board_option, json_option
from hbrt.cli.tables import Column, show_json, show_table
from hbrt.control.ask import ask

_COLUMNS = (
    Column("COMMAND", is_number=True),
    Column("NAME"),
    Column("RANGE"),
    Column("LATENCY", is_number=True),
    Column("SOURCE"),
)


@click.command(short_help="List the commands that a board's image registered.", epilog="Example: hbrt ops --json")
@any_board_option
@json_option
def command(board: BoardPaths, *, as_json: bool) -> None:
    """List registered commands: number, op, range of the number, latency budget, where the op comes from.

    Every board also answers 0x0 (PING) and 0xffff (BUTT, which writes this list into the output block).
    """
    rows: list[dict[str, Any]] = ask(board, "ops")
    if as_json:
        show_json([{**row, "command": f"{row['cmd']:#x}"} for row in rows])
        return
    differ = len({tuple(row["cores"]) for row in rows}) > 1
    show_table(
        (*_COLUMNS, Column("CORES")) if differ else _COLUMNS,
        [
            (
                f"{row['cmd']:#x}",
                row["name"],
                row["range"],
                f"{row['latency_us']} us" if row["latency_us"] else "-",
                row["source"],
                *([", ".join(map(str, row["cores"]))] if differ else []),
            )
            for row in rows
        ],
    )
