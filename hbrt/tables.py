"""What verbs print: one JSON document, or lines and tables; plain and whole when nobody looks at a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click


class Column(NamedTuple):
    """One column: its heading, and whether numbers stand in it."""

    heading: str
    is_number: bool = False


def show_json(document: Any) -> None:
    """Print the one document."""
    click.echo(json.dumps(document, indent=2))


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: by rich on a terminal; else in plain columns, as wide as they are."""
    texts = [[_text(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _show_rich(columns, texts)
    else:
        click.echo("\n".join(plain_lines(columns, texts)))


def plain_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Headings and rows as lines, two blanks between columns, numbers to the right."""
    widths = [
        max(len(column.heading), *(len(row[at]) for row in rows), 0) if rows else len(column.heading)
        for at, column in enumerate(columns)
    ]
    lines = []
    for row in ([column.heading for column in columns], *rows):
        cells = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).replace("\n", " ")


def _show_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column.heading, justify="right" if column.is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def duration(seconds: float) -> str:
    """Short text of a time span: ``0.3 s``, ``42 s``, ``5 min``, ``2 h 5 min``, ``3 d 2 h``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
