"""A board's finished tasks, the latest of each core: request, program and times of each.

A ring has one writer: its core, or the daemon for the tasks that it fails. A reader accepts a record if its number is
the same before and after the read. A task canceled before a core claimed it has no record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from time import monotonic_ns
from typing import NamedTuple

from hbrt.ddr.layout import (
    CLIENT_COUNT,
    CLIENT_PID,
    HISTORY_HEAD,
    HISTORY_RECORD_BYTES,
    HISTORY_RECORDS,
    HISTORY_RINGS,
    HISTORY_WORK,
    SLOT_WORK,
)
from hbrt.mailbox.table import (
    ANSWER,
    ANSWER_OFFSET,
    HAS_WORK,
    REQUEST,
    REQUEST_CLIENT_AT,
    Answer,
    Request,
    State,
    Table,
)
from hbrt.profiles.work import NO_WORK, WORK, Work

_NUMBER, _U32 = struct.Struct("<Q"), struct.Struct("<I")
_TASK_BYTES = REQUEST.size + ANSWER.size
_DONE = struct.Struct(f"<{HISTORY_HEAD.size + REQUEST.size + 32}xQ")  # in a record: the end time of its task
_MARGIN = 64  # records of a ring to check besides the newest: a program may have written garbage


class EndedTask(NamedTuple):
    """A finished task; ``pid`` is its client's process."""

    state: State
    pid: int
    request: Request
    answer: Answer
    work: Work = NO_WORK


class HistoryRing:
    """The writer's side of one ring.

    Args:
        ddr: The board's memory.
        ring: The core's index; MAX_CORES for the daemon.
    """

    def __init__(self, ddr: Table, ring: int) -> None:
        self._map, self._layout = ddr.map, ddr.layout
        self._start = ddr.layout.history_ring(ring)

    def note(self, number: int, slot: int, state: State) -> None:
        """Record a slot's task. The slot's record is complete, and no other process is writing it.

        Args:
            number: The task's number in this ring, from 1.
            slot: Its slot.
            state: Its final state.
        """
        mm, record = self._map, self._layout.record(slot)
        at = self._start + number % HISTORY_RECORDS * HISTORY_RECORD_BYTES
        (client,) = _U32.unpack_from(mm, record + REQUEST_CLIENT_AT)
        pid = _U32.unpack_from(mm, self._layout.client(client) + CLIENT_PID)[0] if client < CLIENT_COUNT else 0
        HISTORY_HEAD.pack_into(mm, at, 0, state, pid)
        start = at + HISTORY_HEAD.size
        mm[start : start + _TASK_BYTES] = mm[record : record + _TASK_BYTES]
        if HAS_WORK.unpack_from(mm, record + ANSWER_OFFSET)[0]:
            mm[at + HISTORY_WORK : at + HISTORY_WORK + WORK.size] = mm[
                record + SLOT_WORK : record + SLOT_WORK + WORK.size
            ]
        _NUMBER.pack_into(mm, at, number)


def ended_tasks(ddr: Table, most: int) -> list[EndedTask]:
    """Return the tasks that ended last, up to a limit, ordered by end time."""
    # Includes accelerator cores, which the layout does not count: an empty ring costs two reads.
    rings = range(HISTORY_RINGS)
    raws = [raw for ring in rings for raw in _records(ddr, ddr.layout.history_ring(ring), most)]
    now_ns = monotonic_ns()  # a later end time was not written by a core
    raws = sorted((raw for raw in raws if _DONE.unpack_from(raw)[0] <= now_ns), key=_DONE.unpack_from)
    return [task_of(raw) for raw in raws[max(0, len(raws) - most) :]]


def _records(ddr: Table, start: int, most: int) -> Iterator[bytes]:
    """Return the newest complete records of one ring, and some that may be garbage; its second place fills first."""
    mm, is_used, found = ddr.map, True, []
    for place in (*range(1, HISTORY_RECORDS), 0):
        at = start + place * HISTORY_RECORD_BYTES
        number = _NUMBER.unpack_from(mm, at)[0]
        if not number and not is_used:
            break  # being written, or its writer has died; after two such records the ring is not filled yet
        if number and number % HISTORY_RECORDS == place:
            found.append((number, at))
        is_used = number != 0
    for number, at in sorted(found)[-most - _MARGIN :]:
        raw = mm[at : at + HISTORY_RECORD_BYTES]
        if number == _NUMBER.unpack_from(mm, at)[0]:
            yield raw


def task_of(raw: bytes) -> EndedTask:
    """Return the task of a record."""
    _, state, pid = HISTORY_HEAD.unpack_from(raw)
    request = Request(*REQUEST.unpack_from(raw, HISTORY_HEAD.size))
    answer = Answer(*ANSWER.unpack_from(raw, HISTORY_HEAD.size + REQUEST.size))
    work = Work(*WORK.unpack_from(raw, HISTORY_WORK)) if answer.has_work else NO_WORK
    return EndedTask(State(state), pid, request, answer, work)
