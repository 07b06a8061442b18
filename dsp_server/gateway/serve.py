"""The gateway process, which ends with its board or on a signal.

It is separate from the relay for this machine's programs, so that its traffic does not delay that relay's calls, and
a relay started by a program does not prevent a gateway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from dsp_server.clients import RELAY
from dsp_server.gateway.gateway import Gateway
from dsp_server.gateway.listening import ListenOptions, parse_endpoint
from dsp_server.process.event_loop import ended_by_signals
from dsp_server.process.launch import raise_descriptor_limit, set_title
from dsp_server.relay.serve import serve_and_announce, write_log
from hbrt.attach.link import LocalLink
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError

READY_FD = 3


def serve(paths: BoardPaths, options: ListenOptions, on_running: Callable[[str], None]) -> None:
    """Serve programs on other machines until a signal or the end of the board.

    Args:
        paths: The board.
        options: Address and keys.
        on_running: Called once, with the endpoint, when the gateway is listening.

    Raises:
        BoardError: the gateway cannot listen; no daemon serves the board, or it refused.
    """
    raise_descriptor_limit()
    link = LocalLink(paths, RELAY)
    try:
        gateway = Gateway(link, options, write_log)
        try:
            with ended_by_signals(gateway, gateway.stop):
                write_log(f"The relay listens at {gateway.endpoint}, {'with' if options.keys else 'without'} keys.")
                on_running(gateway.endpoint)
                set_title("gateway", paths.name)
                gateway.run()
        finally:
            gateway.close()
    finally:
        link.close()


def main() -> NoReturn:
    """Run a gateway started by a daemon; arguments: ``directory endpoint keys daemon_pid``; ``keys`` may be empty."""
    directory, endpoint, keys, daemon = sys.argv[1:]
    os.set_inheritable(READY_FD, False)

    def body(announce: Callable[[str], None]) -> None:
        def on_running(listens_at: str) -> None:
            if os.getppid() != int(daemon):  # the board's next daemon does not know this process
                raise BoardError("The daemon that started this relay has ended.")
            announce(listens_at)

        serve(BoardPaths(Path(directory)), parse_endpoint(endpoint, Path(keys) if keys else None), on_running)

    sys.exit(serve_and_announce(body, READY_FD))
