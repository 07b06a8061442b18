"""A progress bar of a verb."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_EVERY_S = 30.0


@contextmanager
def progress(total: int, what: str = "") -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while the block runs; if that is not a terminal, a line every 30 s.

    Args:
        total: The value at which it is full.
        what: The text before it.

    Yields:
        A function that takes the amount done.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        next_s = time.monotonic() + _EVERY_S

        def line(done: int) -> None:
            nonlocal next_s
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + _EVERY_S
                click.echo(f"{what}: {done} of {total}", err=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Lines that are printed in the meantime go above the bar, except those whose output is a file.
    is_shared = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=is_shared) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
