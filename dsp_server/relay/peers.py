"""The ARM processes that a relay serves, and the tasks that it carries for them."""

from __future__ import annotations

import os
import time

from hbrt.refusal import RequestRefusedError

MOST_TASKS = 1024  # of one process, that have not ended; as many slots as one client of a board may lease


class Carried:
    """A task that a relay carries."""

    __slots__ = ("handle", "number", "peer", "request", "slot")

    def __init__(self, peer: Peer, number: int, request: tuple[int, ...]) -> None:
        self.peer = peer
        self.number = number  # what the peer calls it
        self.request = request  # the fields of hbrt.relay_wire.TASK_REQUEST
        self.handle = 0  # what the relay's own Tasks calls it; 0 while it waits for a slot
        self.slot = -1


class Peer:
    """One ARM process: a client of the board that has shown its lease.

    Args:
        identity: Of its connection, on the relay's ROUTER socket.
        client: Its client id on the board: whose memory its tasks may use.
        pid: Its process, as the kernel told the daemon.
        proof: Nonce and proof that it showed; they hold as long as its lease.
    """

    def __init__(self, identity: bytes, client: int, pid: int, proof: tuple[str, str]) -> None:
        self.identity = identity
        self.client = client
        self.pid = pid
        self.proof = proof
        self.tasks: dict[int, Carried] = {}  # those that have not ended, by number
        self.heard_at = time.monotonic()
        self.is_heard = False  # since ``heard_at``
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise RequestRefusedError(0, f"Process {pid} cannot be watched: {error.strerror}.") from None

    def close(self) -> None:
        """Watch the process no more."""
        os.close(self.pidfd)
