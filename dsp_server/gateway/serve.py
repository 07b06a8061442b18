"""The gate's life as a process: it ends with its board, or when told to.

It is a process of its own, apart from the relay of this machine's programs: whatever passes here, and however much,
that relay's calls do not wait for it, and one that a program started by itself does not stand in the way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from dsp_server.gateway.gateway import Gate
from dsp_server.gateway.listening import Listen, parse
from dsp_server.process.end_signals import ended_by_signals
from dsp_server.process.fd_limit import raise_descriptor_limit
from dsp_server.process.process_title import set_title
from dsp_server.relay import PROGRAM
from dsp_server.relay.serve import say, serve_and_announce
from hbrt.attach.link import Link
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError

READY_FD = 3


def serve(paths: BoardPaths, listen: Listen, on_running: Callable[[str], None]) -> None:
    """Let programs of other machines in, until told to end or the board ends.

    Args:
        paths: The board.
        listen: Where, and for whom.
        on_running: Called once with the endpoint, when it serves.

    Raises:
        BoardError: it cannot listen there; no daemon serves the board, or it refused.
    """
    raise_descriptor_limit()
    link = Link(paths, PROGRAM)
    try:
        gate = Gate(link, listen, say)
        try:
            with ended_by_signals(gate, gate.stop):
                say(f"The relay listens at {gate.endpoint}, {'with' if listen.keys else 'without'} keys.")
                on_running(gate.endpoint)
                set_title("gateway", paths.name)
                gate.run()
        finally:
            gate.close()
    finally:
        link.close()


def main() -> NoReturn:
    """Entry of a gateway that a daemon starts: ``directory endpoint keys daemon_pid``; ``keys`` may be empty."""
    directory, endpoint, keys, daemon = sys.argv[1:]
    os.set_inheritable(READY_FD, False)

    def body(announce: Callable[[str], None]) -> None:
        def on_running(listens_at: str) -> None:
            if os.getppid() != int(daemon):  # the board's next daemon does not know this process
                raise BoardError("The daemon that started this relay has ended.")
            announce(listens_at)

        serve(BoardPaths(Path(directory)), parse(endpoint, Path(keys) if keys else None), on_running)

    sys.exit(serve_and_announce(body, READY_FD))
