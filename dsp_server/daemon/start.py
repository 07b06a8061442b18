"""Starts a daemon: detached, for ``hbrt start``; in the terminal, for ``dsp_server`` and ``--foreground``.

``hbrt start`` has already loaded much of what a daemon needs, so it forks the detached daemon. This saves starting an
interpreter, which ``hbrt.board.launch`` has to do because any process may call it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dsp_server.daemon.daemon import serve, serve_and_announce
from dsp_server.process.launch import fork_detached
from hbrt.board.files import make_directory
from hbrt.board.launch import DaemonConfig, Launched, await_running, open_log
from hbrt.board.log_file import Follower
from hbrt.board.paths import BoardPaths


def start_detached(config: DaemonConfig) -> Launched:
    """Fork a daemon, detached from this terminal and session, and wait until its board is running.

    Raises:
        DidNotStartError: the daemon could not start; the text is the daemon's own message, or the end of its log.
        BoardError: the board's directory cannot be used.
    """
    paths = BoardPaths(Path(config.directory))
    make_directory(paths)
    pid, ready = fork_detached(partial(serve_and_announce, config), open_log(paths))
    removed = await_running(pid, ready, config)
    return Launched(paths, pid, -1, removed)


def serve_in_foreground(config: DaemonConfig, on_running: Callable[[list[str]], None]) -> None:
    """Run the daemon in this process until Ctrl-C, SIGTERM or ``hbrt stop``; also show the log on stderr.

    Args:
        config: The configuration of the board.
        on_running: Called once the board is running, with the names of files left behind by a dead daemon.

    Raises:
        BoardError, ImageError, LayoutError, BadSettingError: see ``serve``.
    """
    paths = BoardPaths(Path(config.directory))
    make_directory(paths)
    log = open_log(paths)
    # The cores write only to the file: a terminal that stops reading (Ctrl-S) must not stop the board.
    follower = Follower(paths.log)
    follower.skip_to_end()
    terminal = os.dup(2)
    os.dup2(log, 2)
    os.close(log)
    has_ended = threading.Event()
    thread = threading.Thread(target=_show, args=(follower, terminal, has_ended), daemon=True)
    thread.start()
    try:
        serve(config, on_running)
    finally:
        has_ended.set()
        thread.join(timeout=1.0)
        os.dup2(terminal, 2)
        os.close(terminal)
        follower.close()


def _show(follower: Follower, terminal: int, has_ended: threading.Event) -> None:
    """Copy new log lines to the terminal, and the rest at the end."""
    while True:
        is_last = has_ended.wait(Follower.LOOK_SECONDS)
        try:
            for chunk in follower.read():
                os.write(terminal, chunk)
        except OSError:
            return  # the terminal has closed; the log has every line
        if is_last:
            return
