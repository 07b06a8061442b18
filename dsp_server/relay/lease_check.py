"""Has the daemon say whose lease a program shows, in a thread of its own: one that hangs keeps no relay waiting."""

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

VOUCH_MS = 3000  # for the daemon to answer
MOST_WAITING = 1024  # programs; more than can be clients of a board at once


class Vouched(NamedTuple):
    """What the daemon said of a program.

    Args:
        identity: Of its connection.
        client: Which it says that it is.
        pid: Process of that client; 0 when the daemon does not vouch for it.
        refusal: Why not, None when it does.
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


class Voucher:
    """Asks the daemon, one program after the other.

    Args:
        link: The relay's attachment; nobody else makes requests of it.
    """

    def __init__(self, link: Link) -> None:
        link.request_ms = VOUCH_MS
        self._link = link
        self._questions: queue.Queue[_Question | None] = queue.Queue()
        self._answers: deque[Vouched] = deque()
        # When the daemon was last given up, and what was said then.
        self._late: tuple[float, RequestRefusedError] | None = None
        self._waiting = 0
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="relay-voucher", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether programs wait for an answer."""
        return self._waiting > 0

    def ask(self, identity: bytes, client: int, nonce: str, proof: str) -> bool:
        """Have a program looked up; False when too many wait. ``fd`` becomes readable when there is an answer."""
        if self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        self._questions.put(_Question(identity, client, nonce, proof, time.monotonic()))
        return True

    def answers(self) -> list[Vouched]:
        """The answers that have come, for the thread that asked."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        found = []
        while self._answers:
            found.append(self._answers.popleft())
        self._waiting -= len(found)
        return found

    def close(self) -> None:
        """Ask no more; waits for the question that the daemon has."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._questions.get_nowait()
        self._questions.put(None)
        self._thread.join()
        os.close(self.fd)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            self._answers.append(self._look_up(question))
            os.eventfd_write(self.fd, 1)

    def _look_up(self, question: _Question) -> Vouched:
        identity, client, nonce, proof, asked_at = question
        if self._late is not None and asked_at < self._late[0]:  # it waited as long as the one that was given up
            return Vouched(identity, client, 0, self._late[1])
        try:
            pid: int = self._link.request("vouch", peer=client, nonce=nonce, proof=proof)["pid"]
        except RequestRefusedError as error:
            if error.status == Status.HB_DSP_TIMEOUT:
                self._late = time.monotonic(), error
            return Vouched(identity, client, 0, error)
        return Vouched(identity, client, pid)
