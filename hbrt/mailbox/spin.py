"""How long a waiter polls before it sleeps; native/mailbox/polling.h decides when it polls.

- Several CPUs: it polls a few times between yields, until its budget is used up. If the scheduler put both sides on one
  CPU, the yields let the peer run.
- One CPU: never. The peer cannot run while the waiter polls, and a yield may go to a third process for a whole time
  slice, or have no effect: the scheduler returns the CPU to a waiter that has used less of it than its peer.
"""

from __future__ import annotations

import os

from hbrt import settings

BUDGET_NS = 300_000


def usable_cpus() -> int:
    """Return the number of CPUs that this process may run on: its affinity, not the machine's count."""
    return len(os.sched_getaffinity(0))


def poll_budget_ns() -> int:
    """Return how long a waiter polls before it sleeps, in ns; 0 for never. ``HBRT_SPIN_US`` sets it."""
    configured_us = settings.integer("HBRT_SPIN_US")
    if usable_cpus() == 1:
        return 0
    return BUDGET_NS if configured_us < 0 else configured_us * 1000
