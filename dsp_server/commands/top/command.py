"""``hbrt top``: watch a board at work: cores, commands, queue, programs."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from dsp_server.commands.top.report import parts_of
from dsp_server.commands.top.sample import SORTS, Sampler
from dsp_server.commands.top.screen import History, screen_of
from hbrt.board.paths import BoardPaths
from hbrt.cli.options import any_board_option
from hbrt.cli.report import Report, is_json, reports
from hbrt.control.ask import look_at

INTERVAL_SECONDS = 1.0
FIRST_SECONDS = 0.2  # until the first rates appear


@click.command(epilog="Example: hbrt top --interval 2")
@any_board_option
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=INTERVAL_SECONDS,
    show_default=True,
    help="Seconds between samples; rates and percentiles cover this time.",
)
@reports
def command(board: BoardPaths, interval: float) -> Report | None:
    """Watch a board: its cores; its commands with calls per second and percentiles; what waits; who holds memory.

    LAST OP is the last op that a core finished: its modeled time, the time of its copies and the share of it hidden
    behind computation, and where its cycles went.

    Lines show load, tasks per second and median run time over the last minute. An op that has taken 100 times its
    command's median (10 s if it never ended) stands out. Keys c, r, w and f sort the commands by calls, run time,
    waiting time and failures; q quits. All other times are measured on this machine. With --json or without a terminal,
    it prints one sample.
    """
    with look_at(board) as daemon:
        sampler = Sampler(daemon.request)
        if is_json() or not sys.stdout.isatty():
            sampler.look()
            time.sleep(interval)
            sample = sampler.look()
            return Report(sample._asdict(), *parts_of(sample))
        _watch(sampler, interval)
    return None


def _watch(sampler: Sampler, interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    shown, sort, key, history = sampler.look(), "c", "", History(sampler.tasks)
    history.add(shown)
    due = time.monotonic() + min(interval, FIRST_SECONDS)
    with _keys() as pressed, Live(Text(""), screen=True, auto_refresh=False) as screen:
        while key != "q":
            key = pressed(max(0.0, due - time.monotonic()))
            sort = key if key in SORTS else sort
            if not key:
                shown, due = sampler.look(), time.monotonic() + interval
                history.add(shown)
            screen.update(screen_of(shown, sort, history, screen.console.width), refresh=True)


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits up to this many seconds for a key, and returns it or an empty string."""
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
