"""Priority inversions at one moment: a task waits because of a lower-priority task. Pure.

Two cases:
- BLOCKED: the task is ready, and every core that may run it has, since before the submission, been running a task of
  lower priority that it does not preempt. Real-time scheduling calls this non-preemptive blocking.
- HELD: the task's op is running and waits for a task that it has itself submitted with a lower priority. That second
  task is ready, behind a task whose priority is below the first task's. The wait lasts as long as tasks with priorities
  in between keep coming, which is called unbounded inversion.

Waiting for tasks of equal or higher priority is not an inversion, nor is waiting when a free core can run the task.

Terminology: L. Sha, R. Rajkumar, J. P. Lehoczky: Priority Inheritance Protocols, an Approach to Real-Time
Synchronization, IEEE Transactions on Computers 39 (9), 1990.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from hbrt.mailbox.schedule import may_run


class Why(Enum):
    """The two cases."""

    BLOCKED = 1
    HELD = 2


class Task(NamedTuple):
    """A task that is ready or running.

    Attributes:
        slot: Its slot.
        sequence: Identifies the task in the slot.
        rank: Its priority; on a board with aging, its rank (hbrt.mailbox.schedule).
        core_mask: Mask of cores that may run it; 0 for any.
        owner: Client id of the program that submitted it.
        age_s: Time since its submission, in seconds.
        core: The core that runs it; -1 for none.
        ran_s: How long the core has been running it, in seconds.
    """

    slot: int
    sequence: int
    rank: int
    core_mask: int
    owner: int
    age_s: float
    core: int = -1
    ran_s: float = 0.0


class Inversion(NamedTuple):
    """One priority inversion.

    Attributes:
        why: The case.
        task: The higher-priority task.
        queued: The ready task: the same one, or the one that its op waits for.
        lower: The running lower-priority task that delays it; if there are several, the longest-running one.
    """

    why: Why
    task: Task
    queued: Task
    lower: Task


def inversions(
    ready: Sequence[Task],
    running: Sequence[Task],
    cores: Collection[int],
    waiting_ops: Mapping[int, int],
    least_s: float,
) -> Iterator[Inversion]:
    """Return the inversions at one moment.

    Args:
        ready: Tasks that no core has claimed.
        running: Tasks running on a core; if a core has two, the one with the shorter time has preempted the other.
        cores: Indices of the cores that serve.
        waiting_ops: Programs that are a core's op and asleep: client id to core.
        least_s: Shortest wait to include, in seconds.
    """
    on_core: dict[int, Task] = {}
    for one in sorted(running, key=lambda task: -task.ran_s):
        on_core[one.core] = one
    for queued in ready:
        found = [on_core.get(core) for core in cores if may_run(core, queued.core_mask)]
        ahead = [one for one in found if one is not None]
        if queued.age_s < least_s or not ahead or len(ahead) < len(found):
            continue
        if all(one.rank < queued.rank and one.ran_s >= queued.age_s for one in ahead):
            yield Inversion(Why.BLOCKED, queued, queued, max(ahead, key=lambda one: one.ran_s))
        outer = on_core.get(waiting_ops.get(queued.owner, -1))
        others = [one for one in ahead if one is not outer]
        if outer is not None and others and all(one.rank < outer.rank for one in (queued, *others)):
            yield Inversion(Why.HELD, outer, queued, max(others, key=lambda one: one.ran_s))
