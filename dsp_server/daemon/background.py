"""Starts a daemon that is detached from its terminal, for ``hbrt start``.

``hbrt start`` has loaded much of what a daemon needs, so the daemon is a fork of it. This saves an interpreter start,
which ``hbrt.board.launch`` needs because any process may call it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dsp_server.daemon.daemon import serve_and_announce
from dsp_server.process.launch import live_detached
from hbrt.board.files import make_directory
from hbrt.board.launch import DaemonConfig, Launched, await_running, open_log
from hbrt.board.paths import BoardPaths


def start_detached(config: DaemonConfig) -> Launched:
    """Fork a daemon, detached from this terminal and session, and wait until its board is running.

    Raises:
        DidNotStartError: the daemon could not start; the text is the daemon's own sentence, or the end of its log.
        BoardError: the board's directory cannot be used.
    """
    paths = BoardPaths(Path(config.directory))
    make_directory(paths)
    log = open_log(paths)
    ready_read, ready_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        live_detached(lambda: serve_and_announce(config, ready_write), log, ready_write)
    os.close(ready_write)
    os.close(log)
    removed = await_running(pid, ready_read, config)
    return Launched(paths, pid, -1, removed)
