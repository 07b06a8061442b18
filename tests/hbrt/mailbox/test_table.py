"""Moves of a task's slot: what the table has, and that everything else raises and leaves the slot as it was."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import SLOT_COUNT, SLOT_TEXT_BYTES
from hbrt.mailbox.table import (
    FIRST_END,
    MOVES,
    REQUEST,
    Actor,
    Answer,
    IllegalMoveError,
    Mailbox,
    Request,
    State,
    shorten,
)
from tests.each import each

SLOT = 7
STORY = Request(5, -3, 0x1000, 9, 1, 2, 2, 0x8000_1000, 64, 0x8000_2000, 128)
LEGAL = {(start, end, actor) for (start, end), (actors, _) in MOVES.items() for actor in actors}
ALL = set(itertools.product(State, State, Actor))


@pytest.fixture(scope="module")
def table() -> Iterator[Mailbox]:
    ddr = Ddr.create(1 << 16, 2)
    yield Mailbox(ddr)
    ddr.close()


def _put(table: Mailbox, state: State) -> bytes:
    record = table.layout.record(SLOT)
    REQUEST.pack_into(table.map, record, *STORY)
    table.map[table.states + SLOT] = state
    return bytes(table.map[record : record + 256])


@each("start, end, actor", sorted(LEGAL))
def test_move_that_the_table_has_is_made(table: Mailbox, start: State, end: State, actor: Actor) -> None:
    _put(table, start)
    table.move(SLOT, end, actor)
    assert table.state(SLOT) is end


@each("start, end, actor", sorted(ALL - LEGAL))
def test_move_that_the_table_has_not_raises_and_changes_nothing(
    table: Mailbox, start: State, end: State, actor: Actor
) -> None:
    before = _put(table, start)
    with pytest.raises(IllegalMoveError) as caught:
        table.move(SLOT, end, actor)
    assert table.state(SLOT) is start
    record = table.layout.record(SLOT)
    assert bytes(table.map[record : record + 256]) == before
    assert str(caught.value).startswith(
        f"{actor.name} may not move slot 7 {start.name} -> {end.name}: command 0x1000, priority 9, customId -3, "
        "client 2, input 0x80001000+0x40, output 0x80002000+0x80, "
    )


def test_every_task_has_one_end_and_every_state_a_way_out() -> None:
    ends = {state for state in State if state >= FIRST_END}
    assert ends == {State.DONE, State.FAILED, State.CANCELLED, State.TIMED_OUT, State.LOST}
    for start, end in MOVES:
        assert not (start in ends and end is not State.EMPTY), "an end is followed by another"
    assert {start for start, _ in MOVES} == set(State)
    assert {end for _, end in MOVES} == set(State)


def test_moves_that_two_may_make_at_once_are_made_under_the_claim_lock() -> None:
    """Who may leave a state without the lock is one actor alone; ends are the exception: their owner released it."""
    for start in (State.SENT, State.READY, State.RUNNING):
        free = {
            actor for (begin, _), (actors, locked) in MOVES.items() if begin is start and not locked for actor in actors
        }
        assert len(free) <= 1
    assert all(locked for (begin, _), (_, locked) in MOVES.items() if begin in {State.SENT, State.READY})


def test_slots_are_found_by_state(table: Mailbox) -> None:
    for slot in (0, 1, SLOT, SLOT_COUNT - 1):
        table.map[table.states + slot] = State.READY if slot % 2 else State.DONE
    assert table.slots_in(State.READY) == [1, SLOT, SLOT_COUNT - 1]
    assert table.slots_in(State.DONE, State.READY) == [0, 1, SLOT, SLOT_COUNT - 1]
    assert table.slots_in(State.RUNNING) == []
    assert len(table.slots_in(State.EMPTY)) == SLOT_COUNT - 4
    for slot in (0, 1, SLOT, SLOT_COUNT - 1):
        table.map[table.states + slot] = State.EMPTY


@each("size", [0, 1, SLOT_TEXT_BYTES - 1, SLOT_TEXT_BYTES])
def test_text_that_fits_is_kept_whole(table: Mailbox, size: int) -> None:
    table.write_answer(SLOT, Answer(0, 1, 0, 0, 0, 0, 0, 0), "x" * size)
    assert table.text(SLOT) == "x" * size
    assert table.answer(SLOT).text_bytes == size


def test_text_that_is_too_long_keeps_its_ends(table: Mailbox) -> None:
    text = "Traceback:\n" + "\n".join(f"line {number}" for number in range(2000)) + "\nValueError: the cause"
    table.write_answer(SLOT, Answer(0, 1, 0, 0, 0, 0, 0, 0), text)
    kept = table.text(SLOT)
    assert len(kept) == SLOT_TEXT_BYTES
    assert kept.startswith("Traceback:\nline 0\n")
    assert kept.endswith("\nline 1999\nValueError: the cause")
    assert "\n[...]\n" in kept
    assert shorten(kept) == kept.encode()


def test_shorter_text_leaves_nothing_of_the_longer_one_before(table: Mailbox) -> None:
    table.write_answer(SLOT, Answer(0, 1, 0, 0, 0, 0, 0, 0), "long " * 100)
    table.write_answer(SLOT, Answer(0, 1, 0, 0, 0, 0, 0, 0), "short")
    assert table.text(SLOT) == "short"
    table.write_answer(SLOT, Answer(0, 0, 0, 0, 0, 0, 0, 0))
    assert table.text(SLOT) == ""


def test_text_that_no_encoder_wrote_is_read_all_the_same(table: Mailbox) -> None:
    table.write_answer(SLOT, Answer(0, 1, 0, 0, 0, 0, 0, 0), "ab")
    at = table.layout.record(SLOT) + 256
    table.map[at : at + 2] = b"\xff\xfe"
    assert table.text(SLOT) == "\ufffd\ufffd"


HOLDER = """
import sys
from hbrt.ddr.file import Ddr
from hbrt.mailbox.table import Mailbox
lock = Mailbox(Ddr(int(sys.argv[1]))).claim_lock
lock.__enter__()
print("held", flush=True)
sys.stdin.read()
"""


def test_claim_lock_is_of_all_processes_and_outlives_a_dead_holder() -> None:
    ddr = Ddr.create(1 << 16, 1)
    lock = Mailbox(ddr).claim_lock
    fd = os.dup(ddr.fd)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(fd)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[fd]
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert lock.try_acquire(lock.handle) == errno.EBUSY
        holder.kill()
    with ThreadPoolExecutor(1) as other:
        for _ in range(2):  # it is inherited once, and a lock like any other afterwards
            with lock, lock:  # its holder may come again: a signal's handler does
                pass
            with lock:
                assert other.submit(lock.try_acquire, lock.handle).result() == errno.EBUSY
    os.close(fd)
    ddr.close()
