"""An experiment's figures as a table: what was published, what is found here, and of which of two clocks it is."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Clock(StrEnum):
    """Where a figure is from."""

    MEASURED = "measured here"
    MODELLED = "modelled for the board"
    COUNTED = "counted here"


class Figure(NamedTuple):
    """A line: what it is, the published figure or "", ours, and its clock."""

    what: str
    published: str
    here: str
    clock: Clock


def show_figures(figures: Sequence[Figure], note: str = "") -> None:
    """Print the table, and a sentence below it."""
    from hbrt.cli.tables import Column, show_table

    columns = (Column("FIGURE"), Column("PUBLISHED", is_number=True), Column("HERE", is_number=True), Column(""))
    show_table(columns, [(one.what, one.published or "-", one.here, one.clock) for one in figures])
    if note:
        print(f"\n{note}")  # noqa: T201 - it is what a sample prints
