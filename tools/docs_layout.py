"""Tables of docs/mailbox.md: where every byte of the DDR file is, and how a slot may move."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dsp_server.lifecycle.life import STATES
from hbrt.ddr import layout
from hbrt.ddr.layout import BEAT_SECONDS
from hbrt.findings.checks import Check
from hbrt.mailbox import table as mailbox
from hbrt.mailbox.table import MOVES, Actor, State
from hbrt.profiles.work import Work
from hbrt.settings import format_size
from tools.markdown import table

_TYPES = {"B": "uint8", "Q": "uint64", "q": "int64", "I": "uint32", "i": "int32", "H": "uint16", "s": "char"}
_ITEM = re.compile(r"(\d*)([a-zA-Z])")


class Field(NamedTuple):
    """One field of a record."""

    offset: int
    kind: str
    name: str
    meaning: str


def fields(packed: struct.Struct, described: Sequence[tuple[str, str]], start: int = 0) -> list[Field]:
    """Fields of a packed structure, with the names and meanings given in its order.

    Raises:
        ValueError: as many names as fields were not given.
    """
    found: list[tuple[int, str]] = []
    at = start
    for count, letter in _ITEM.findall(packed.format):
        number = int(count or 1)
        if letter == "s":
            found.append((at, f"char[{number}]"))
        elif letter != "x":
            found += [(at + place * struct.calcsize(f"<{letter}"), _TYPES[letter]) for place in range(number)]
        at += struct.calcsize(f"<{number}{letter}")
    return [Field(*place, *words) for place, words in zip(found, described, strict=True)]


_HEADER = (
    ("magic", f"`{layout.MAGIC.decode().encode('unicode_escape').decode()}`"),
    ("version", f"layout version, {layout.LAYOUT_VERSION}; another one is refused"),
    ("header_bytes", "length of these fields"),
    ("ddr_base", f"physical address of the file's first byte, {layout.DDR_BASE:#x}"),
    ("file_bytes", "length of the file"),
    ("heap", "offset of the heap"),
    ("heap_bytes", "length of the heap"),
    ("cores", "offset of the core table"),
    ("core_record_bytes", f"{layout.CORE_RECORD_BYTES}"),
    ("core_count", f"cores of this board, 1 to {layout.MAX_CORES}"),
    ("clients", "offset of the client table"),
    ("client_record_bytes", f"{layout.CLIENT_RECORD_BYTES}"),
    ("client_count", f"{layout.CLIENT_COUNT}; id 0 is nobody"),
    ("records", "offset of the slot records"),
    ("slot_record_bytes", f"{layout.SLOT_RECORD_BYTES}"),
    ("slot_count", f"{layout.SLOT_COUNT}"),
    ("states", "offset of the state bytes"),
    ("announce", "offset of the announce bytes"),
    ("pages", "offset of the page table"),
    ("blocks", "offset of the block table"),
    ("block_record_bytes", f"{layout.BLOCK_RECORD_BYTES}"),
    ("history_record_bytes", f"{layout.HISTORY_RECORD_BYTES}"),
    ("history", "offset of the history"),
    ("history_records", f"records of one ring, {layout.HISTORY_RECORDS}"),
)
_REQUEST = (
    ("sequence", "CLOCK_MONOTONIC ns of the submission, made unique in the client; last key of the schedule"),
    ("custom_id", "smaller first among equal priorities"),
    ("cmd", "command number, 0x0 to 0xffff"),
    ("priority", "0 to 255, larger first"),
    ("core_mask", "bit i admits core i; 0 is any core"),
    ("owner", "id of the client that wrote the slot and is rung"),
    ("client", "id of the client whose memory the task uses"),
    ("input_phy", "physical address of the input block, a multiple of 8; 0 with 0 bytes for none"),
    ("input_bytes", ""),
    ("output_phy", "as `input_phy`"),
    ("output_bytes", ""),
)
_ANSWER = (
    ("core", "core that claimed the task; -1 when none did"),
    ("result", "0, a status, or what the op returned"),
    ("text_bytes", "bytes of the text below"),
    ("has_work", "1 when `work` below is of this task, else 0"),
    ("claim_ns", "CLOCK_MONOTONIC; 0 when not reached, as the two below"),
    ("start_ns", "just before the op"),
    ("done_ns", "just after it"),
    ("cycles", "modeled cycles of the op"),
)
_BLOCK = (
    ("phy_addr", "physical address of the block's first byte"),
    ("size_bytes", "as asked for; its last page may have more"),
    ("owner", "client id; 0 when its owner freed it and others have it registered"),
    ("sharer_count", "how many of the ids below count"),
)
_PROGRESS = (
    (
        "op_claim_ns",
        "of the op that runs, as the last beat saw it: CLOCK_MONOTONIC of its claim; 0 for none, as the rest",
    ),
    ("still_ns", "host ns without progress, waits for a CPU not counted"),
    ("still_cpu_ns", "of them, with a CPU"),
    ("longest_ns", "its longest run so far; 0 before it has run five times"),
    ("dma_handle", "iDMA handle that it polls, 0 for none"),
    ("dma_outstanding", "iDMA descriptors that are outstanding"),
    ("flag_offset", "offset in this file of what its loop reads while it stands still, 0 for nothing that is known"),
    ("flag_bytes", "how many bytes the loop reads there"),
)
_TCM = tuple(
    (f"tcm{bank}", f"TCM of bank {bank} in use at the last beat, a bit for {layout.TCM_UNIT_BYTES} bytes")
    for bank in (0, 1)
)
_CORE = (
    Field(
        layout.CORE_ACTIVITY,
        "uint8",
        "activity",
        f"{layout.ACTIVITY_ASLEEP} asleep, {layout.ACTIVITY_LOOKING} looking for work, "
        f"{layout.ACTIVITY_RUNNING} running an op, {layout.ACTIVITY_OFFLINE} offline, "
        f"{layout.ACTIVITY_STALLED} without a heartbeat: it is not rung",
    ),
    Field(layout.CORE_STATE, "uint8", "state", ", ".join(f"{number} {name}" for number, name in enumerate(STATES))),
    Field(layout.CORE_EPOCH, "uint64", "epoch", "how often the core came to run, 1 for its first process"),
    Field(
        layout.CORE_HEARTBEAT,
        "uint64",
        "heartbeat_ns",
        f"CLOCK_MONOTONIC of the last beat, one each {BEAT_SECONDS * 1000:g} ms",
    ),
    Field(layout.CORE_TASKS, "uint64", "tasks", "tasks that the core has ended since the board started"),
    Field(layout.CORE_BUSY_NS, "uint64", "busy_ns", "host ns in ops"),
    Field(layout.CORE_CYCLES, "uint64", "cycles", "modeled cycles"),
    Field(layout.CORE_PID, "uint32", "pid", "process of the core, 0 for none"),
    Field(layout.CORE_BEAT_THREAD, "uint32", "beat_thread", "the kernel's id of the thread that beats"),
    *fields(layout.PROGRESS, _PROGRESS, layout.CORE_PROGRESS),
    *fields(layout.TCM_BITS, _TCM, layout.CORE_TCM),
)
_CHECKS = ", ".join(f"{int(check)} {str(check.name).lower().replace('_', '-')}" for check in Check)
_CLIENT = (
    Field(layout.CLIENT_ASLEEP, "uint8", "asleep", "1 while the client sleeps on its doorbell, or is about to"),
    Field(layout.CLIENT_SLEEPS, "uint8", "sleeps", "1 while polling costs the client more: its cores do not poll"),
    Field(layout.CLIENT_CHECKS, "uint8", "checks", f"checks on its tasks: {_CHECKS}"),
    Field(layout.CLIENT_ASKED, "uint8", "asked", "1 when the daemon asks where the client waits: see the verb `waits`"),
    Field(layout.CLIENT_PID, "uint32", "pid", "process of the client, 0 when it is gone"),
    Field(layout.CLIENT_GONE, "uint8", "gone", "1 when the client's lease has ended: models that run for it end"),
    Field(layout.CLIENT_NUMBER, "uint32", "number", "which attachment to the board this is: an id is used again"),
)
_HISTORY = (
    (
        "number",
        "of the task in this ring, from 1, which modulo the ring's records is its place; 0 while the record is written",
    ),
    ("state", "how the task ended"),
    ("pid", "process of the task's client"),
)
_STATES = {
    State.EMPTY: "free, or leased and not in use",
    State.SENT: "relay mode: on its way to the relay, which queues it; or another board runs it, and its owner ends it",
    State.READY: "queued",
    State.RUNNING: "a core has claimed it",
    State.DONE: "the op returned 0",
    State.FAILED: "the op raised or returned another value, or a core or the relay refused the task; `result` and text "
    "say which",
    State.CANCELLED: "taken back before a core claimed it",
    State.TIMED_OUT: "its op exceeded its time limit, and the core was ended",
    State.LOST: "its core died, no core may run it anymore, or the board was stopped",
}
_ACTORS = {Actor.OWNER: "owner", Actor.CORE: "core", Actor.SUPERVISOR: "daemon", Actor.RELAY: "relay"}


def _rows(rows: Sequence[Field]) -> str:
    return table(
        ("offset", "type", "field", "meaning"), [(row.offset, row.kind, f"`{row.name}`", row.meaning) for row in rows]
    )


def header() -> str:
    """Fields of the file's first page."""
    rows = fields(layout.HEADER, _HEADER)
    rows += [
        Field(layout.TABLES_GENERATION, "uint64", "generation", "grows with every change of the page or block table"),
        Field(
            layout.CLAIM_LOCK,
            "pthread_mutex_t",
            "claim_lock",
            f"process-shared and robust; {layout.CLAIM_LOCK_BYTES} bytes",
        ),
    ]
    return _rows(rows)


