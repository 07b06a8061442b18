"""``hbrt log``: what a board's daemon, its cores and their ops have said."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
from collections.abc import Callable

import click

from hbrt.board.files import daemon_pid
from hbrt.board.log_file import Follower, last_lines
from hbrt.board.paths import BoardRef, RemoteBoard
from hbrt.cli.options import any_board_option, json_option
from hbrt.cli.tables import show_json, show_text
from hbrt.control.daemon import why_not_running
from hbrt.errors import BoardError, NotRunningError

LINES = 100


@click.command(short_help="Print a board's log, or follow it.", epilog="Example: hbrt log -f")
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
@json_option
def command(board: BoardRef, lines: int, *, follow: bool, as_json: bool) -> None:
    """Print the end of a board's log. It outlives the daemon, and continues with the next one.

    That of a board of another machine (tcp://HOST:PORT) comes over its relay, at most its last MiB.
    """
    if follow and as_json:
        raise click.UsageError("--follow has no end and --json is one document; leave one of the two out.")
    if isinstance(board, RemoteBoard):
        _show_remote(board, lines, follow=follow, as_json=as_json)
        return
    try:
        follower = Follower(board.log)
    except FileNotFoundError:
        raise NotRunningError(why_not_running(board)) from None
    except OSError as error:
        raise BoardError(f"The log {board.log} cannot be read: {error.strerror}.") from None
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(follower):  # Ctrl-C is how one leaves
        pid = daemon_pid(board) if follow else None
        tail = last_lines(board.log, lines, follower.skip_to_end())
        if as_json:
            _show_json(str(board.log), tail)
            return
        write = _Writer()
        write(tail)
        if pid is not None:
            _follow(follower, pid, write)
        elif follow:
            show_text(f"Board {board.name} is offline: there is nothing to follow.", err=True)


def _show_remote(board: RemoteBoard, lines: int, *, follow: bool, as_json: bool) -> None:
    from dsp_server.commands import _remote_log

    if as_json:
        part = _remote_log.tail(board, lines)
        _show_json(part.path, part.raw)
        return
    with contextlib.suppress(KeyboardInterrupt):
        if follow:
            _remote_log.follow(board, lines, _Writer())
        else:
            _Writer()(_remote_log.tail(board, lines).raw)


def _show_json(log: str, raw: bytes) -> None:
    show_json({"log": log, "lines": raw.decode("utf-8", "replace").splitlines()})


def _follow(follower: Follower, pid: int, write: Callable[[bytes], None]) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        pidfd = -1  # it has just ended: only its last lines are left to show
    has_ended = False
    while not has_ended:
        has_ended = pidfd < 0 or bool(select.select([pidfd], [], [], Follower.LOOK_SECONDS)[0])
        for chunk in follower.read():
            write(chunk)
    if pidfd >= 0:
        os.close(pidfd)


class _Writer:
    """Writes pieces of a log; what a terminal would obey in them is escaped."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, raw: bytes) -> None:
        show_text(self._decoder.decode(raw), nl=False)
