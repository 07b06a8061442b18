"""Computes when a program's tasks end on a board: they wait for cores, and share the DDR. Pure.

If the cores want more DDR throughput than available, each gets a fair share: a core that wants less gets all of it, and
the rest goes to the others. A task runs as fast as its bytes arrive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Job(NamedTuple):
    """A task, in modeled microseconds.

    Attributes:
        kind: Index of the cores that may run it.
        before_us: Time from submission until a core may take it.
        work_us: Time on a core with exclusive use of the DDR.
        after_us: Time from the core's end until its program notices.
        bytes_per_us: Throughput while it works.
        submitted_ns: When it was submitted here; on the board it waits for tasks that had ended here before.
        ended_ns: When it ended here.
    """

    kind: int
    before_us: float
    work_us: float
    after_us: float
    bytes_per_us: float = 0.0
    submitted_ns: int = 0
    ended_ns: int = 0


class _Run:
    """A job on a core: the remaining work."""

    __slots__ = ("job", "left_us", "number", "rate")

    def __init__(self, number: int, job: Job) -> None:
        self.number, self.job, self.left_us, self.rate = number, job, job.work_us, 1.0


def makespan(jobs: Sequence[Job], cores: Sequence[int], bytes_per_us: float) -> float:
    """Return the time from the first submission to the last end.

    Args:
        jobs: The tasks, in any order.
        cores: Number of cores of each kind, at least one for kinds that jobs use.
        bytes_per_us: Throughput of the DDR.
    """
    ordered = sorted(jobs, key=lambda one: one.submitted_ns)
    ended_at = [max(one.ended_ns, one.submitted_ns + 1) for one in ordered]  # so that no task waits for itself
    by_end = sorted(range(len(ordered)), key=ended_at.__getitem__)
    ends_ns = [ended_at[at] for at in by_end]
    has_ended = [False] * len(ordered)
    events: list[tuple[float, int, int]] = []  # time, 0 for an arrival at the cores or 1 for an end, number
    waiting: list[deque[int]] = [deque() for _ in cores]
    free, running = list(cores), list[_Run]()
    now, next_one, ended = 0.0, 0, 0
    while True:
        while ended < len(by_end) and has_ended[by_end[ended]]:
            ended += 1
        while next_one < len(ordered) and bisect_right(ends_ns, ordered[next_one].submitted_ns) <= ended:
            heappush(events, (now + ordered[next_one].before_us, 0, next_one))
            next_one += 1
        if not events and not running:
            return now
        first = min(running, key=lambda one: one.left_us / one.rate, default=None)
        done_at = now + first.left_us / first.rate if first else float("inf")
        at = min(done_at, events[0][0] if events else done_at)
        for one in running:
            one.left_us -= (at - now) * one.rate
        now = at
        if first and done_at <= at:
            running.remove(first)
            free[first.job.kind] += 1
            heappush(events, (now + first.job.after_us, 1, first.number))
        else:
            _, is_end, number = heappop(events)
            if is_end:
                has_ended[number] = True
                continue
            waiting[ordered[number].kind].append(number)
        for kind, queue in enumerate(waiting):
            while queue and free[kind]:
                free[kind] -= 1
                number = queue.popleft()
                running.append(_Run(number, ordered[number]))
        _share(running, bytes_per_us)


def shares(wanted: Sequence[float], capacity: float) -> list[float]:
    """Return the fraction of each demand met by a fairly shared capacity: 1 if there is enough."""
    if sum(wanted) <= capacity:
        return [1.0] * len(wanted)
    found, left = [1.0] * len(wanted), capacity
    in_order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for at, number in enumerate(in_order):
        if wanted[number]:
            got = min(wanted[number], left / (len(in_order) - at))
            found[number] = got / wanted[number]
            left -= got
    return found


def _share(running: list[_Run], bytes_per_us: float) -> None:
    for one, rate in zip(running, shares([one.job.bytes_per_us for one in running], bytes_per_us), strict=True):
        one.rate = rate