def parts_of_the_file() -> str:
    """Where each part of a default board's file starts."""
    board = layout.plan(2 << 30, 2)
    starts = (
        (0, "header", "see below"),
        (board.cores, "core table", f"{layout.MAX_CORES} records of {layout.CORE_RECORD_BYTES}"),
        (board.clients, "client table", f"{layout.CLIENT_COUNT} records of {layout.CLIENT_RECORD_BYTES}"),
        (board.states, "state bytes", f"{layout.SLOT_COUNT}, one a slot"),
        (board.announce, "announce bytes", f"{layout.MAX_CORES} rows, one a core, of {layout.SLOT_COUNT}, one a slot"),
        (board.records, "slot records", f"{layout.SLOT_COUNT} records of {layout.SLOT_RECORD_BYTES}"),
        (
            board.pages,
            "page table",
            "uint32 for each page of the heap: id of its block, 0 for none; with bit 31 of one that was freed",
        ),
        (board.blocks, "block table", f"records of {layout.BLOCK_RECORD_BYTES}, by block id"),
        (
            board.history,
            "history",
            f"{layout.HISTORY_RINGS} rings of {layout.HISTORY_RECORDS} records of {layout.HISTORY_RECORD_BYTES} bytes",
        ),
        (board.heap, "heap", f"{format_size(board.heap_bytes)}; first byte at {board.phy_base:#x}"),
    )
    return table(("offset", "part", "what is in it"), [(f"{start:#x}", name, what) for start, name, what in starts])


