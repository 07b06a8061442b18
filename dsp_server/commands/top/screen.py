"""The screen of ``hbrt top``: a sample and what came before it as lines, with bars, histories and colors. Pure."""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from dsp_server.commands.top.sample import SORTS, Sample, key_of
from hbrt.cli.tables import (
    COLORS,
    Column,
    Time,
    cells_of,
    command_of,
    core_name,
    modelled_time,
    number,
    numbers,
    overlapped,
    padded_lines,
    shares,
    short_time,
    task_name,
)
from hbrt.settings import format_size

HISTORY: Final = 60  # samples
FAR_BEYOND: Final = 100
"""A running op that has taken this many times the median of its command stands out."""
BAR_CELLS: Final = 10
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_LAST = (
    *numbers("CORE"),
    Column("LAST OP", lambda one: one["name"] or task_name(one)),
    number("MODELLED", modelled_time),
    number("DMA", overlapped),
    Column("OF IT", shares),
)
_COMMANDS = (
    number("COMMAND", command_of),
    Column("OP", lambda one: one["name"] or None),
    number("CALLS/S", lambda one: f"{one['calls_per_s']:,.0f}"),
    number("WAITED P50", lambda one: Time(one["waited_p50_ns"])),
    number("P99", lambda one: Time(one["waited_p99_ns"])),
    number("RAN P50", lambda one: Time(one["ran_p50_ns"])),
    number("P99", lambda one: Time(one["ran_p99_ns"])),
    *numbers("FAILED"),
)
_PROGRAMS = (
    number("CLIENT", "id"),
    *numbers("PID"),
    Column("PROGRAM", "name"),
    *numbers("TASKS", "BLOCKS"),
    number("MEMORY", lambda one: format_size(one["bytes"])),
)


class History:
    """What a board did in the last samples.

    Attributes:
        load: Mean share of the cores that were busy, 0 to 1, the newest last.
        calls: Tasks per second.
        p50: Median run time of the command with the most calls, in nanoseconds.
        medians: The last known median run time of each command, in nanoseconds.
    """

    def __init__(self) -> None:
        self.load: deque[float] = deque(maxlen=HISTORY)
        self.calls: deque[float] = deque(maxlen=HISTORY)
        self.p50: deque[float] = deque(maxlen=HISTORY)
        self.medians: dict[tuple[int, str, str], float] = {}

    def add(self, sample: Sample) -> None:
        """Take a sample."""
        self.load.append(sum(core["busy"] for core in sample.cores) / max(1, len(sample.cores)))
        self.calls.append(sample.calls_per_s)
        self.medians |= {key_of(one): one["ran_p50_ns"] for one in sample.commands}
        most = max(sample.commands, key=lambda one: one["calls_per_s"], default=None)
        self.p50.append(most["ran_p50_ns"] if most else 0.0)

    def is_far_beyond(self, runs: dict[str, Any] | None) -> bool:
        """Whether a running op takes much longer than its command usually does."""
        median = self.medians.get(key_of(runs), 0.0) if runs else 0.0
        return bool(runs and median and runs["age_s"] * 1e9 > FAR_BEYOND * median)


def sparkline(values: Sequence[float], top: float = 0.0) -> str:
    """Values as a line of bars, as high as their share of ``top``, by default of the largest."""
    top = max(top, *values, 1e-12)
    return "".join(_SPARKS[min(len(_SPARKS) - 1, int(value / top * len(_SPARKS)))] for value in values)


def bar(share: float) -> str:
    """A share, 0 to 1, as a bar and a number."""
    filled = round(share * BAR_CELLS)
    return f"{'█' * filled}{'░' * (BAR_CELLS - filled)} {share:4.0%}"


def fitted(columns: Sequence[Column], rows: Sequence[Any], width: int) -> list[str]:
    """A table; where the terminal has no room for it, a paragraph for each row."""
    cells = cells_of(columns, rows)
    table = padded_lines(columns, cells)
    if max(map(len, table)) <= width:
        return table
    lines = []
    for row in cells:
        named = [f"{column.heading} {cell}" for column, cell in zip(columns, row, strict=True)]
        lines += textwrap.wrap("  ".join(named), width, subsequent_indent="  ")
    return lines


