"""The task table: states, legal moves, who may write what, and the claim lock.

Rules
    A task is one slot: a state byte, a record, and one announce byte per core. The state byte is authoritative; the
    announce byte is a hint that makes finding new work cheap (``mmap.find`` over bytes), and a rescan of the state
    bytes recovers from a lost hint. Publication: record first, state byte next, announce bytes last. A reader that sees
    READY or a finished state also sees the fields: the claim lock, a doorbell or a re-read of the sequence number
    orders them on arm64. Two processes never write the same byte at the same time: the table of moves says which
    process may write.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, Protocol

from hbrt.ddr.claim_lock import ClaimLock
from hbrt.ddr.layout import SLOT_SITE, SLOT_SITE_BYTES, SLOT_TEXT, SLOT_TEXT_BYTES, SLOT_WORK, Layout
from hbrt.findings.record import site_bytes
from hbrt.mailbox.dirty_ranges import KEY, DirtyRanges, message, of_message
from hbrt.profiles.work import NO_WORK, WORK, Work


class State(IntEnum):
    """State of a slot; every value from DONE on is an end of the task."""

    EMPTY = 0
    SENT = 1
    READY = 2
    RUNNING = 3
    DONE = 4
    FAILED = 5
    CANCELLED = 6
    TIMED_OUT = 7
    LOST = 8

    @classmethod
    def _missing_(cls, value: object) -> State | None:
        """The state for an unknown byte: the task is lost, and its slot can be reused."""
        return cls.LOST if isinstance(value, int) and cls.LOST < value <= 255 else None


FIRST_END = State.DONE
RPC_ALIGNMENT = 8  # alignment of a task's blocks
PRIORITY_PREEMPT = 255  # the highest: interrupts a running op of lower priority
PRIORITY_URGENT = 254  # also interrupts a running op of lower priority


class Actor(IntEnum):
    """The process that moves a slot."""

    OWNER = 0
    CORE = 1
    SUPERVISOR = 2
    RELAY = 3


_ENDS = (State.DONE, State.FAILED, State.CANCELLED, State.TIMED_OUT, State.LOST)

# (from, to) -> (who may, whether the claim lock must be held)
MOVES: dict[tuple[State, State], tuple[frozenset[Actor], bool]] = {
    (State.EMPTY, State.READY): (frozenset({Actor.OWNER}), False),
    (State.EMPTY, State.SENT): (frozenset({Actor.OWNER}), False),
    # Only under the lock, and only while the record is the one sent to the relay. An owner that cancels its task, and
    # a daemon that reclaims the slot, also hold the lock, so a late message finds nothing to queue.
    (State.SENT, State.READY): (frozenset({Actor.RELAY}), True),
    (State.SENT, State.FAILED): (frozenset({Actor.RELAY, Actor.OWNER}), True),
    # A task that its owner runs on another board.
    (State.SENT, State.DONE): (frozenset({Actor.OWNER}), True),
    (State.SENT, State.TIMED_OUT): (frozenset({Actor.OWNER}), True),
    (State.SENT, State.CANCELLED): (frozenset({Actor.OWNER, Actor.SUPERVISOR}), True),
    (State.SENT, State.LOST): (frozenset({Actor.SUPERVISOR, Actor.OWNER}), True),
    (State.READY, State.RUNNING): (frozenset({Actor.CORE}), True),
    (State.READY, State.CANCELLED): (frozenset({Actor.OWNER, Actor.SUPERVISOR}), True),
    (State.READY, State.LOST): (frozenset({Actor.SUPERVISOR}), True),
    (State.RUNNING, State.DONE): (frozenset({Actor.CORE}), False),
    (State.RUNNING, State.FAILED): (frozenset({Actor.CORE}), False),
    (State.RUNNING, State.TIMED_OUT): (frozenset({Actor.SUPERVISOR}), True),
    (State.RUNNING, State.LOST): (frozenset({Actor.SUPERVISOR}), True),
    **{(end, State.EMPTY): (frozenset({Actor.OWNER, Actor.SUPERVISOR}), False) for end in _ENDS},
}

# The owner writes: sequence (CLOCK_MONOTONIC ns of the submission, unique in the client), customId,
# command, priority, core mask, owner, client, input address and bytes, output address and bytes. The owner wrote the
# slot and is rung; the task uses the client's memory. Both are the submitting client, in relay mode too.
REQUEST = struct.Struct("<QqIHHIIQQQQ")
# REQUEST as packed by an owner: fields are no wider than their values, so packing checks them.
SUBMISSION = struct.Struct("<QqHxxBxHIIQQQQ")
SUBMITTED = struct.Struct("<Q")  # in REQUEST: the sequence, which is the submission time
# From REQUEST and CLAIM: command, priority, owner, client, and claim time.
RUN = struct.Struct("<16xIHxxII48xQ")
_BLOCK_BYTES = struct.Struct("<40xQ8xQ")  # of REQUEST
REQUEST_CLIENT_AT = 28  # client, then addresses and sizes: checked by a core before it runs an op
# The core writes: core, result, text bytes, whether the record has WORK, claim/start/done ns, modeled cycles.
ANSWER_OFFSET = 64
ANSWER = struct.Struct("<iiIIQQQQ")
ORDER = struct.Struct("<QqIHH")  # first fields of REQUEST: what the schedule needs
CORE_MASK, CORE_MASK_AT = struct.Struct("<H"), 22  # of REQUEST
RESULT = struct.Struct("<iiI")  # first fields of ANSWER
HAS_WORK = struct.Struct("<12xI")  # of ANSWER
CLAIM = struct.Struct("<iiIIQ24x")  # a core's mark on a slot it takes; packing clears what an earlier task left


class Request(NamedTuple):
    """A task's request, as written by its owner."""

    sequence: int
    custom_id: int
    cmd: int
    priority: int
    core_mask: int
    owner: int
    client: int
    input_phy: int
    input_bytes: int
    output_phy: int
    output_bytes: int


