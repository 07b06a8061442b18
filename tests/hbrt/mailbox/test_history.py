"""The history of a board's tasks: what is kept, in which order, and what a reader does not take."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import HISTORY_RECORD_BYTES, HISTORY_RECORDS, MAX_CORES
from hbrt.mailbox.history import HistoryRing, ended_tasks
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, REQUEST, Answer, Request, State

SLOT = 5


@pytest.fixture
def ddr() -> Iterator[Ddr]:
    made = Ddr.create(1 << 20, 2)
    yield made
    made.close()


def note(
    ddr: Ddr, ring: int, number: int, done_ns: int, state: State = State.DONE, client: int = 3
) -> tuple[Request, Answer]:
    request = Request(done_ns - 50, -7, 0x400, 9, 1, client, client, 0x8000, 64, 0x9000, 128)
    answer = Answer(ring, 0, 0, 0, done_ns - 40, done_ns - 30, done_ns, 77)
    record = ddr.layout.record(SLOT)
    REQUEST.pack_into(ddr.map, record, *request)
    ANSWER.pack_into(ddr.map, record + ANSWER_OFFSET, *answer)
    HistoryRing(ddr, ring).note(number, SLOT, state)
    return request, answer


def test_tasks_come_in_the_order_of_their_ends_with_all_their_fields(ddr: Ddr) -> None:
    struct.pack_into("<I", ddr.map, ddr.layout.client(3) + 4, 4711)
    later = note(ddr, 0, 1, 2000)
    first = note(ddr, 1, 1, 1000, State.FAILED)
    last = note(ddr, MAX_CORES, 1, 3000, State.LOST)
    found = ended_tasks(ddr, 10)
    assert [(one.request, one.answer) for one in found] == [first, later, last]
    assert [one.state for one in found] == [State.FAILED, State.DONE, State.LOST]
    assert {one.pid for one in found} == {4711}
    assert ended_tasks(ddr, 2) == found[1:]


def test_a_ring_keeps_its_newest(ddr: Ddr) -> None:
    for number in range(1, HISTORY_RECORDS + 11):
        note(ddr, 0, number, number * 100)
    found = ended_tasks(ddr, 2 * HISTORY_RECORDS)
    assert [one.answer.done_ns for one in found] == [number * 100 for number in range(11, HISTORY_RECORDS + 11)]


def test_a_record_that_is_being_written_is_left_out_and_hides_no_other(ddr: Ddr) -> None:
    for number in (1, 2, 3):
        note(ddr, 0, number, number * 100)
    struct.pack_into("<Q", ddr.map, ddr.layout.history_ring(0) + 2 * HISTORY_RECORD_BYTES, 0)
    assert [one.answer.done_ns for one in ended_tasks(ddr, 10)] == [100, 300]


def test_a_record_that_becomes_another_while_it_is_read_is_left_out(ddr: Ddr) -> None:
    class Map(bytearray):
        """A copy of the file; its writer passes while a record is taken, whose end is read first."""

        def __getitem__(self, part: Any) -> Any:
            taken = bytearray.__getitem__(self, part)
            if not isinstance(part, slice) or part.start != ring + HISTORY_RECORD_BYTES:
                return taken
            later = bytearray(taken)
            struct.pack_into("<Q", later, 0, 1 + HISTORY_RECORDS)
            self[part] = later
            return bytes(later[:64] + taken[64:])

    note(ddr, 0, 1, 100)
    note(ddr, 0, 2, 200)
    ring = ddr.layout.history_ring(0)
    torn = SimpleNamespace(map=Map(ddr.map[:]), layout=ddr.layout)
    assert [one.answer.done_ns for one in ended_tasks(cast("Any", torn), 10)] == [200]


def test_a_client_that_cannot_be_has_no_process(ddr: Ddr) -> None:
    note(ddr, 0, 1, 100, client=1 << 30)
    assert [one.pid for one in ended_tasks(ddr, 10)] == [0]


def test_an_unused_history_is_empty(ddr: Ddr) -> None:
    assert ended_tasks(ddr, 10) == []
