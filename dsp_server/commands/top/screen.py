"""The screen of ``hbrt top``: a sample's report and what came before it, with histories and colors. Pure."""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from dsp_server.commands.top.report import FAR_BEYOND, MAX_UNKNOWN_S, parts_of
from dsp_server.commands.top.sample import Sample, key_of, percentile
from hbrt.borders.printable import printable
from hbrt.cli.tables import COLORS, Table, cells_of, padded_lines, short_time

HISTORY: Final = 60  # number of samples
_SPARKS: Final = "▁▂▃▄▅▆▇█"


class History:
    """What a board did during the last samples.

    Args:
        ended: Tasks that ended before the first sample, as the request ``tasks`` lists them.

    Attributes:
        load: Mean share of busy cores, 0 to 1, newest last.
        calls: Tasks per second, newest last.
        p50: Median run time of the most frequently called command, in nanoseconds.
        medians: Last known median run time of each command, in nanoseconds.
    """

    def __init__(self, ended: Iterable[Mapping[str, Any]] = ()) -> None:
        self.load: deque[float] = deque(maxlen=HISTORY)
        self.calls: deque[float] = deque(maxlen=HISTORY)
        self.p50: deque[float] = deque(maxlen=HISTORY)
        ran: dict[tuple[int, str, str], list[int]] = {}
        for task in ended:
            ran.setdefault(key_of(task), []).append(task["ran_ns"])
        self.medians: dict[tuple[int, str, str], float] = {
            key: percentile(sorted(times), 50) for key, times in ran.items()
        }

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        self.load.append(sum(core["busy"] for core in sample.cores) / max(1, len(sample.cores)))
        self.calls.append(sample.calls_per_s)
        self.medians |= {key_of(one): one["ran_p50_ns"] for one in sample.commands}
        most = max(sample.commands, key=lambda one: one["calls_per_s"], default=None)
        self.p50.append(most["ran_p50_ns"] if most else 0.0)

    def limit_passed(self, runs: dict[str, Any] | None) -> str:
        """Return which limit a running op has passed, since it takes much longer than usual; empty for none."""
        if not runs:
            return ""
        if median := self.medians.get(key_of(runs), 0.0):
            return f"{FAR_BEYOND} times its median" if runs["age_s"] * 1e9 > FAR_BEYOND * median else ""
        return f"{MAX_UNKNOWN_S} s" if runs["age_s"] > MAX_UNKNOWN_S else ""


def sparkline(values: Sequence[float], top: float = 0.0) -> str:
    """Draw values as a line of bars, scaled to ``top`` or, by default, to the largest value."""
    top = max(top, *values, 1e-12)
    return "".join(_SPARKS[min(len(_SPARKS) - 1, int(value / top * len(_SPARKS)))] for value in values)


def fitted(table: Table, width: int) -> list[str]:
    """Format a table as lines, or as one paragraph per row if the terminal is too narrow for it."""
    cells = cells_of(table.columns, table.rows)
    whole = padded_lines(table.columns, cells)
    if max(map(len, whole)) <= width:
        return whole
    lines = []
    for row in cells:
        named = [f"{column.heading} {cell}" for column, cell in zip(table.columns, row, strict=True)]
        lines += textwrap.wrap("  ".join(named), width, subsequent_indent="  ")
    return lines


def screen_of(sample: Sample, sort: str, history: History, width: int) -> Text:
    """Draw the whole screen.

    Args:
        sample: The newest sample.
        sort: The key in SORTS by which the commands are sorted.
        history: The previous samples and this one.
        width: Width of the terminal in columns.
    """
    far = {core["core"]: limit for core in sample.cores if (limit := history.limit_passed(core["runs"]))}
    screen = Text()
    for part in parts_of(sample, sort, far):
        lines = fitted(part, width) if isinstance(part, Table) else textwrap.wrap(printable(part), width) or [""]
        screen.append("".join(f"{line}\n" for line in lines))
    room = max(8, min(HISTORY, width - 24))
    for name, values, now, top in (
        ("load", history.load, f"{history.load[-1]:.0%}", 1.0),
        ("tasks/s", history.calls, f"{history.calls[-1]:,.0f}", 0.0),
        ("run p50", history.p50, short_time(history.p50[-1]), 0.0),
    ):
        screen.append(f"{name:8}{now:>10} ")
        screen.append(f"{sparkline(list(values)[-room:], top)}\n", style="cyan")
    words = {"c": "calls", "r": "run time", "w": "waiting time", "f": "failures"}
    keys = f"Sorted by {words[sort]}. Keys: {', '.join(f'{key} {word}' for key, word in words.items())}, q quit."
    screen.append("".join(f"\n{line}" for line in textwrap.wrap(keys, width)), style="dim")
    for word, color in COLORS.items():
        screen.highlight_regex(rf"(?<=\s){word}(?=\s)", color)
    screen.highlight_regex(r"█+░*", "green")
    screen.highlight_regex(r"(?m)^.*<< .*$", "bold red")
    return screen