def slot_record() -> str:
    """Fields of a slot's record."""
    rows = fields(mailbox.REQUEST, _REQUEST) + fields(mailbox.ANSWER, _ANSWER, mailbox.ANSWER_OFFSET)
    if [row.name for row in rows] != [*mailbox.Request._fields, *mailbox.Answer._fields]:
        raise ValueError("The names of a slot's fields here are not those of hbrt.mailbox.table.")
    text = Field(
        layout.SLOT_TEXT,
        f"char[{layout.SLOT_TEXT_BYTES}]",
        "text",
        "UTF-8, no final 0: a sentence or a traceback; until the end of the task, what its program has not cleaned",
    )
    return _rows([*rows, text, *_work(layout.SLOT_WORK)])


def _work(start: int) -> list[Field]:
    what = f"what the op charged: {', '.join(Work._fields)} (cycles.md)"
    return [Field(start, f"uint64[{len(Work._fields)}]", "work", what)]


def block_record() -> str:
    """Fields of a block's record."""
    sharers = Field(
        layout.BLOCK_SHARERS,
        f"uint16[{layout.BLOCK_MAX_SHARERS}]",
        "sharers",
        "ids of the clients that registered the block; of one that was freed, the end of the program's `file:line`",
    )
    imported = Field(
        layout.BLOCK_IMPORTED,
        "uint64",
        "imported",
        "0; of memory that another library made, page in its file << 32, serial number << 16, descriptor in the daemon",
    )
    return _rows([*fields(layout.BLOCK, _BLOCK), sharers, imported])


def history_record() -> str:
    """Fields of a record of the history."""
    start = layout.HISTORY_HEAD.size
    task = fields(mailbox.REQUEST, _REQUEST, start) + fields(mailbox.ANSWER, _ANSWER, start + mailbox.ANSWER_OFFSET)
    copied = f"from here to {task[-1].offset + 8}: as they stood in the slot's record, `{task[-1].name}` the last"
    work = _work(layout.HISTORY_WORK)
    return _rows([*fields(layout.HISTORY_HEAD, _HISTORY), task[0]._replace(meaning=copied), *work])


def core_record() -> str:
    """Fields of a core's record."""
    return _rows(_CORE)


def client_record() -> str:
    """Fields of a client's record."""
    return _rows(_CLIENT)


def states() -> str:
    """Values of a state byte."""
    return table(("value", "state", "meaning"), [(int(state), state.name, _STATES[state]) for state in State])


def moves() -> str:
    """Legal moves of a slot."""
    rows = [
        (source.name, target.name, ", ".join(_ACTORS[actor] for actor in sorted(actors)), "yes" if is_locked else "no")
        for (source, target), (actors, is_locked) in MOVES.items()
    ]
    return table(("from", "to", "who", "under the claim lock"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "file-parts": parts_of_the_file,
    "header": header,
    "core-record": core_record,
    "client-record": client_record,
    "slot-record": slot_record,
    "block-record": block_record,
    "history-record": history_record,
    "slot-states": states,
    "slot-moves": moves,
}
