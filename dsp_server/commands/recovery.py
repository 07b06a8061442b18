"""``hbrt recovery``: whether a core that crashed starts again by itself."""

from __future__ import annotations

from typing import Any

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import board_option, json_option
from hbrt.cli.tables import show_json, show_text
from hbrt.control.ask import ask


@click.command(
    short_help="Show or set whether a core that crashed starts again by itself.",
    epilog="Example: hbrt recovery disabled",
)
@board_option
@json_option
@click.argument("wanted", type=click.Choice(["enabled", "disabled"]), required=False)
def command(board: BoardPaths, wanted: str | None, *, as_json: bool) -> None:
    """Show, or set while the board runs, what 'hbrt start --recovery' sets when it starts.

    As in Linux remoteproc: disabled leaves a crashed core as it is, to be read; enabled starts it again, also one
    that has crashed before.
    """
    args: dict[str, Any] = {} if wanted is None else {"enabled": int(wanted == "enabled")}
    state = "enabled" if ask(board, "recovery", **args) else "disabled"
    if as_json:
        show_json({"board": board.name, "recovery": state})
        return
    show_text(f"Recovery of board {board.name} is {state}.")
