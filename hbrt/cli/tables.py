"""Output of verbs: one JSON document, or lines and tables; plain and complete if the output is not a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from math import floor, log10
from typing import Any, Final, Literal, NamedTuple

import click

from hbrt.borders.printable import LINES, printable
from hbrt.settings import rounded

_FEWEST_FOLDED = 16  # characters per line in a folded column: with fewer it would be unreadable
_GAP = 3


class Column(NamedTuple):
    """One column.

    Attributes:
        heading: Text above it.
        of: The cell of a row: a function of the row, or a key or an attribute of it. Default: the heading in lower
            case; for a row that is a list or a tuple, the item at the column's position.
        is_number: Whether it contains numbers, which are right-aligned.
        is_state: Whether it contains states, which a terminal shows in color.
    """

    heading: str
    of: Callable[[Any], object] | str = ""
    is_number: bool = False
    is_state: bool = False

    def cell(self, row: Any, at: int) -> object:
        """The content of a row's cell in this column, given the column's position."""
        if callable(self.of):
            return self.of(row)
        key = self.of or self.heading.lower()
        if isinstance(row, Mapping):
            return row[key]
        return row[at] if type(row) in {list, tuple} else getattr(row, key)


class Time(NamedTuple):
    """A time in a cell: all times of a table have the same unit.

    Attributes:
        ns: Nanoseconds.
        before: Text before it.
        after: Text after it.
    """

    ns: float
    before: str = ""
    after: str = ""


class Table(NamedTuple):
    """Columns and rows, and the line shown for a table without rows."""

    columns: Sequence[Column]
    rows: Sequence[Any]
    empty: str = ""

    def as_texts(self) -> dict[str, Any]:
        """The table for a page: headings, whether each column is numeric, and the texts of the cells."""
        columns = [{"heading": one.heading, "is_number": one.is_number} for one in self.columns]
        return {"columns": columns, "rows": cells_of(self.columns, self.rows), "empty": self.empty}


def number(heading: str, of: Callable[[Any], object] | str = "") -> Column:
    """A column of numbers."""
    return Column(heading, of, is_number=True)


def numbers(*headings: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(map(number, headings))


def state(heading: str, of: Callable[[Any], object] | str = "") -> Column:
    """A column of states."""
    return Column(heading, of, is_state=True)


COLORS = {
    **dict.fromkeys(("running", "ok", "busy"), "green"),
    **dict.fromkeys(("offline", "stalled"), "yellow"),
    **dict.fromkeys(("crashed", "stuck", "hung", "failed"), "red"),
}
"""For states of boards, cores and samples; other states have no color."""


def show_text(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print lines, on standard error with ``err``; control sequences in texts of others are escaped."""
    click.echo(printable(str(text), LINES), err=err, nl=nl)


def show_json(document: Any) -> None:
    """Print the JSON document."""
    click.echo(json.dumps(document, indent=2))


def show_table(columns: Sequence[Column], rows: Sequence[Any]) -> None:
    """Print a table: with rich if a terminal has room for it; otherwise in plain columns at full width.

    On a terminal, only the widest column is folded: a table of one-letter lines would be unreadable.
    """
    cells = cells_of(columns, rows)
    if not (sys.stdout.isatty() and _show_rich(columns, cells)):
        show_text("\n".join(padded_lines(columns, cells)))


def cells_of(columns: Sequence[Column], rows: Sequence[Any]) -> list[list[str]]:
    """The texts of the cells of each row."""
    cells = [[column.cell(row, at) for at, column in enumerate(columns)] for row in rows]
    unit = unit_of([cell.ns for row in cells for cell in row if isinstance(cell, Time)])
    return [
        [f"{one.before}{in_unit(one.ns, unit)}{one.after}" if isinstance(one, Time) else _text(one) for one in row]
        for row in cells
    ]


def plain_lines(columns: Sequence[Column], rows: Sequence[Any]) -> list[str]:
    """Headings and rows as lines, with two spaces between columns, numbers right-aligned."""
    return padded_lines(columns, cells_of(columns, rows))


def padded_lines(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[str]:
    """Like ``plain_lines``, given the texts of the cells."""
    widths = _widths(columns, cells)
    lines = []
    for row in ([column.heading for column in columns], *cells):
        padded = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(column.heading), *(len(row[at]) for row in rows), 0) for at, column in enumerate(columns)]


def _text(cell: object) -> str:
    return "-" if cell is None else printable(str(cell).replace("\n", " "))