def screen_of(sample: Sample, sort: str, history: History, width: int) -> Text:
    """The whole screen.

    Args:
        sample: The newest sample.
        sort: The key of SORTS that the commands are sorted by.
        history: What came before, with this sample.
        width: Columns of the terminal.
    """
    far = {core["core"] for core in sample.cores if history.is_far_beyond(core["runs"])}
    screen = Text()
    for line in lines_of(sample, sort, width, far):
        screen.append(f"{line}\n")
    room = max(8, min(HISTORY, width - 24))
    for name, values, now, top in (
        ("load", history.load, f"{history.load[-1]:.0%}", 1.0),
        ("tasks/s", history.calls, f"{history.calls[-1]:,.0f}", 0.0),
        ("run p50", history.p50, short_time(history.p50[-1]), 0.0),
    ):
        screen.append(f"{name:8}{now:>10} ")
        screen.append(f"{sparkline(list(values)[-room:], top)}\n", style="cyan")
    keys = f"Keys: c calls, r run time, w waiting, f failures, q quit. Sorted by {SORTS[sort]}."
    screen.append("".join(f"\n{line}" for line in textwrap.wrap(keys, width)), style="dim")
    for word, color in COLORS.items():
        screen.highlight_regex(rf"(?<=\s){word}(?=\s)", color)
    screen.highlight_regex(r"█+░*", "green")
    screen.highlight_regex(r"(?m)^.*<< .*$", "bold red")
    return screen


def lines_of(sample: Sample, sort: str, width: int = 1000, far: set[int] | None = None) -> list[str]:
    """The lines but those of the history: the board, then tables of its cores, commands and programs."""
    memory = sample.memory
    waiting = ", ".join(f"{one['tasks']} of priority {one['priority']}" for one in sample.waiting) or "none"
    told = [
        f"Board {sample.board}: {sample.calls_per_s:,.0f} tasks/s; {sample.running} running, {sample.ready} ready.",
        f"Memory: {format_size(memory['used_bytes'])} of {format_size(memory['size_bytes'])}. Waiting: {waiting}.",
        f"Waiting longest: {_oldest(sample)}.",
    ]
    lines = [part for line in told for part in textwrap.wrap(line, width)] + [""]

    def runs(core: dict[str, Any]) -> str:
        return _runs(core) + (f" << over {FAR_BEYOND} times its median" if core["core"] in (far or ()) else "")

    cores = (
        number("CORE", core_name),
        Column("STATE"),
        Column("HEALTH"),
        Column("BUSY", lambda core: bar(core["busy"])),
        number("TASKS/S", lambda core: f"{core['tasks_per_s']:,.0f}"),
        Column("RUNS", runs),
    )
    lines += [*fitted(cores, sample.cores, width), ""]
    lines += [*(part for line in _tcm_lines(sample) for part in textwrap.wrap(line, width)), ""]
    last = [{**core["last"], "core": core["core"]} for core in sample.cores if core["last"]]
    commands = sorted(sample.commands, key=lambda one: one[SORTS[sort]], reverse=True)
    for columns, rows in ((_LAST, last), (_COMMANDS, commands), (_PROGRAMS, sample.programs)):
        lines += [*fitted(columns, rows, width), ""]
    return [*lines, *textwrap.wrap("Times are measured here, but for MODELLED and DMA.", width)]


def _tcm_lines(sample: Sample) -> list[str]:
    """A line for each bank of TCM, of 2 KiB a sign."""
    banks = [(core["core"], bank, used) for core in sample.cores for bank, used in enumerate(core["tcm"])]
    return [f"TCM {core}, bank {bank}: {used}" for core, bank, used in banks]


def _runs(core: dict[str, Any]) -> str:
    runs = core["runs"]
    return f"{runs['name'] or task_name(runs)} for {short_time(runs['age_s'] * 1e9)}" if runs else "-"


def _oldest(sample: Sample) -> str:
    oldest = sample.oldest_waiting
    if oldest is None:
        return "nothing"
    age = short_time(oldest["age_s"] * 1e9)
    return f"{task_name(oldest)}, priority {oldest['priority']}, of client {oldest['client']}, for {age}"
