"""Markdown, as the generated parts of the docs write it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown table; a bar inside a cell is escaped."""
    lines = [headings, *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    first, *rest = (f"| {' | '.join(line)} |\n" for line in lines)
    return f"{first}{'|---' * len(headings)}|\n{''.join(rest)}"
