"""The trace of a run: of the board that runs, or of the private ones that its programs start."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hbrt import settings
from hbrt.board.paths import BoardPaths, BoardRef, RemoteBoard
from hbrt.cli.tables import show_text
from hbrt.control.ask import ask
from hbrt.errors import BoardError, StatusError, WrongUseError
from hbrt.findings.text import counted
from hbrt.trace.ring import SUFFIX
from hbrt.trace.save import check_name, recording_of, save, save_recording
from hbrt.trace.timeline import Written

_DAEMON_SECONDS = 2.0


@contextmanager
def traced_run(file: Path | None, board: BoardRef | None) -> Iterator[None]:
    """Trace the block, and write the trace to a file afterward; does nothing without a file.

    Args:
        file: The file to write; its suffix sets the format.
        board: The running board in use; None for private ones. For a board on another machine, the file also includes
            the board's own trace of the run.

    Raises:
        WrongUseError: the file cannot be written, or its suffix is not a known format; nothing has run.
    """
    if file is None:
        yield
        return
    check_name(file)
    if isinstance(board, BoardPaths):
        was_on = ask(board, "trace", do="on", events=0)["was_on"]
        try:
            yield
        finally:
            with suppress(BoardError, StatusError, WrongUseError):  # the board has ended: its files are there, perhaps
                ask(board, "trace", do="flush" if was_on else "off", events=0)
            _save(board.trace, file)
        return
    with tempfile.TemporaryDirectory(prefix="hbrt-trace-") as directory:
        begun_ns = time.monotonic_ns()
        try:
            with settings.set_to("HBRT_TRACE", directory):
                yield
        finally:
            if isinstance(board, RemoteBoard):
                _save_with(board, begun_ns, Path(directory), file)
            else:
                _await_daemons(Path(directory))
                _save(Path(directory), file)


def _save(directory: Path, file: Path) -> None:
    if not any(directory.glob(f"*{SUFFIX}")):
        show_text(f"Did not write {file}: no board was used.", err=True)
        return
    _tell(file, save(directory, file))


def _save_with(board: RemoteBoard, begun_ns: int, directory: Path, file: Path) -> None:
    """Save the trace of the program together with that of its board, which is on another machine."""
    from hbrt.remote.observer import Observer
    from hbrt.trace.merge import merged, on_clock

    with tempfile.TemporaryDirectory(prefix="hbrt-trace-") as fetched:
        try:
            with Observer(board) as observer:
                found = observer.fetch_trace(Path(fetched))
            theirs, _ = recording_of(Path(fetched))
        except (BoardError, WrongUseError, OSError) as error:
            show_text(f"{file} has no data from the board itself: {error}", err=True)
            _save(directory, file)
            return
        theirs = on_clock(theirs, found.ahead_ns, begun_ns)
        unix_offset_ns = time.time_ns() - time.monotonic_ns()
        if any(directory.glob(f"*{SUFFIX}")):
            mine, _ = recording_of(directory)
            theirs = merged(mine, theirs)
        _tell(file, save_recording(theirs, unix_offset_ns, file))
    more = "" if found.is_on else " It is not traced itself ('hbrt trace on' there): the file has only its tasks."
    error_us = found.error_ns / 1000
    show_text(f"Times of board {board.name} are on this machine's clock, within {error_us:.0f} µs.{more}", err=True)


def _tell(file: Path, written: Written) -> None:
    show_text(f"Wrote {file}: {counted(written.tasks, 'task')}, {counted(written.events, 'event')}.", err=True)


def _await_daemons(directory: Path) -> None:
    """Wait for the end of private boards whose program was killed: they save their last events."""
    pids = {path.name.partition("-")[0] for path in directory.glob(f"*-tasks-*{SUFFIX}")}
    deadline = time.monotonic() + _DAEMON_SECONDS
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.01)
