"""Verifies leases by asking the daemon who holds one, in a separate thread so that a hung daemon delays no relay."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from typing import NamedTuple

from hbrt.attach.link import Link
from hbrt.errors import RequestRefusedError
from hbrt.status import Status

VERIFY_MS = 3000  # how long the daemon may take to answer
MAX_WAITING = 1024  # number of programs; more than a board has clients


class VerifiedLease(NamedTuple):
    """The daemon's answer about one program.

    Args:
        identity: Identity of the program's connection.
        client: The client id that the program claims to have.
        pid: Process of that client; 0 if the program does not hold its lease.
        refusal: Why the program is refused, or None.
    """

    identity: bytes
    client: int
    pid: int
    refusal: RequestRefusedError | None = None


class _Question(NamedTuple):
    identity: bytes
    client: int
    nonce: str
    proof: str
    asked_at: float


class LeaseVerifier:
    """Verifies leases, one program at a time.

    Args:
        link: The relay's attachment; only this object sends requests over it.
    """

    def __init__(self, link: Link) -> None:
        link.request_ms = VERIFY_MS
        self._link = link
        self._questions: queue.Queue[_Question | None] = queue.Queue()
        self._results: deque[VerifiedLease] = deque()
        # When the daemon last timed out, and the error.
        self._late: tuple[float, RequestRefusedError] | None = None
        self._waiting = 0
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="relay-lease-verifier", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether any programs wait for a result."""
        return self._waiting > 0

    def verify_lease(self, identity: bytes, client: int, nonce: str, proof: str) -> bool:
        """Queue a program; False if too many wait. ``fd`` becomes readable once there is a result."""
        if self._waiting >= MAX_WAITING:
            return False
        self._waiting += 1
        self._questions.put(_Question(identity, client, nonce, proof, time.monotonic()))
        return True

    def results(self) -> list[VerifiedLease]:
        """Return the results so far; call this in the thread that called ``verify_lease``."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        found = []
        while self._results:
            found.append(self._results.popleft())
        self._waiting -= len(found)
        return found

    def close(self) -> None:
        """Stop, after waiting for the request that the daemon is answering."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._questions.get_nowait()
        self._questions.put(None)
        self._thread.join()
        os.close(self.fd)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            self._results.append(self._verify(question))
            os.eventfd_write(self.fd, 1)

    def _verify(self, question: _Question) -> VerifiedLease:
        identity, client, nonce, proof, asked_at = question
        if self._late is not None and asked_at < self._late[0]:  # it has waited as long as the request that timed out
            return VerifiedLease(identity, client, 0, self._late[1])
        try:
            pid: int = self._link.request("verify_lease", peer=client, nonce=nonce, proof=proof)["pid"]
        except RequestRefusedError as error:
            if error.status == Status.HB_DSP_TIMEOUT:
                self._late = time.monotonic(), error
            return VerifiedLease(identity, client, 0, error)
        return VerifiedLease(identity, client, pid)
