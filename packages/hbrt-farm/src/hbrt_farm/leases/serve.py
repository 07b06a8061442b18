"""The process of a farm's leases: it ends on a signal, and its boards always end with it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from dsp_server.gateway.server import ListenOptions
from dsp_server.process.event_loop import ended_by_signals
from dsp_server.process.launch import raise_descriptor_limit, set_title
from hbrt.borders.printable import LINES, printable
from hbrt_farm.leases.hosted_board import KEYS_PREFIX
from hbrt_farm.leases.pools import Pool
from hbrt_farm.leases.server import LeaseServer, Limits
from hbrt_farm.temporary import remove_abandoned


def serve(options: ListenOptions, pools: list[Pool], limits: Limits, on_running: Callable[[str], None]) -> None:
    """Serve leases until a signal.

    Args:
        options: Address and keys.
        pools: The first is for programs that name no pool.
        limits: Limits of leases.
        on_running: Called once with the farm's address, when it listens.

    Raises:
        BoardError: it cannot listen, or its keys cannot be read.
    """
    raise_descriptor_limit()
    remove_abandoned(KEYS_PREFIX)  # this farm may have no keys, and must not create its own directory
    server = LeaseServer(options, pools, limits, _log)
    try:
        with ended_by_signals(server, server.stop):
            set_title("farm", server.address)
            on_running(server.address)
            server.run()
    finally:
        server.close()


def _log(sentence: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} farm {printable(sentence, LINES)}\n")
