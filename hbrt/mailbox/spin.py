"""Polling before sleeping: adaptive, yielding, settable, never where only one CPU may be used.

A doorbell wakes a sleeper in 20 to 80 us across two CPUs. A peer that is about to answer needs less. A peer that is
about to call, through a relay or between two layers of a model, needs some 200 us. So a waiter first polls, and yields
between polls. How it polls depends on the CPUs that this process may use:

- Several: it polls a few times between yields, until its budget is spent. Where the scheduler put both sides on one
  CPU, the yields let the peer run.
- One: never. The peer cannot run while the waiter polls, and a yield may go to a third process for a whole time slice,
  or give nothing away: the scheduler returns the CPU to a waiter that has had less of it than its peer.

A waiter that polled in vain twice does not poll in its next waits. It skips more and more of them, and fewer again once
polling pays: a program that calls ten times and then pauses should find pollers in its next ten calls. A waiter that
lost the CPU for long skips many more, and returns to polling slowly.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic_ns

from hbrt import settings

BUDGET_NS = 300_000
POLLS_PER_YIELD = 6
LOST_CPU_NS = 600_000  # a poll that takes so much longer than its budget has lost the CPU
MAX_SKIPPED_IN_VAIN = 6  # as a power of two
MAX_SKIPPED_CPU_LOST = 12
# How many polls must pay before the level falls by one: after vain polls, and after one that lost the CPU.
STEADY = 2
STEADY_CPU_LOST = 64


def usable_cpus() -> int:
    """CPUs that this process may run on: its affinity, not the machine's count."""
    return len(os.sched_getaffinity(0))


def poll_budget_ns() -> int:
    """For how long a waiter polls before it sleeps, in ns; 0 for never. ``HBRT_SPIN_US`` sets it."""
    configured_us = settings.integer("HBRT_SPIN_US")
    if usable_cpus() == 1:
        return 0
    return BUDGET_NS if configured_us < 0 else configured_us * 1000


class Spinner:
    """One waiter's habit of polling before it sleeps. ``HBRT_SPIN_US`` sets the budget; 0 never polls.

    Args:
        cpus: How many CPUs may be used; None asks the system.
        most_skipped: At most so many waits are skipped, as a power of two: after vain polls, and after one that lost
            the CPU.
    """

    def __init__(
        self, cpus: int | None = None, most_skipped: tuple[int, int] = (MAX_SKIPPED_IN_VAIN, MAX_SKIPPED_CPU_LOST)
    ) -> None:
        """Begin without a habit."""
        configured_us = settings.integer("HBRT_SPIN_US")
        self.budget_ns = BUDGET_NS if configured_us < 0 else configured_us * 1000
        if (cpus or usable_cpus()) == 1:
            self.budget_ns = 0
        self._most_skipped, self._most_skipped_cpu_lost = most_skipped
        self._level = 0  # the next vain poll skips 2**level - 1 waits
        self._skip = 0
        self._paid = 0
        self._steady = STEADY

    def spin(self, ready: Callable[[], bool], budget_ns: int = 0) -> bool:
        """Poll until ``ready``, or until the budget is spent; True when ready.

        Args:
            ready: What to poll.
            budget_ns: For how long; 0 takes the habit's.
        """
        budget_ns = self.begin(budget_ns)
        if not budget_ns:
            return False
        deadline = monotonic_ns() + budget_ns
        while True:
            for _ in range(POLLS_PER_YIELD):
                if ready():
                    return self._note_paid(has_lost_cpu=monotonic_ns() > deadline + LOST_CPU_NS)
            if monotonic_ns() > deadline:
                break
            os.sched_yield()
        self._note_vain(has_lost_cpu=monotonic_ns() > deadline + LOST_CPU_NS)
        return False

    def begin(self, budget_ns: int = 0) -> int:
        """For how many ns the next wait polls, 0 for no poll; ``note`` follows. For callers that poll by themselves."""
        if self.budget_ns and not self._skip:
            return budget_ns or self.budget_ns
        self._skip -= self._skip > 0
        return 0

    def note(self, polled: int) -> None:
        """Take the outcome of a poll in C: HBRT_POLL_* of native/mailbox/mailbox.h."""
        if polled:
            has_lost_cpu = polled > 2
            if polled & 1:
                self._note_paid(has_lost_cpu=has_lost_cpu)
            else:
                self._note_vain(has_lost_cpu=has_lost_cpu)

    def _note_paid(self, *, has_lost_cpu: bool) -> bool:
        if has_lost_cpu:
            self._note_vain(has_lost_cpu=True)
        elif self._level:
            self._paid += 1
            if self._paid >= self._steady:
                self._level, self._paid = self._level - 1, 0
        return True

    def _note_vain(self, *, has_lost_cpu: bool) -> None:
        if has_lost_cpu or self._level <= self._most_skipped:  # a vain poll does not undo the skips after a lost CPU
            self._steady = STEADY_CPU_LOST if has_lost_cpu else STEADY
        self._skip = (1 << self._level) - 1
        if self._level < (self._most_skipped_cpu_lost if has_lost_cpu else self._most_skipped):
            self._level += 1
        self._paid = 0
