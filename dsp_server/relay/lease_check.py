"""Verifies leases: asks the daemon which client holds one, in its own thread, so a hung daemon delays no relay."""

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

VERIFY_MS = 3000  # for the daemon to answer
MAX_WAITING = 1024  # programs; more than the clients of a board


class VerifiedLease(NamedTuple):
    """The daemon's answer about one program.

    Args:
        identity: The identity of the program's connection.
        client: The client id that the program claims.
        pid: Process of that client; 0 when the program does not hold the lease.
        refusal: The reason of a refusal, else None.
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
    """Verifies leases, one program after the other.

    Args:
        link: The relay's attachment; only this object sends requests over it.
    """

    def __init__(self, link: Link) -> None:
        link.request_ms = VERIFY_MS
        self._link = link
        self._questions: queue.Queue[_Question | None] = queue.Queue()
        self._results: deque[VerifiedLease] = deque()
        # The time of the daemon's last timeout, and its error.
        self._late: tuple[float, RequestRefusedError] | None = None
        self._waiting = 0
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="relay-lease-verifier", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether programs wait for a result."""
        return self._waiting > 0

    def verify_lease(self, identity: bytes, client: int, nonce: str, proof: str) -> bool:
        """Queue a program; False when too many wait. ``fd`` becomes readable when a result is there."""
        if self._waiting >= MAX_WAITING:
            return False
        self._waiting += 1
        self._questions.put(_Question(identity, client, nonce, proof, time.monotonic()))
        return True

    def results(self) -> list[VerifiedLease]:
        """The results that are there, for the thread that called ``verify_lease``."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        found = []
        while self._results:
            found.append(self._results.popleft())
        self._waiting -= len(found)
        return found

    def close(self) -> None:
        """Stop; waits for the request that the daemon is answering."""
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
        if self._late is not None and asked_at < self._late[0]:  # it waited as long as the request that timed out
            return VerifiedLease(identity, client, 0, self._late[1])
        try:
            pid: int = self._link.request("verify_lease", peer=client, nonce=nonce, proof=proof)["pid"]
        except RequestRefusedError as error:
            if error.status == Status.HB_DSP_TIMEOUT:
                self._late = time.monotonic(), error
            return VerifiedLease(identity, client, 0, error)
        return VerifiedLease(identity, client, pid)
