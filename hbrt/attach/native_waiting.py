"""Threads that wait for their tasks in C: native/mailbox/wait.c."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hbrt.attach.completion_time import MIN_NS, poll_window
from hbrt.attach.waiting import MAX_WAIT_MS, MIN_DOZE_NS, PARTING_SECONDS, Waiters
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.native import native
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, CLAIM, FIRST_END, REQUEST, REQUEST_CMD_AT, State

if TYPE_CHECKING:
    from hbrt.attach.link import Link

_DONE, _RUNNING = int(FIRST_END), int(State.RUNNING)
_EVER = -1
# Answers of native/mailbox/mailbox.h.
ASK, NO_SLOT, TIMEOUT, INTERRUPTED, _, ASKED = range(0, -6, -1)
NOTHING = -6


class NativeWaiters(Waiters):
    """Threads that wait in C. When to poll is the same choice; sleeping, leading and following are in C."""

    def __init__(self, link: Link, handles: Any, *, polls: bool, client: Any) -> None:
        super().__init__(link, handles, polls=polls)
        module = native()
        self._ffi, self._lib, self._client = module.ffi, module.lib, client
        self.c_wait = module.lib.hbrt_wait
        self.polled = module.ffi.new("int *")
        self._is_lease_watched = False
        self._polled_no_more = module.ffi.new("int *")
        self.only_sleeps = False  # waits have no limit, and the lease is watched
        link.on_fault = self.leave

    def wake(self) -> None:
        """As ``Waiters.wake``."""
        self._lib.hbrt_wake(self._client)

    def nudge(self) -> None:
        """As ``Waiters.nudge``."""
        self._lib.hbrt_nudge(self._client)

    def leave(self) -> None:
        """Have every waiting thread return."""
        self._lib.hbrt_client_leave(self._client)

    def close(self) -> None:
        """As ``Waiters.close``."""
        self.leave()
        deadline = time.monotonic() + PARTING_SECONDS
        while self._lib.hbrt_client_waiting(self._client) and time.monotonic() < deadline:
            self.leave()
            time.sleep(0.0002)
        self._epoll.close()

    def sleep_until_any(self, handles: Iterable[int], ready: Callable[[], bool]) -> None:
        """As ``Waiters.sleep_until_any``."""
        lib, client = self._lib, self._client
        while True:
            seen, watched = lib.hbrt_nudges(client), list(handles)
            if ready():
                return
            self.see_lease()
            found = lib.hbrt_wait_any(client, watched, len(watched), seen, _EVER)
            if found == ASKED:
                self._report_waits()
            elif found != INTERRUPTED:
                return

    def state_at_end(self, slot: int, handle: int, timeout_ms: float) -> int:
        """Wait until a task has ended: the state of its slot, or an answer below 1 of ``hbrt_wait``."""
        choice = self.choice
        timeout_ns = int(timeout_ms * 1e6) if 0 < timeout_ms <= MAX_WAIT_MS else _EVER
        polls = choice.polls
        state = self._in_c_around(slot, handle, timeout_ns) if polls else self._in_c(handle, timeout_ns, 0)
        if self.polls and state >= _DONE:
            if choice.measures:
                self.measure(slot)
            else:
                choice.skip()
        return state

    def _in_c(self, handle: int, timeout_ns: int, poll_ns: int) -> int:
        """Wait in C, and continue after a signal's handler, or a question of the daemon."""
        self.see_lease()
        end_ns = time.monotonic_ns() + timeout_ns if timeout_ns >= 0 else 0
        polled = self.polled
        while True:
            found: int = self.c_wait(self._client, handle, timeout_ns, poll_ns, polled)
            if found == ASKED:
                self._report_waits()
            elif found != INTERRUPTED:
                return found
            poll_ns, polled = 0, self._polled_no_more
            if timeout_ns >= 0:
                timeout_ns = max(end_ns - time.monotonic_ns(), 0)

    def _in_c_around(self, slot: int, handle: int, timeout_ns: int) -> int:
        """Poll for the end of a task, or for a longer one around the time when it is expected; then sleep."""
        mm, record = self._map, self._records + slot * SLOT_RECORD_BYTES
        call = mm[record + REQUEST_CMD_AT : record + REQUEST.size]
        expected_ns, begin_ns = self._times.of(call), time.monotonic_ns()
        if not expected_ns:
            found = self._in_c(handle, timeout_ns, self._spinner.begin())
            self._spinner.note(self.polled[0])
        else:
            found = self._doze(slot, handle, expected_ns, timeout_ns)
        if found == _DONE and (expected_ns or time.monotonic_ns() - begin_ns > MIN_NS):
            _, _, _, _, claim_ns, _, done_ns, _ = ANSWER.unpack_from(mm, record + ANSWER_OFFSET)
            self._times.note(call, done_ns - claim_ns)
        return found

    def _doze(self, slot: int, handle: int, expected_ns: int, timeout_ns: int) -> int:
        """Sleep until a task is about to end, then poll, then sleep."""
        mm, record = self._map, self._records + slot * SLOT_RECORD_BYTES
        sleep_ns, poll_ns = poll_window(expected_ns)
        if mm[self._states + slot] == _RUNNING:
            sleep_ns -= time.monotonic_ns() - CLAIM.unpack_from(mm, record + ANSWER_OFFSET)[4]
        if 0 <= timeout_ns < sleep_ns + poll_ns:
            return self._in_c(handle, timeout_ns, 0)
        if sleep_ns >= MIN_DOZE_NS:
            found = self._in_c(handle, sleep_ns, 0)
            if found != TIMEOUT:
                return found
            timeout_ns -= sleep_ns if timeout_ns >= 0 else 0
        # A task that no core has claimed by now ends much later.
        polls_now = mm[self._states + slot] >= _RUNNING
        found = self._in_c(handle, timeout_ns, self._late.begin(poll_ns) if polls_now else 0)
        if polls_now:
            self._late.note(self.polled[0])
        return found

    def see_lease(self) -> None:
        """Have waiters woken when the board goes."""
        if not self._is_lease_watched:
            self._link.watch_lease()
            self._is_lease_watched = True
            self.only_sleeps = not self.polls
