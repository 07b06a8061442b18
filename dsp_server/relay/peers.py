"""The ARM processes that a relay serves."""

from __future__ import annotations

import os
import secrets
import time

from hbrt.errors import RequestRefusedError


class Peer:
    """One ARM process: a client of the board whose lease has been verified.

    Args:
        identity: Identity of its connection on the relay's ROUTER socket.
        client: Its client id on the board; it may submit from this client's slots.
        pid: Its process id, as the kernel reported it to the daemon.

    Raises:
        RequestRefusedError: the process has ended, or there is no descriptor left to watch it.
    """

    def __init__(self, identity: bytes, client: int, pid: int) -> None:
        self.identity = identity
        self.client = client
        self.pid = pid
        self.ticket = secrets.randbits(64) or 1
        self.active_at = time.monotonic()
        self.was_active = False  # since ``active_at``
        self.last_slot = 0  # slot of its latest task
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise RequestRefusedError(0, f"Cannot watch process {pid}: {error.strerror}.") from None

    def close(self) -> None:
        """Stop watching the process."""
        os.close(self.pidfd)
