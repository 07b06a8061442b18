"""An experiment's figures as a table: published, found here, and by which of the clocks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Clock(StrEnum):
    """The origin of a figure."""

    MEASURED = "measured here"
    MODELED = "modeled for the board"
    COUNTED = "counted here"


class Figure(NamedTuple):
    """A line: description, the published figure or "", ours, and its origin."""

    what: str
    published: str
    here: str
    clock: Clock


def show_figures(figures: Sequence[Figure], note: str = "") -> None:
    """Print the table, and a sentence below it."""
    rows = [("FIGURE", "PUBLISHED", "HERE", "")]
    rows += [(one.what, one.published or "-", one.here, one.clock) for one in figures]
    what, published, here = (max(len(row[at]) for row in rows) for at in range(3))
    for row in rows:
        print(f"{row[0]:{what}}  {row[1]:>{published}}  {row[2]:>{here}}  {row[3]}".rstrip())
    if note:
        print(f"\n{note}")
