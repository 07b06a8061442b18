"""``hbrt mem``: a board's DDR and the blocks in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from hbrt.board.paths import BoardPaths
from hbrt.cli.exits import Exit
from hbrt.cli.options import any_board_option
from hbrt.cli.report import Report, reports, watched
from hbrt.cli.tables import Column, Table, number, numbers
from hbrt.control.ask import look_at
from hbrt.findings.record import finding_of
from hbrt.findings.text import counted, stamped_line_of
from hbrt.settings import format_size

MAX_BLOCKS = 100
MAX_LISTED = 1_000_000
NOBODY = 0
"""The client of blocks that were freed and are still in use."""


def _owner(block: dict[str, Any]) -> str:
    if block["pid"] is not None:
        owner = f"client {block['client']}: process {block['pid']} ({block['program']})"
    else:
        owner = f"client {block['client']} (ended)" if block["client"] else "freed, still registered"
    if block["imported"]:
        owner += ", memory of another library"
    return f"{owner}, for {block['use']}" if block["use"] else owner


def _sharers(block: dict[str, Any]) -> str:
    return ", ".join(f"client {client}" for client in block["registered_by"])


_BLOCKS = (
    Column("ADDRESS", lambda block: f"{block['phy_addr']:#x}"),
    number("BYTES", "size_bytes"),
    number("SIZE", lambda block: format_size(block["size_bytes"])),
    Column("CACHED", lambda block: "yes" if block["cached"] else "no"),
    Column("OWNER", _owner),
    Column("REGISTERED BY", _sharers),
)
_OWNERS = (
    *numbers("CLIENT"),
    number("PROCESS", "pid"),
    Column("PROGRAM", lambda row: row["program"] or ("freed, still in use" if row["client"] == NOBODY else "gone")),
    *numbers("BLOCKS", "BYTES"),
    number("SIZE", lambda row: format_size(row["bytes"])),
    number("LARGEST", lambda row: format_size(row["largest_bytes"])),
    Column("ATTACHED FOR", lambda row: None if row["age_s"] is None else f"{row['age_s']:.0f} s"),
)


@click.command(epilog="Example: hbrt mem leaks")
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
@watched
@reports
def command(board: BoardPaths, what: str, blocks: int) -> Report:
    """Show how much of the DDR is in use, and the live blocks and their owners.

    'hbrt mem owners' adds up what each program holds. 'hbrt mem leaks' lists what ended programs did not free (the
    board has reclaimed it) and blocks that others still hold after their owner freed them; it then exits with code 1.
    """
    with look_at(board) as daemon:
        status: dict[str, Any] = daemon.request("status")
        memory: dict[str, Any] = daemon.request("mem", most=blocks if what == "blocks" else MAX_LISTED)
    if what == "owners":
        table = owners(status, memory["blocks"])
        return Report({"owners": table.rows}, table)
    if what == "leaks":
        return _leaks(status, memory)
    memory["blocks"] = with_owners(status, memory["blocks"])
    parts: list[object] = [memory_line(memory["summary"])]
    if memory["blocks"]:
        parts.append(Table(_BLOCKS, memory["blocks"]))
        if hidden := memory["summary"]["blocks"] - len(memory["blocks"]):
            parts.append(f"... and {hidden} more; use -n to list more.")
    return Report(memory, *parts)


def memory_line(summary: dict[str, int]) -> str:
    """Return one sentence about a board's DDR."""
    size, used, free, largest = (
        format_size(summary[f"{name}_bytes"]) for name in ("size", "used", "free", "largest_free")
    )
    blocks = counted(summary["blocks"], "block")
    return (
        f"DDR of {size} at {summary['base']:#x}: {used} in use by {blocks}, {free} free, largest free range {largest}."
    )


def with_owners(status: dict[str, Any], blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks with the process and the program of each one's client, or None."""
    clients = {client["id"]: client for client in status["clients"]}
    clients_of_blocks = [(block, clients.get(block["client"], {})) for block in blocks]
    return [{**block, "pid": of.get("pid"), "program": of.get("name")} for block, of in clients_of_blocks]


def owners(status: dict[str, Any], blocks: Iterable[dict[str, Any]]) -> Table:
    """List the memory of each attached client, largest first; client 0 is freed blocks that are still in use."""
    sizes: dict[int, list[int]] = {client["id"]: [] for client in status["clients"]}
    for block in blocks:
        sizes.setdefault(block["client"], []).append(block["size_bytes"])
    clients = {client["id"]: client for client in status["clients"]}
    rows: list[dict[str, Any]] = [
        {
            "client": owner,
            **{
                key: clients.get(owner, {}).get(of)
                for key, of in (("pid", "pid"), ("program", "name"), ("age_s", "age_s"))
            },
            "blocks": len(held),
            "bytes": sum(held),
            "largest_bytes": max(held, default=0),
        }
        for owner, held in sizes.items()
    ]
    rows.sort(key=lambda row: (-row["bytes"], row["client"]))
    return Table(_OWNERS, rows, "No clients are attached, and no blocks are allocated.")


def _leaks(status: dict[str, Any], memory: dict[str, Any]) -> Report:
    """Report the blocks that were not freed; the exit code is 1 if there are any."""
    ended = [finding for finding in status["findings"] if finding["kind"] == "leak"]
    kept = [block for block in memory["blocks"] if block["client"] == NOBODY]
    lines = [stamped_line_of(finding_of(finding)) for finding in ended]
    for block in kept:
        where = f"{block['size_bytes']} bytes at {block['phy_addr']:#x}"
        lines.append(f"{where} were freed but are still held by {_sharers(block) or 'a running task'}.")
    code = Exit.FAILED if lines else Exit.GOOD
    return Report({"ended": ended, "kept": kept}, *(lines or ["Nothing leaked."]), code=code)
