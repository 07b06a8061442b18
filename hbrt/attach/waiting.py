"""A process's threads that wait for its tasks: native/mailbox/wait.c defines how they poll, sleep and wake each other.

This module handles what a C wait returns for: a pending signal handler, and a question from the daemon.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from hbrt.ddr.layout import CLIENT_ASKED
from hbrt.mailbox.native import ASKED, INTERRUPTED, native
from hbrt.protocol.control import MAX_TEXT
from hbrt.protocol.stacks import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link

PARTING_SECONDS = 2.0
MAX_WAIT_MS = (1 << 31) - 1  # longer waits have no limit
_EVER = -1


class Waiters:
    """The threads of one process that wait for tasks on one board.

    Args:
        link: This process's attachment.
        client: The attachment in C.
    """

    def __init__(self, link: Link, client: Any) -> None:
        self._link, self._client = link, client
        self._lib = native().lib
        self._c_wait = self._lib.hbrt_wait
        self._asked_at = link.ddr.layout.client(link.client_id) + CLIENT_ASKED
        self.is_lease_watched = False
        link.on_fault = self.release_all

    def wait(self, handle: int, timeout_ms: float) -> int:
        """Wait until a task has ended or its board is gone; call ``watch_lease`` first.

        Args:
            handle: The task.
            timeout_ms: Milliseconds; <= 0 waits forever.

        Returns:
            The state of its slot; or an answer below 1 of ``hbrt_wait``.

        Raises:
            OverflowError: the handle has more than 63 bits.
        """
        timeout_ns = int(timeout_ms * 1e6) if 0 < timeout_ms <= MAX_WAIT_MS else _EVER
        end_ns = monotonic_ns() + timeout_ns if timeout_ns >= 0 else 0
        polls = 1
        while True:
            found: int = self._c_wait(self._client, handle, timeout_ns, polls)
            if found == ASKED:
                self._report_waits()
            elif found != INTERRUPTED:
                return found
            polls = 0
            if timeout_ns >= 0:
                timeout_ns = max(end_ns - monotonic_ns(), 0)

    def sleep_until_any(self, handles: Iterable[int], ready: Callable[[], bool], timeout_ms: float = 0) -> None:
        """Sleep until ``ready`` or until the board is gone; checked when one of these tasks ends, and on ``nudge``.

        Args:
            handles: Returns the tasks that are live at each check.
            ready: The condition.
            timeout_ms: Milliseconds; <= 0 waits forever.
        """
        lib, client = self._lib, self._client
        end_ns = monotonic_ns() + int(timeout_ms * 1e6) if timeout_ms > 0 else 0
        while True:
            seen, watched = lib.hbrt_nudges(client), list(handles)
            if ready():
                return
            self.watch_lease()
            left_ns = max(end_ns - monotonic_ns(), 0) if end_ns else _EVER
            found = lib.hbrt_wait_any(client, watched, len(watched), seen, left_ns)
            if found == ASKED:
                self._report_waits()
            elif found != INTERRUPTED:
                return

    def nudge(self) -> None:
        """Make every thread in ``sleep_until_any`` check again."""
        self._lib.hbrt_nudge(self._client)

    def wake(self) -> None:
        """Make this process's waiters check: a task has ended, or its handle is gone, without a core."""
        self._lib.hbrt_wake(self._client)

    def release_all(self) -> None:
        """Make every waiting thread return."""
        self._lib.hbrt_client_leave(self._client)

    def close(self) -> None:
        """End every wait with the link's fault."""
        deadline = time.monotonic() + PARTING_SECONDS
        while self._lib.hbrt_client_waiting(self._client) and time.monotonic() < deadline:
            self.release_all()
            time.sleep(0.0002)

    def watch_lease(self) -> None:
        """Arrange to wake waiters when the board is lost."""
        if not self.is_lease_watched:
            self._link.watch_lease()
            self.is_lease_watched = True

    def _report_waits(self) -> None:
        """Send this process's waits to the daemon, which asked for them."""
        self._link.mailbox.map[self._asked_at] = 0
        from hbrt.attach.wait_sites import waits  # not needed for programs alone

        self._link.tell("waits", text=text_of(waits(), MAX_TEXT))
        if self._link.on_asked is not None:
            self._link.on_asked()
