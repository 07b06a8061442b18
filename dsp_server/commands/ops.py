"""``hbrt ops``: the commands that a board's image registered."""

from __future__ import annotations

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import any_board_option
from hbrt.cli.report import Report, reports, watched
from hbrt.cli.tables import Column, Table, number
from hbrt.control.ask import ask

_COLUMNS = (
    number("COMMAND"),
    Column("NAME"),
    Column("RANGE"),
    number("LATENCY", lambda row: f"{row['latency_us']} µs" if row["latency_us"] else None),
    Column("SOURCE"),
)
_CORES = Column("CORES", lambda row: ", ".join(map(str, row["cores"])))


@click.command(epilog="Example: hbrt ops --json")
@any_board_option
@watched
@reports
def command(board: BoardPaths) -> Report:
    """List registered commands: number, op, number range, latency budget, and where the op comes from.

    Every board also answers 0x0 (PING) and 0xffff (BUTT, which writes this list to the output block).
    """
    rows = [{**row, "command": f"{row['cmd']:#x}"} for row in ask(board, "ops")]
    differ = len({tuple(row["cores"]) for row in rows}) > 1
    return Report(rows, Table((*_COLUMNS, _CORES) if differ else _COLUMNS, rows))
