"""``hbrt mem``: a board's DDR and the blocks in it."""

from __future__ import annotations

from typing import Any

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.options import any_board_option, json_option
from hbrt.cli.tables import Column, numbers, show_json, show_table, show_text
from hbrt.control.ask import look_at
from hbrt.findings.text import counted
from hbrt.settings import format_size

MAX_BLOCKS = 100
MAX_LISTED = 1_000_000
_COLUMNS = (
    Column("ADDRESS"),
    *numbers("BYTES", "SIZE"),
    Column("CACHED"),
    Column("OWNER"),
    Column("REGISTERED BY"),
)


@click.command(short_help="Show a board's DDR and the blocks that are allocated.", epilog="Example: hbrt mem leaks")
@any_board_option
@click.argument("what", type=click.Choice(["blocks", "owners", "leaks"]), default="blocks")
@click.option(
    "--blocks",
    "-n",
    metavar="N",
    type=click.IntRange(0, MAX_LISTED),
    default=MAX_BLOCKS,
    show_default=True,
    help="Maximum number of blocks to list, by address.",
)
@json_option
def command(board: BoardPaths, what: str, blocks: int, *, as_json: bool) -> None:
    """Show how much of the DDR is in use, and the live blocks with their owners.

    'hbrt mem owners' adds up what each program holds. 'hbrt mem leaks' lists what programs that have ended had not
    freed (the board took it back), and blocks that others keep after their owner freed them; exit code 1 then.
    """
    with look_at(board) as daemon:
        status: dict[str, Any] = daemon.request("status")
        memory: dict[str, Any] = daemon.request("mem", most=blocks if what == "blocks" else MAX_LISTED)
    clients = {client["id"]: client for client in status["clients"]}
    if what != "blocks":
        from dsp_server.commands.mem.views import show_leaks, show_owners

        show = show_owners if what == "owners" else show_leaks
        show(status, memory, as_json=as_json)
        return
    for block in memory["blocks"]:
        owner = clients.get(block["client"])
        block["pid"], block["program"] = (owner["pid"], owner["name"]) if owner else (None, None)
    if as_json:
        show_json(memory)
        return
    summary = memory["summary"]
    show_text(memory_line(summary))
    if not memory["blocks"]:
        return
    show_table(_COLUMNS, [_row(block) for block in memory["blocks"]])
    if hidden := summary["blocks"] - len(memory["blocks"]):
        show_text(f"... and {hidden} more; list more with -n.")


def memory_line(summary: dict[str, int]) -> str:
    """One sentence on a board's DDR."""
    size, used, free, largest = (
        format_size(summary[f"{name}_bytes"]) for name in ("size", "used", "free", "largest_free")
    )
    blocks = counted(summary["blocks"], "block")
    return (
        f"DDR of {size} at {summary['base']:#x}: {used} in use by {blocks}, {free} free, largest free range {largest}."
    )


def _row(block: dict[str, Any]) -> tuple[object, ...]:
    if block["pid"] is not None:
        owner = f"client {block['client']}: process {block['pid']} ({block['program']})"
    else:
        owner = f"client {block['client']} (ended)" if block["client"] else "freed, still registered"
    if block["imported"]:
        owner += ", memory of another library"
    if block["use"]:
        owner += f", for {block['use']}"
    return (
        f"{block['phy_addr']:#x}",
        block["size_bytes"],
        format_size(block["size_bytes"]),
        "yes" if block["cached"] else "no",
        owner,
        ", ".join(f"client {client}" for client in block["registered_by"]),
    )
