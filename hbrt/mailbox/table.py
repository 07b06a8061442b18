"""The task table: states, legal moves, who may write what, and the claim lock.

Rules
    A task is one slot: a state byte, a record, and one announce byte a core. The state byte is the truth; the
    announce byte is a hint that makes finding new work cheap (``mmap.find`` over bytes), and a rescan of the
    state bytes repairs a lost hint.
    Publication: record first, state byte next, announce bytes last. A reader that sees READY or a finished
    state has the fields: the claim lock, a doorbell or a re-read of the sequence number orders them on arm64.
    No two processes ever write one byte at the same time: the table of moves names the process that may write.
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
        """The state for an unknown byte: the task is lost, and its slot can be used again."""
        return cls.LOST if isinstance(value, int) and cls.LOST < value <= 255 else None


FIRST_END = State.DONE
RPC_ALIGNMENT = 8  # of a block that a task names
PRIORITY_PREEMPT = 255  # the highest: it interrupts a running op of a lower one
PRIORITY_URGENT = 254  # it interrupts a running op of a lower one as well


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
    # Only under the lock, and only while the record is the one that was sent to the relay. An owner that cancels its
    # task, and a daemon that reclaims the slot, hold the lock too, so that a late message finds nothing to queue.
    (State.SENT, State.READY): (frozenset({Actor.RELAY}), True),
    (State.SENT, State.FAILED): (frozenset({Actor.RELAY, Actor.OWNER}), True),
    # A task that its owner has another board run.
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
# slot and is rung; the client's memory is used. Both are the submitting client, in relay mode too.
REQUEST = struct.Struct("<QqIHHIIQQQQ")
# REQUEST as an owner packs it: fields no wider than what they may hold, so that packing is the check.
SUBMISSION = struct.Struct("<QqHxxBxHIIQQQQ")
SUBMITTED = struct.Struct("<Q")  # of REQUEST: the sequence, which is the time of the submission
# Of REQUEST and CLAIM: command, priority, owner, client, and when the core claimed it.
RUN = struct.Struct("<16xIHxxII48xQ")
_BLOCK_BYTES = struct.Struct("<40xQ8xQ")  # of REQUEST
REQUEST_CLIENT_AT = 28  # client, then the addresses and sizes: what a core checks before it runs an op
# The core writes: core, result, text bytes, whether the record has WORK, claim/start/done ns, modelled cycles.
ANSWER_OFFSET = 64
ANSWER = struct.Struct("<iiIIQQQQ")
ORDER = struct.Struct("<QqIHH")  # first fields of REQUEST: what the schedule needs
CORE_MASK, CORE_MASK_AT = struct.Struct("<H"), 22  # of REQUEST
RESULT = struct.Struct("<iiI")  # first fields of ANSWER
HAS_WORK = struct.Struct("<12xI")  # of ANSWER
CLAIM = struct.Struct("<iiIIQ24x")  # a core's mark on a slot that it takes; packing zeroes what an earlier task left


class Request(NamedTuple):
    """The request of a task, as its owner writes it."""

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
    """A move of a slot that the table forbids; the message describes the task."""


class Table(Protocol):
    """Bytes that hold a task table: a board's DDR file, or a process's own memory laid out like one."""

    map: mmap.mmap
    layout: Layout


class Mailbox:
    """One process's access to the task table of a board."""

    def __init__(self, ddr: Table) -> None:
        """Use the table in ``ddr``; ``claim_lock`` is the lock that MOVES speaks of."""
        self._ddr = ddr
        self.map = ddr.map
        self.layout = ddr.layout
        self.states = ddr.layout.states
        self.claim_lock = ClaimLock(ddr.map)

    def state(self, slot: int) -> State:
        """State of a slot."""
        return State(self.map[self.states + slot])

    def request(self, slot: int) -> Request:
        """The owner's part of a slot."""
        return Request(*REQUEST.unpack_from(self.map, self.layout.record(slot)))

    def block_bytes(self, slot: int) -> int:
        """Bytes of the blocks of a request."""
        input_bytes, output_bytes = _BLOCK_BYTES.unpack_from(self.map, self.layout.record(slot))
        return int(input_bytes + output_bytes)

    def answer(self, slot: int) -> Answer:
        """The core's part of a slot."""
        return Answer(*ANSWER.unpack_from(self.map, self.layout.record(slot) + ANSWER_OFFSET))

    def work(self, slot: int) -> Work:
        """What the op of a task that has ended charged."""
        record = self.layout.record(slot)
        if not HAS_WORK.unpack_from(self.map, record + ANSWER_OFFSET)[0]:
            return NO_WORK
        return Work(*WORK.unpack_from(self.map, record + SLOT_WORK))

    def write_work(self, slot: int, work: Iterable[int]) -> None:
        """Write what an op charged; its answer then has ``has_work``."""
        WORK.pack_into(self.map, self.layout.record(slot) + SLOT_WORK, *work)

    def text(self, slot: int) -> str:
        """Text of the core's answer: why the task failed, or the list of BUTT."""
        record = self.layout.record(slot)
        size = min(RESULT.unpack_from(self.map, record + ANSWER_OFFSET)[2], SLOT_TEXT_BYTES)
        raw = bytes(self.map[record + SLOT_TEXT : record + SLOT_TEXT + size])
        return raw.decode("utf-8", "replace")

    def note_site(self, slot: int, site: str) -> None:
        """Note the ``file:line`` that is about to submit a task in a slot; a long one loses its start."""
        at = self.layout.record(slot) + SLOT_SITE
        self.map[at : at + SLOT_SITE_BYTES] = site_bytes(site, SLOT_SITE_BYTES).ljust(SLOT_SITE_BYTES, b"\0")

    def site(self, slot: int) -> str:
        """The line that ``note_site`` noted; empty for a program without checks."""
        at = self.layout.record(slot) + SLOT_SITE
        return self.map[at : at + SLOT_SITE_BYTES].partition(b"\0")[0].decode("utf-8", "replace")

    def note_dirty(self, slot: int, key: bytes, found: list[DirtyRanges]) -> None:
        """Note the dirty bytes in the memory of a task that is about to be submitted in a slot.

        Args:
            slot: The slot, which has no task yet.
            key: Of the request, as dirty_ranges.KEY packs it.
            found: The dirty bytes.
        """
        raw = message(key, found)
        at = self.layout.record(slot) + SLOT_TEXT
        self.map[at : at + len(raw)] = raw

    def take_dirty(self, slot: int) -> list[DirtyRanges]:
        """The dirty bytes that ``note_dirty`` noted, once: for the core that runs the task."""
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
            IllegalMoveError: with the task's description; the slot stays as it is.
        """
        now = self.state(slot)
        allowed = MOVES.get((now, to))
        if allowed is None or actor not in allowed[0]:
            raise IllegalMoveError(f"{actor.name} may not move slot {slot} {now.name} -> {to.name}: {self.story(slot)}")

    def move(self, slot: int, to: State, actor: Actor) -> None:
        """Checked move. The caller holds the claim lock where MOVES says so."""
        self.check(slot, to, actor)
        self.map[self.states + slot] = to

    def story(self, slot: int) -> str:
        """One line on a slot for messages and logs."""
        request, answer = self.request(slot), self.answer(slot)
        where = f"core {answer.core}" if answer.core >= 0 and answer.claim_ns else "no core"
        return (
            f"command {request.cmd:#x}, priority {request.priority}, customId {request.custom_id}, "
            f"client {request.client}, input {request.input_phy:#x}+{request.input_bytes:#x}, "
            f"output {request.output_phy:#x}+{request.output_bytes:#x}, {where}, result {answer.result}"
        )

    def slots_in(self, *states: State) -> list[int]:
        """Every slot in one of these states, ascending."""
        raw = bytes(self.map[self.states : self.states + self.layout.slot_count])
        return sorted(slot for state in states for slot in _find_all(raw, state))


def shorten(text: str) -> bytes:
    """UTF-8 bytes of a text, cut in the middle to what a slot holds: the ends of a traceback matter most."""
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
