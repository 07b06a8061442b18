"""Waiting for the ends of a process's tasks: poll where that pays, then sleep on the process's one doorbell.

Of many threads that wait, one (the leader) sleeps on the doorbell. It wakes the others (followers) whose tasks have
ended. When the leader leaves, a follower takes the lead.

An interrupt (Ctrl-C, a handler that raises) may end a wait at the entry of any function and after any call of one in C.
So the leader is an entry that its owner removes without a call, and followers check by themselves once in a while.

For the end of a task that took long the last time, a waiter does not poll at once: it sleeps until the task is about
to end, and polls then, so that no wake-up comes between its end and the next call (hbrt/attach/completion_time.py).
Whether to poll at all depends on what tasks have cost both ways (hbrt/attach/poll_choice.py).
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING

from hbrt.attach.completion_time import CompletionTimes
from hbrt.attach.poll_choice import PollChoice
from hbrt.ddr.fence import Fence
from hbrt.ddr.layout import CLIENT_ASKED, CLIENT_ASLEEP, CLIENT_SLEEPS, SLOT_RECORD_BYTES
from hbrt.mailbox.spin import MAX_SKIPPED_IN_VAIN, Spinner
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, FIRST_END, SUBMITTED, State
from hbrt.protocol.control import MAX_TEXT
from hbrt.protocol.stacks import text_of

if TYPE_CHECKING:
    from hbrt.attach.link import Link

PARTING_SECONDS = 2.0
FOLLOWER_BEAT_SECONDS = 0.2  # a leader that was interrupted may not have woken the others
MAX_WAIT_MS = (1 << 31) - 1  # the limit of epoll; longer waits are endless
MAX_SKIPPED = (MAX_SKIPPED_IN_VAIN, 0)  # PollChoice measures the cost of a lost CPU
LATE_MOST_SKIPPED = (1, 0)  # a poll window is a small part of the call that it waits for, even when it is vain
MIN_DOZE_NS = 50_000  # setting a timer and waking by it takes as long
MAX_EXACT_SECONDS = 0.1  # longer waits end at a whole millisecond, the resolution of epoll
FD_SETSIZE = 1024  # of select(2)
_DONE = int(FIRST_END)  # a plain integer: comparing with a member of an enum costs a call
_RUNNING = int(State.RUNNING)


class Waiters:
    """The threads of one process that wait for tasks on one board.

    Args:
        link: This process's attachment.
        handles: Present handle of each slot, 0 when none: the caller's own list, which it continues writing.
        polls: Whether to poll before sleeping.
    """

    def __init__(self, link: Link, handles: Sequence[int] | memoryview[int], *, polls: bool) -> None:
        layout = link.ddr.layout
        self._link = link
        self._map = link.mailbox.map
        self._states, self._records = layout.states, layout.records
        self._asleep_at = layout.client(link.client_id) + CLIENT_ASLEEP
        self._asked_at = layout.client(link.client_id) + CLIENT_ASKED
        self._handles = handles
        self._spinner, self._late = Spinner(most_skipped=MAX_SKIPPED), Spinner(most_skipped=LATE_MOST_SKIPPED)
        self.polls = polls and self._spinner.budget_ns > 0
        self.choice = PollChoice(may_poll=self.polls)
        self._times = CompletionTimes()
        self._sleeps_at = layout.client(link.client_id) + CLIENT_SLEEPS
        self._map[self._sleeps_at] = polls and not self.polls
        self._fence = Fence()
        self._epoll = select.epoll()
        self._poll = self._epoll.poll
        self._is_selectable = self._epoll.fileno() < FD_SETSIZE
        self._epoll.register(link.doorbell, select.EPOLLIN | select.EPOLLET)
        self._lease_fd = link.lease.fileno()
        self._epoll.register(self._lease_fd, 0)  # a hang-up is always reported
        self._watched: dict[int, Callable[[], None]] = {}
        self._leader: dict[int, object] = {}  # under 0: the leader
        self._followers: dict[object, tuple[Callable[[], bool], threading.Lock]] = {}

    def sleep_until(self, ready: Callable[[], bool], timeout_ms: float = 0) -> bool:
        """Poll, then sleep, until ``ready``; False on expiry (<= 0 never expires) or when the board is gone."""
        if self.choice.polls and not self._followers and self._spinner.spin(ready):
            return True
        return self._sleep(ready, _deadline(timeout_ms))

    def sleep_until_any(self, handles: Iterable[int], ready: Callable[[], bool]) -> None:  # noqa: ARG002 - C needs them
        """Sleep until ``ready``, or until the board is gone; it changes by ends of these tasks and by ``nudge``."""
        self.sleep_until(ready)

    def nudge(self) -> None:
        """Have every thread in ``sleep_until_any`` check again."""
        eventfd_write(self._link.doorbell, 1)

    def wake(self) -> None:
        """Have this process's own waiters check: a task has ended, or its handle is gone, without a core."""
        if self._leader:
            eventfd_write(self._link.doorbell, 1)

    def close(self) -> None:
        """End every wait with the link's fault, then close the descriptors of this object."""
        deadline = time.monotonic() + PARTING_SECONDS
        while (self._leader or self._followers) and time.monotonic() < deadline:
            eventfd_write(self._link.doorbell, 1)
            time.sleep(0.0002)
        self._epoll.close()

    def watch(self, fd: int, on_event: Callable[[], None]) -> None:
        """Have a thread that sleeps here call ``on_event()``, again and again while ``fd`` is readable."""
        self._watched[fd] = on_event
        self._epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; call it before the descriptor is closed."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    # -- one task -----------------------------------------------------------------------------------------------

    def measure(self, slot: int) -> None:
        """Give the choice between polling and sleeping the cost of a task whose wait has ended."""
        mm, record, choice = self._map, self._records + slot * SLOT_RECORD_BYTES, self.choice
        if mm[self._states + slot] == _DONE and not self._followers:
            _, _, _, _, _, start_ns, done_ns, _ = ANSWER.unpack_from(mm, record + ANSWER_OFFSET)
            now_ns = monotonic_ns()
            # From the submission on, because a core is rung there; without the op, whose time varies.
            choice.note(now_ns - SUBMITTED.unpack_from(mm, record)[0] - done_ns + start_ns, now_ns)
            mm[self._sleeps_at] = not choice.polls

    # -- sleep --------------------------------------------------------------------------------------------------

    def _sleep(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        try:
            while not ready():
                if self._link.fault:
                    return False
                me, leader = object(), self._leader
                try:
                    if leader.setdefault(0, me) is me:
                        return self._lead(ready, deadline)
                finally:
                    try:
                        if leader[0] is me:
                            del leader[0]
                    except KeyError:
                        pass
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._follow(ready, left)
            return True
        finally:
            # A thread that leaves passes the lead on: its own, or one that it was given and no longer needs.
            if self._followers and not self._leader:
                self._hand_over()

    def _lead(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        mm, asleep_at, link = self._map, self._asleep_at, self._link
        try:
            while True:
                mm[asleep_at] = 1
                self._fence.full()
                if self._followers:
                    self._wake_followers()  # after the flag: a core that did not see it has ended its task by now
                if mm[self._asked_at]:
                    self._report_waits()
                if (is_ready := ready()) or link.fault:
                    return is_ready
                patience = None if deadline is None else deadline - time.monotonic()
                if patience is not None and patience <= 0:
                    return False
                if patience is not None and patience < MAX_EXACT_SECONDS and self._is_selectable:
                    select.select((self._epoll,), (), (), patience)
                    patience = 0
                for fd, _ in self._poll(patience, 4):
                    if fd == self._lease_fd:
                        link.lose()
                        return ready()
                    if (on_event := self._watched.get(fd)) is not None:
                        on_event()
        finally:
            mm[asleep_at] = 0

    def _report_waits(self) -> None:
        """Send the daemon, which asked for them, the waits of this process."""
        self._map[self._asked_at] = 0
        from hbrt.attach.wait_sites import waits  # programs alone do not need it

        self._link.tell("waits", text=text_of(waits(), MAX_TEXT))
        if self._link.on_asked is not None:
            self._link.on_asked()

    def _follow(self, ready: Callable[[], bool], left: float | None) -> None:
        bell = threading.Lock()
        bell.acquire()
        key = object()
        self._followers[key] = (ready, bell)
        try:
            # A present leader sees this follower; a leader that has just left has freed the lead.
            if not ready() and self._leader:
                bell.acquire(timeout=FOLLOWER_BEAT_SECONDS if left is None else min(left, FOLLOWER_BEAT_SECONDS))
        finally:
            self._followers.pop(key, None)

    def _wake_followers(self) -> None:
        for key, (ready, bell) in list(self._followers.items()):
            if ready():
                self._release(key, bell)

    def _hand_over(self) -> None:
        for key, (_, bell) in list(self._followers.items()):
            if self._release(key, bell):
                return

    def _release(self, key: object, bell: threading.Lock) -> bool:
        """Wake a follower once, by the first leader that finds it."""
        try:
            del self._followers[key]
        except KeyError:
            return False
        bell.release()
        return True


def _deadline(timeout_ms: float) -> float | None:
    return time.monotonic() + timeout_ms / 1000 if 0 < timeout_ms <= MAX_WAIT_MS else None
