"""The tasks that a board has ended, the newest of each core: the request, the program, and all times of each.

A ring has one writer: its core, or the daemon for the tasks that it fails. A reader accepts a record whose number is
the same before and after the read. A task that is cancelled before a core has claimed it has no record.
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
_DONE = struct.Struct(f"<{HISTORY_HEAD.size + REQUEST.size + 32}xQ")  # of a record: when its task has ended
_MARGIN = 64  # records of a ring that are checked beside the newest: a program may have written nonsense


class EndedTask(NamedTuple):
    """A task that has ended; ``pid`` is the process of its client."""

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
        """Keep the task of a slot. The slot's record is complete, and no other process writes it now.

        Args:
            number: Of the task among those of this ring, from 1.
            slot: Its slot.
            state: How it ends.
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
    """The tasks that ended last, at most so many, in the order of their ends."""
    # Of the accelerator cores too, which the layout does not count: a ring without a task costs two looks.
    rings = range(HISTORY_RINGS)
    raws = [raw for ring in rings for raw in _records(ddr, ddr.layout.history_ring(ring), most)]
    now_ns = monotonic_ns()  # what ends later was written by something other than a core
    raws = sorted((raw for raw in raws if _DONE.unpack_from(raw)[0] <= now_ns), key=_DONE.unpack_from)
    return [task_of(raw) for raw in raws[max(0, len(raws) - most) :]]


def _records(ddr: Table, start: int, most: int) -> Iterator[bytes]:
    """The newest complete records of one ring, and some that may be nonsense; its second place is filled first."""
    mm, is_used, found = ddr.map, True, []
    for place in (*range(1, HISTORY_RECORDS), 0):
        at = start + place * HISTORY_RECORD_BYTES
        number = _NUMBER.unpack_from(mm, at)[0]
        if not number and not is_used:
            break  # one is being written, or its writer has died; behind two such records the ring is not filled yet
        if number and number % HISTORY_RECORDS == place:
            found.append((number, at))
        is_used = number != 0
    for number, at in sorted(found)[-most - _MARGIN :]:
        raw = mm[at : at + HISTORY_RECORD_BYTES]
        if number == _NUMBER.unpack_from(mm, at)[0]:
            yield raw


def task_of(raw: bytes) -> EndedTask:
    """The task of a record."""
    _, state, pid = HISTORY_HEAD.unpack_from(raw)
    request = Request(*REQUEST.unpack_from(raw, HISTORY_HEAD.size))
    answer = Answer(*ANSWER.unpack_from(raw, HISTORY_HEAD.size + REQUEST.size))
    work = Work(*WORK.unpack_from(raw, HISTORY_WORK)) if answer.has_work else NO_WORK
    return EndedTask(State(state), pid, request, answer, work)
