"""``hbrt inject``: deliberate faults, for tests of error paths."""

from __future__ import annotations

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import board_option
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import Column, Table, number
from hbrt.control.ask import ask
from hbrt.injection.fault import ACTIONS

_ACTIONS = "".join(f"\n    {action}: {what}" for action, what in ACTIONS.items())


@click.command(
    epilog="Example: hbrt inject 'kill-core core=1 call=3' 'refuse-alloc call=2'",
    help=f"""Schedule each FAULT, and list the faults that are still pending; without a FAULT, only list them.

    A fault is an action and options such as core=1, call=3 (the third call from now on), times=2, cmd=0x400, ms=50
    (default 100), chance=0.1 with seed=7. A core counts the calls of ops; a PING (0x0) does not count.

    \b
    The actions are:{_ACTIONS}

    When a fault occurs, it is reported as a finding of kind 'injected'.""",
)
@board_option
@click.option("--clear", is_flag=True, help="Drop the faults that are still pending first.")
@click.argument("faults", metavar="[FAULT...]", nargs=-1)
@reports
def command(board: BoardPaths, faults: tuple[str, ...], *, clear: bool) -> Report:
    """See ``help`` above."""
    left = ask(board, "inject", faults="\n".join(faults), clear=int(clear))
    empty = f"No faults are pending on board {board.name}."
    return Report({"board": board.name, "faults": left}, Table((Column("FAULT"), number("CAME")), left, empty))