def _show_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> bool:
    """Print the table if the terminal has room for it; returns whether it was printed."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, widths = Console(), _widths(columns, rows)
    widest = widths.index(max(widths))
    needed = sum(widths) - widths[widest] + min(widths[widest], _FEWEST_FOLDED) + _GAP * (len(columns) - 1)
    if needed > console.width:
        return False
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="" if _is_bare() else "table.header")
    for at, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=side, overflow="fold", no_wrap=at != widest)
    for row in rows:
        table.add_row(*(Text(cell, _style(cell, column)) for cell, column in zip(row, columns, strict=True)))
    console.print(table)
    return True


def _style(cell: str, column: Column) -> str:
    return COLORS.get(cell, "") if column.is_state and not _is_bare() else ""


def _is_bare() -> bool:
    """Whether the user wants no escape sequences: NO_COLOR is about colors, but bold uses them as well."""
    return bool(os.environ.get("NO_COLOR"))


def time_of_us(us: float, before: str = "") -> Time:
    """A time in a cell, given in microseconds."""
    return Time(us * 1000, before)


_UNITS: Final = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def short_time(nanoseconds: float) -> str:
    """Short text for a measured or modeled time: ``870 ns``, ``12.3 µs``, ``4.56 ms``, ``142 s``."""
    return in_unit(nanoseconds, unit_of([nanoseconds]))


def unit_of(times_ns: Sequence[float]) -> str:
    """The unit in which all these times are short: that of the longest, or a finer one if another is far shorter."""
    times_ns = [abs(one) for one in times_ns if one]
    names = list(_UNITS)
    at = max((at for at, name in enumerate(names) if max(times_ns, default=0) >= _UNITS[name]), default=0)
    return names[at - 1] if at > 1 and min(times_ns) < _UNITS[names[at]] / 10 else names[at]


def in_unit(nanoseconds: float, unit: str) -> str:
    """A time in a unit, to three digits: ``4,360 µs``, ``12.3 µs``, ``0.870 µs``; a far shorter one to two."""
    value = nanoseconds / _UNITS[unit]
    if unit == "ns" or not value:
        return f"{value:.0f} {unit}"
    exponent = floor(log10(abs(value)))
    decimals = 2 - exponent if exponent >= -1 else 1 - exponent
    return f"{f'{value:.{decimals}f}' if decimals > 0 else rounded(value)} {unit}"


def duration(seconds: float) -> str:
    """Short text for a time span: ``0.3 s``, ``42 s``, ``5 min``, ``2 h 5 min``, ``3 d 2 h``."""
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


def core_name(core: Mapping[str, Any]) -> str:
    """A core's name in a list, given its row of the board's status: number, and kind unless it is a DSP core."""
    return str(core["core"]) if core["kind"] == "dsp" else f"{core['core']} {core['kind'].upper()}"


def command_of(task: Mapping[str, Any]) -> str:
    """What selects a task's op: its command; for a task on a BPU or an NPU, the word "model"."""
    return f"{task['cmd']:#x}" if task["kind"] == "dsp" else "model"


def task_name(task: Mapping[str, Any]) -> str:
    """A task's name in a sentence: ``softmax (0x400)``, ``command 0x999``, ``model digits.onnx``, ``a model``."""
    command, name = command_of(task), task["name"]
    if command == "model":
        return f"model {name}" if name else "a model"
    return f"{name} ({command})" if name else f"command {command}"


PARTS: Final = ("vector", "scalar", "ddr", "wait")


def modeled_time(task: Mapping[str, Any]) -> Time | None:
    """The modeled time of a task in the history, with ~ if it is estimated."""
    if not task["modeled_cycles"]:
        return None
    return Time(task["modeled_ns"], "~" if task["modeled_is_estimated"] else "")


def shares(task: Mapping[str, Any]) -> str:
    """What a task's modeled cycles are spent on, as in ``most_of``."""
    return most_of({name: task[f"modeled_{name}"] for name in PARTS})


def most_of(parts: Mapping[str, float]) -> str:
    """Each part's share of the sum, the largest first, as in ``vector 71% wait 20%``; shares under 1% are omitted."""
    total = sum(parts.values())
    largest_first = sorted(parts.items(), key=lambda part: -part[1])
    return " ".join(f"{name} {count / total:.0%}" for name, count in largest_first if 100 * count > total)


def overlapped(task: Mapping[str, Any]) -> Time | None:
    """The modeled time of a task's copies, and the share of it that overlapped with computing."""
    cycles = task["modeled_dma"]
    if not cycles or not task["modeled_cycles"]:
        return None
    busy_ns = cycles * task["modeled_ns"] / task["modeled_cycles"]
    return Time(busy_ns, after=f", {task['modeled_overlap'] / cycles:.0%} hidden")
