"""What ``hbrt mem owners`` and ``hbrt mem leaks`` show of a board's memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from hbrt.cli.exits import Exit
from hbrt.cli.tables import Column, numbers, show_json, show_table, show_text
from hbrt.findings.record import finding_of
from hbrt.findings.text import stamped_line_of
from hbrt.settings import format_size

_OWNERS = (
    *numbers("CLIENT", "PROCESS"),
    Column("PROGRAM"),
    *numbers("BLOCKS", "BYTES", "SIZE", "LARGEST"),
    Column("ATTACHED FOR"),
)
NOBODY = 0


def owners(status: dict[str, Any], blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The memory of each attached client, the most first; client 0 stands for freed blocks that are still in use."""
    sizes: dict[int, list[int]] = {client["id"]: [] for client in status["clients"]}
    for block in blocks:
        sizes.setdefault(block["client"], []).append(block["size_bytes"])
    clients = {client["id"]: client for client in status["clients"]}
    rows = [
        {
            "client": owner,
            "pid": clients[owner]["pid"] if owner in clients else None,
            "program": clients[owner]["name"] if owner in clients else None,
            "age_s": clients[owner]["age_s"] if owner in clients else None,
            "blocks": len(held),
            "bytes": sum(held),
            "largest_bytes": max(held, default=0),
        }
        for owner, held in sizes.items()
    ]
    return sorted(rows, key=lambda row: (-row["bytes"], row["client"]))


def show_owners(status: dict[str, Any], memory: dict[str, Any], *, as_json: bool) -> None:
    """Print what each client holds."""
    rows = owners(status, memory["blocks"])
    if as_json:
        show_json({"owners": rows})
    elif not rows:
        show_text("No program is attached, and no block is allocated.")
    else:
        show_table(_OWNERS, [_owner_row(row) for row in rows])


def _owner_row(row: dict[str, Any]) -> tuple[object, ...]:
    program = row["program"] or ("freed, still in use" if row["client"] == NOBODY else "is gone")
    sizes = (row["blocks"], row["bytes"], format_size(row["bytes"]), format_size(row["largest_bytes"]))
    age = "" if row["age_s"] is None else f"{row['age_s']:.0f} s"
    return (row["client"], row["pid"] or "", program, *sizes, age)


def show_leaks(status: dict[str, Any], memory: dict[str, Any], *, as_json: bool) -> None:
    """Print the blocks that were not freed, and exit with 1 if there are any."""
    ended = [finding for finding in status["findings"] if finding["kind"] == "leak"]
    kept = [block for block in memory["blocks"] if block["client"] == NOBODY]
    if as_json:
        show_json({"ended": ended, "kept": kept})
    else:
        for finding in ended:
            show_text(stamped_line_of(finding_of(finding)))
        for block in kept:
            sharers = ", ".join(f"client {client}" for client in block["registered_by"]) or "a task that runs"
            show_text(f"{block['size_bytes']} bytes at {block['phy_addr']:#x} were freed, and are kept by {sharers}.")
        if not ended and not kept:
            show_text("Nothing leaked.")
    if ended or kept:
        raise click.exceptions.Exit(Exit.FAILED)
