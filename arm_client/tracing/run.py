"""The trace of a run: of the board that runs, or of the private ones that its programs start."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.errors import BoardError, StatusError, WrongUseError
from hbrt.findings.text import counted
from hbrt.trace.ring import SUFFIX
from hbrt.trace.save import check_name, save

_DAEMON_SECONDS = 2.0


@contextmanager
def traced_run(file: Path | None, board: BoardPaths | None) -> Iterator[None]:
    """Trace what runs inside, and write it into a file afterwards; nothing for no file.

    Args:
        file: Which; its ending is the format.
        board: A board that runs, and is used; None for private ones.

    Raises:
        WrongUseError: the file cannot be written, or its ending is no format; nothing has run then.
    """
    if file is None:
        yield
        return
    check_name(file)
    if board is not None:
        was_on = ask(board, "trace", do="on", events=0)["was_on"]
        try:
            yield
        finally:
            with suppress(BoardError, StatusError, WrongUseError):  # the board has ended: its files are there, perhaps
                ask(board, "trace", do="flush" if was_on else "off", events=0)
            _save(board.trace, file)
        return
    with tempfile.TemporaryDirectory(prefix="hbrt-trace-") as directory:
        before, os.environ["HBRT_TRACE"] = os.environ.get("HBRT_TRACE"), directory
        try:
            yield
        finally:
            if before is None:
                del os.environ["HBRT_TRACE"]
            else:
                os.environ["HBRT_TRACE"] = before
            _await_daemons(Path(directory))
            _save(Path(directory), file)


def _save(directory: Path, file: Path) -> None:
    if not any(directory.glob(f"*{SUFFIX}")):
        click.echo(f"{file} is not written: no board was used.", err=True)
        return
    written = save(directory, file)
    click.echo(f"Wrote {file}: {counted(written.tasks, 'task')}, {counted(written.events, 'event')}.", err=True)


def _await_daemons(directory: Path) -> None:
    """Wait for the end of private boards whose program was killed: they keep what came last."""
    pids = {path.name.partition("-")[0] for path in directory.glob(f"*-tasks-*{SUFFIX}")}
    deadline = time.monotonic() + _DAEMON_SECONDS
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.01)
