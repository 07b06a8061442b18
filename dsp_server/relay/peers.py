"""The ARM processes that a relay serves."""

from __future__ import annotations

import os
import secrets
import time

from hbrt.errors import RequestRefusedError


class Peer:
    """One ARM process: a client of the board that has shown its lease.

    Args:
        identity: Of its connection, on the relay's ROUTER socket.
        client: Its client id on the board: whose slots it may send.
        pid: Its process, as the kernel told the daemon.

    Raises:
        RequestRefusedError: the process has gone, or no descriptor is left to watch it.
    """

    def __init__(self, identity: bytes, client: int, pid: int) -> None:
        self.identity = identity
        self.client = client
        self.pid = pid
        self.ticket = secrets.randbits(64) or 1
        self.heard_at = time.monotonic()
        self.is_heard = False  # since ``heard_at``
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise RequestRefusedError(0, f"Process {pid} cannot be watched: {error.strerror}.") from None

    def close(self) -> None:
        """Watch the process no more."""
        os.close(self.pidfd)
