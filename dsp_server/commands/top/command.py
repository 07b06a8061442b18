"""``hbrt top``: a board while it works: cores, commands, queue, programs."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from dsp_server.commands.top.sample import SORTS, Sample
from dsp_server.commands.top.sampler import Sampler
from hbrt.board.paths import BoardPaths
from hbrt.cli.modelled import modelled_time, overlapped, shares
from hbrt.cli.options import any_board_option, json_option
from hbrt.cli.tables import Column, core_name, numbers, plain_lines, short_time, show_json
from hbrt.control.ask import look_at
from hbrt.errors import WrongUseError
from hbrt.settings import format_size

INTERVAL_SECONDS = 1.0
FIRST_SECONDS = 0.2  # until the first rates
_CORES = (*numbers("CORE"), Column("STATE"), Column("HEALTH"), *numbers("BUSY", "TASKS/S"), Column("RUNS"))
_LAST = (*numbers("CORE"), Column("LAST OP"), *numbers("MODELLED", "DMA"), Column("OF IT"))
_COMMANDS = (
    *numbers("COMMAND"),
    Column("OP"),
    *numbers("CALLS/S", "WAITED P50", "P99", "RAN P50", "P99", "FAILED"),
)
_PROGRAMS = (*numbers("CLIENT", "PID"), Column("PROGRAM"), *numbers("TASKS", "BLOCKS", "MEMORY"))


@click.command(
    short_help="Watch a board: what runs, what waits, how fast it is.", epilog="Example: hbrt top --interval 2"
)
@any_board_option
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=INTERVAL_SECONDS,
    show_default=True,
    help="Seconds between two looks; the rates and percentiles are of this time.",
)
@json_option
def command(board: BoardPaths, interval: float, *, as_json: bool) -> None:
    """Watch a board: its cores, its commands with calls a second and percentiles, what waits, and who holds memory.

    LAST OP is the one that a core has ended last: its modelled time, that of its copies with the share that passed
    while the core computed, and what its cycles are for.

    The keys c, r, w and f sort the commands by calls, by run time, by waiting time and by failures; q ends. All other
    times are measured on this machine. --json prints one sample, of one interval.
    """
    if not as_json and not sys.stdout.isatty():
        raise WrongUseError("hbrt top draws on a terminal, and standard output is none; use --json for one sample.")
    with look_at(board) as daemon:
        look = Sampler(daemon.request).look
        if as_json:
            look()
            time.sleep(interval)
            show_json(look()._asdict())
        else:
            _watch(look, interval)


def _watch(look: Callable[[], Sample], interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    shown, sort, key = look(), "c", ""
    due = time.monotonic() + min(interval, FIRST_SECONDS)
    with _keys() as pressed, Live(Text(""), screen=True, auto_refresh=False) as screen:
        while key != "q":
            key = pressed(max(0.0, due - time.monotonic()))
            sort = key if key in SORTS else sort
            if not key:
                shown, due = look(), time.monotonic() + interval
            screen.update(Text("\n".join(lines_of(shown, sort))), refresh=True)


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yields a function that waits so many seconds for a key and returns it, or an empty text."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    if before is not None:
        tty.setcbreak(sys.stdin)

    def pressed(seconds: float) -> str:
        if before is None:
            time.sleep(seconds)
            return ""
        return (
            os.read(sys.stdin.fileno(), 1).decode("latin-1") if select.select([sys.stdin], [], [], seconds)[0] else ""
        )

    try:
        yield pressed
    finally:
        if before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def lines_of(sample: Sample, sort: str) -> list[str]:
    """The screen: a line on the board, then tables of its cores, commands and programs."""
    memory = sample.memory
    waiting = ", ".join(f"{one['tasks']} of priority {one['priority']}" for one in sample.waiting) or "none"
    lines = [
        f"Board {sample.board}: {sample.calls_per_s:,.0f} tasks/s; {sample.running} running, {sample.ready} ready.",
        f"Memory: {format_size(memory['used_bytes'])} of {format_size(memory['size_bytes'])}. Waiting: {waiting}.",
        f"Waiting longest: {_oldest(sample)}.",
        "",
    ]
    cores = [
        (
            core_name(core),
            core["state"],
            core["health"],
            f"{core['busy']:.0%}",
            f"{core['tasks_per_s']:,.0f}",
            _runs(core),
        )
        for core in sample.cores
    ]
    last = [
        (core["core"], op["name"], modelled_time(op), overlapped(op), shares(op))
        for core in sample.cores
        if (op := core["last"])
    ]
    commands = [
        (
            f"{one['cmd']:#x}",
            one["name"],
            f"{one['calls_per_s']:,.0f}",
            *(short_time(one[key]) for key in ("waited_p50_ns", "waited_p99_ns", "ran_p50_ns", "ran_p99_ns")),
            one["failed"],
        )
        for one in sorted(sample.commands, key=lambda one: one[SORTS[sort]], reverse=True)
    ]
    programs = [
        (one["id"], one["pid"], one["name"], one["tasks"], one["blocks"], format_size(one["bytes"]))
        for one in sample.programs
    ]
    for columns, rows in ((_CORES, cores), (_LAST, last), (_COMMANDS, commands), (_PROGRAMS, programs)):
        lines += [*plain_lines(columns, rows), ""]
        if columns is _CORES:
            lines += [*_tcm_lines(sample), ""]
    return [
        *lines,
        f"Sorted by {SORTS[sort]}; keys c r w f sort, q ends. Times but MODELLED and DMA are measured here.",
    ]


def _tcm_lines(sample: Sample) -> list[str]:
    """A line for each bank of TCM, of 2 KiB a sign."""
    banks = [(core["core"], bank, used) for core in sample.cores for bank, used in enumerate(core["tcm"])]
    return [f"TCM {core}, bank {bank}: {used}" for core, bank, used in banks]


def _runs(core: dict[str, Any]) -> str:
    runs = core["runs"]
    return f"{runs['name'] or hex(runs['cmd'])} for {short_time(runs['age_s'] * 1e9)}" if runs else "-"


def _oldest(sample: Sample) -> str:
    oldest = sample.oldest_waiting
    if oldest is None:
        return "nothing"
    age = short_time(oldest["age_s"] * 1e9)
    return f"command {oldest['cmd']:#x}, priority {oldest['priority']}, of client {oldest['client']}, for {age}"
