"""Estimates of the same calls for several boards, as a table with a row a board, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from arm_client.commands.estimate.report import OF_INT8, notes_of
from hbrt.cli.tables import Column, Table, most_of, number, time_of_us
from hbrt.profiles.estimate import Parts


def document_of_boards(what: str, documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put what ``report.document_of`` made for each board side by side."""
    return {"what": what, "boards": [_board(one) for one in documents]}


def parts_shown(document: dict[str, Any]) -> Iterator[object]:
    """The table and the lines of what ``document_of_boards`` made."""
    boards = document["boards"]
    yield Table(_COLUMNS, boards)
    yield (
        "\nModeled for all calls of each board, from their submission to their end. What the program computes on the "
        "CPU is not in it. One board with its calls and what its range comes from: --profile."
    )
    if any(one["parts"]["model"] for one in boards):
        yield OF_INT8
    if any(row["is_estimated"] for one in boards for row in one["calls"]):
        yield "Some ops charge nothing; estimated from their reads and writes; see hb_dsp_charge."
    yield from (f"{one['board']}: {note}" for one in boards for note in notes_of(one))


def _board(one: dict[str, Any]) -> dict[str, Any]:
    total = one["total"]
    whole = dict.fromkeys(Parts._fields, 0.0)
    for row in one["calls"]:
        for part, part_us in row["parts_us"].items():
            whole[part] += row["calls"] * part_us
    busy_us = sum(whole.values())
    return {
        **one,
        "board": one["profile"]["name"],
        "run_us": total["modeled_us"],
        "low_us": total["low_us"],
        "high_us": total["high_us"],
        "parts": {part: part_us / busy_us if busy_us else 0.0 for part, part_us in whole.items()},
        "made": sum(row["calls"] for row in one["calls"]),
    }


_COLUMNS: Final = (
    Column("BOARD"),
    number("CALLS", "made"),
    number("LOW", lambda one: time_of_us(one["low_us"])),
    number("MODELED", lambda one: time_of_us(one["run_us"])),
    number("HIGH", lambda one: time_of_us(one["high_us"])),
    Column("MOST OF IT", lambda one: most_of(one["parts"])),
)
