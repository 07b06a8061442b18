"""Merge traces of two machines: the board's events and tasks on its program's clock. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hbrt.mailbox.history import EndedTask
from hbrt.trace.kinds import EventKind
from hbrt.trace.ring import Event
from hbrt.trace.timeline import Recording, Source

ELSEWHERE = 1 << 22  # added to process ids of another machine: above Linux process ids
_OF_TASKS = frozenset(
    {EventKind.SUBMIT, EventKind.WAIT, EventKind.RUN, EventKind.HOP}
)  # kinds whose ``a`` is a task's submission


def on_clock(theirs: Recording, ahead_ns: int, since_ns: int) -> Recording:
    """Convert a recording of another machine to this one's clock.

    Args:
        theirs: The recording from there.
        ahead_ns: How far its clock is ahead of this one's.
        since_ns: On this clock: drop what ended before.
    """
    return theirs._replace(
        tasks=[partial(_tasks, theirs, number, ahead_ns, since_ns) for number in range(len(theirs.tasks))],
        sources=[_source(one, ahead_ns, since_ns) for one in theirs.sources],
        programs={pid + ELSEWHERE: name for pid, name in theirs.programs.items()},
    )


def merged(mine: Recording, theirs: Recording) -> Recording:
    """Combine the recordings of a program and of its board, as returned by ``on_clock``."""
    return theirs._replace(
        sources=[*mine.sources, *theirs.sources],
        programs={**theirs.programs, **mine.programs},
        lost=mine.lost + theirs.lost,
    )


def _source(one: Source, ahead_ns: int, since_ns: int) -> Source:
    def events() -> Iterator[Event]:
        for event in one.events():
            if event.end_ns - ahead_ns < since_ns:
                continue
            a, b, c = event.a, event.b, event.c
            if event.kind in _OF_TASKS:
                a = a and a - ahead_ns
            if event.kind == EventKind.WAIT:
                b, c = b and b - ahead_ns, c and c - ahead_ns
            yield event._replace(start_ns=event.start_ns - ahead_ns, end_ns=event.end_ns - ahead_ns, a=a, b=b, c=c)

    first_ns = one.first_ns and max(one.first_ns - ahead_ns, since_ns)
    threads = {one.pid: "main", **one.threads}
    return one._replace(pid=one.pid + ELSEWHERE, threads=threads, events=events, first_ns=first_ns)


def _tasks(theirs: Recording, number: int, ahead_ns: int, since_ns: int) -> Iterator[EndedTask]:
    for task in theirs.tasks[number]():
        answer, request = task.answer, task.request
        if answer.done_ns - ahead_ns < since_ns:
            continue
        claim_ns, start_ns, done_ns = (
            at and at - ahead_ns for at in (answer.claim_ns, answer.start_ns, answer.done_ns)
        )
        yield task._replace(
            pid=task.pid and task.pid + ELSEWHERE,
            request=request._replace(sequence=request.sequence - ahead_ns),
            answer=answer._replace(claim_ns=claim_ns, start_ns=start_ns, done_ns=done_ns),
        )