class Answer(NamedTuple):
    """The outcome of a task; times are CLOCK_MONOTONIC nanoseconds, 0 for a step that was not reached."""

    core: int
    result: int
    text_bytes: int
    has_work: int
    claim_ns: int
    start_ns: int
    done_ns: int
    cycles: int


class IllegalMoveError(RuntimeError):
    """A slot move that the table forbids; the message describes the task."""


class Table(Protocol):
    """Bytes with a task table: a board's DDR file, or a process's own memory with that layout."""

    map: mmap.mmap
    layout: Layout


class Mailbox:
    """One process's access to the task table of a board."""

    def __init__(self, ddr: Table) -> None:
        """Use the table in ``ddr``; ``claim_lock`` is the lock mentioned in MOVES."""
        self._ddr = ddr
        self.map = ddr.map
        self.layout = ddr.layout
        self.states = ddr.layout.states
        self.claim_lock = ClaimLock(ddr.map)

    def state(self, slot: int) -> State:
        """Return the state of a slot."""
        return State(self.map[self.states + slot])

    def request(self, slot: int) -> Request:
        """Return the owner's part of a slot."""
        return Request(*REQUEST.unpack_from(self.map, self.layout.record(slot)))

    def block_bytes(self, slot: int) -> int:
        """Return the bytes of a request's blocks."""
        input_bytes, output_bytes = _BLOCK_BYTES.unpack_from(self.map, self.layout.record(slot))
        return int(input_bytes + output_bytes)

    def answer(self, slot: int) -> Answer:
        """Return the core's part of a slot."""
        return Answer(*ANSWER.unpack_from(self.map, self.layout.record(slot) + ANSWER_OFFSET))

    def work(self, slot: int) -> Work:
        """Return what a finished task's op charged."""
        record = self.layout.record(slot)
        if not HAS_WORK.unpack_from(self.map, record + ANSWER_OFFSET)[0]:
            return NO_WORK
        return Work(*WORK.unpack_from(self.map, record + SLOT_WORK))

    def write_work(self, slot: int, work: Iterable[int]) -> None:
        """Write what an op charged; its answer then has ``has_work``."""
        WORK.pack_into(self.map, self.layout.record(slot) + SLOT_WORK, *work)

    def text(self, slot: int) -> str:
        """Return the text of the core's answer: why the task failed, or BUTT's list."""
        record = self.layout.record(slot)
        size = min(RESULT.unpack_from(self.map, record + ANSWER_OFFSET)[2], SLOT_TEXT_BYTES)
        raw = bytes(self.map[record + SLOT_TEXT : record + SLOT_TEXT + size])
        return raw.decode("utf-8", "replace")

    def note_site(self, slot: int, site: str) -> None:
        """Record the ``file:line`` about to submit a task in a slot; truncates the start of a long one."""
        at = self.layout.record(slot) + SLOT_SITE
        self.map[at : at + SLOT_SITE_BYTES] = site_bytes(site, SLOT_SITE_BYTES).ljust(SLOT_SITE_BYTES, b"\0")

    def site(self, slot: int) -> str:
        """Return the line recorded by ``note_site``; empty for a program without checks."""
        at = self.layout.record(slot) + SLOT_SITE
        return self.map[at : at + SLOT_SITE_BYTES].partition(b"\0")[0].decode("utf-8", "replace")

    def note_dirty(self, slot: int, key: bytes, found: list[DirtyRanges]) -> None:
        """Record the dirty bytes in the memory of a task about to be submitted in a slot.

        Args:
            slot: The slot, without a task yet.
            key: The request's key, packed with dirty_ranges.KEY.
            found: The dirty bytes.
        """
        raw = message(key, found)
        at = self.layout.record(slot) + SLOT_TEXT
        self.map[at : at + len(raw)] = raw

    def take_dirty(self, slot: int) -> list[DirtyRanges]:
        """Return the dirty bytes recorded by ``note_dirty``, once, to the core that runs the task."""
        record = self.layout.record(slot)
        at = record + SLOT_TEXT
        key = self.map[record + REQUEST_CLIENT_AT : record + REQUEST.size]
        if self.map[at : at + KEY.size] != key:
            return []
        found = of_message(self.map[at : at + SLOT_TEXT_BYTES], key)
        self.map[at : at + KEY.size] = bytes(KEY.size)
        return found

    def write_answer(self, slot: int, answer: Answer, text: str = "") -> None:
        """Write the core's part and its text; the caller writes the state byte next."""
        raw = shorten(text)
        record = self.layout.record(slot)
        self.map[record + SLOT_TEXT : record + SLOT_TEXT + len(raw)] = raw
        ANSWER.pack_into(self.map, record + ANSWER_OFFSET, *answer._replace(text_bytes=len(raw)))

    def check(self, slot: int, to: State, actor: Actor) -> None:
        """Refuse a move that the table does not allow.

        Raises:
            IllegalMoveError: with the task's description; the slot is unchanged.
        """
        now = self.state(slot)
        allowed = MOVES.get((now, to))
        if allowed is None or actor not in allowed[0]:
            raise IllegalMoveError(f"{actor.name} may not move slot {slot} {now.name} -> {to.name}: {self.story(slot)}")

    def move(self, slot: int, to: State, actor: Actor) -> None:
        """Perform a checked move. The caller holds the claim lock if MOVES requires it."""
        self.check(slot, to, actor)
        self.map[self.states + slot] = to

    def story(self, slot: int) -> str:
        """Describe a slot in one line for messages and logs."""
        request, answer = self.request(slot), self.answer(slot)
        where = f"core {answer.core}" if answer.core >= 0 and answer.claim_ns else "no core"
        return (
            f"command {request.cmd:#x}, priority {request.priority}, customId {request.custom_id}, "
            f"client {request.client}, input {request.input_phy:#x}+{request.input_bytes:#x}, "
            f"output {request.output_phy:#x}+{request.output_bytes:#x}, {where}, result {answer.result}"
        )

    def slots_in(self, *states: State) -> list[int]:
        """Return every slot in one of these states, ascending."""
        raw = bytes(self.map[self.states : self.states + self.layout.slot_count])
        return sorted(slot for state in states for slot in _find_all(raw, state))


def shorten(text: str) -> bytes:
    """Encode text as UTF-8, cut in the middle to fit a slot: the ends of a traceback matter most."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= SLOT_TEXT_BYTES:
        return raw
    mark = b"\n[...]\n"
    keep = SLOT_TEXT_BYTES - len(mark)
    return raw[: keep // 4] + mark + raw[-(keep - keep // 4) :]


def _find_all(raw: bytes, value: int) -> list[int]:
    wanted, found, at = bytes([value]), [], -1
    while (at := raw.find(wanted, at + 1)) >= 0:
        found.append(at)
    return found
