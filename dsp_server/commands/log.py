"""``hbrt log``: the log of a board's daemon, its cores and their ops."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from hbrt.board.files import daemon_pid
from hbrt.board.log_file import Follower, last_lines
from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.cli.options import any_board_option
from hbrt.cli.report import Report, is_json, reports
from hbrt.cli.tables import show_text
from hbrt.control.ask import why_not_running
from hbrt.errors import BoardError, NotRunningError, RefusedError
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.remote.observer import Observer

LINES = 100
LOOK_SECONDS = 0.5  # between two reads of another machine's log


@click.command(epilog="Example: hbrt log -f")
@any_board_option
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines until the board is offline or Ctrl-C.")
@click.option(
    "--lines",
    "-n",
    metavar="LINES",
    type=click.IntRange(min=0),
    default=LINES,
    show_default=True,
    help="Number of last lines to start with.",
)
@reports
def command(board: BoardRef, lines: int, *, follow: bool) -> Report | None:
    """Print the end of a board's log. The log outlives the daemon; the next one appends to it.

    The log of a board on another machine (tcp://HOST:PORT) is read through its relay, at most the last 1 MiB.
    """
    if follow and is_json():
        raise click.UsageError("Use either --follow or --json: a followed log has no end.")
    if isinstance(board, RemoteBoard):
        return _of_remote(board, lines, follow=follow)
    try:
        follower = Follower(board.log)
    except FileNotFoundError:
        raise NotRunningError(why_not_running(board)) from None
    except OSError as error:
        raise BoardError(f"Cannot read the log {board.log}: {error.strerror}.") from None
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(follower):  # Ctrl-C ends --follow
        pid = daemon_pid(board) if follow else None
        tail = last_lines(board.log, lines, follower.skip_to_end())
        if is_json():
            return _as_data(str(board.log), tail)
        write = _Writer()
        write(tail)
        if pid is not None:
            _follow(follower, pid, write)
        elif follow:
            show_text(f"Board {board.name} is offline; nothing to follow.", err=True)
    return None


def _of_remote(board: RemoteBoard, lines: int, *, follow: bool) -> Report | None:
    from hbrt.remote.observer import Observer  # ZeroMQ and keys: needed only for boards on other machines

    with contextlib.suppress(KeyboardInterrupt), Observer(board) as observer:
        part = observer.log(lines)
        if part.is_cut:
            held = f"An answer from the relay at {board.name} holds at most {len(part.raw)} bytes of the log"
            show_text(f"{held}; older lines are omitted.", err=True)
        if is_json():
            return _as_data(part.path, part.raw)
        write = _Writer()
        write(part.raw)
        if follow:
            _follow_remote(observer, board, part.end, write)
    return None


def _follow_remote(observer: Observer, board: RemoteBoard, end: int, write: Callable[[bytes], None]) -> None:
    """Write new lines until the board is offline.

    Raises:
        RefusedError: the relay is gone, though the board may not be.
    """
    try:
        while True:
            part = observer.log(0, end)
            write(part.raw)
            end = part.end
            if not part.raw:
                time.sleep(LOOK_SECONDS)
    except RefusedError as error:
        if error.status != Status.HB_DSP_BOARD_LOST:
            raise
        show_text(f"Board {board.name} is offline; the end of its log is on the board's machine.", err=True)


def _as_data(log: str, raw: bytes) -> Report:
    return Report({"log": log, "lines": raw.decode("utf-8", "replace").splitlines()})


def _follow(follower: Follower, pid: int, write: Callable[[bytes], None]) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        pidfd = -1  # it has just ended: only its last lines remain to be shown
    has_ended = False
    while not has_ended:
        has_ended = pidfd < 0 or bool(select.select([pidfd], [], [], Follower.LOOK_SECONDS)[0])
        for chunk in follower.read():
            write(chunk)
    if pidfd >= 0:
        os.close(pidfd)


class _Writer:
    """Writes pieces of a log, with terminal control characters escaped."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, raw: bytes) -> None:
        show_text(self._decoder.decode(raw), nl=False)
