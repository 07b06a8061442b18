"""Where everything lies in the DDR file: nothing overlaps, and a large value comes through every field whole."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import pytest

from hbrt.ddr import layout
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import (
    BLOCK,
    BLOCK_MAX_SHARERS,
    BLOCK_RECORD_BYTES,
    BLOCK_SHARERS,
    CLAIM_LOCK,
    CLAIM_LOCK_BYTES,
    CLIENT_COUNT,
    CLIENT_RECORD_BYTES,
    CORE_RECORD_BYTES,
    DDR_BASE,
    HEADER,
    HISTORY_RECORD_BYTES,
    HISTORY_WORK,
    LAYOUT_VERSION,
    MAGIC,
    MAX_CORES,
    PAGE_BYTES,
    SLOT_COUNT,
    SLOT_RECORD_BYTES,
    SLOT_TEXT,
    SLOT_TEXT_BYTES,
    SLOT_WORK,
    TABLES_GENERATION,
    Layout,
    LayoutError,
    plan,
    read_header,
)
from hbrt.mailbox import table as mailbox
from hbrt.profiles.work import WORK
from tests.each import each

LARGE = 0xFEDC_BA98_7654_3210
SIZES = (PAGE_BYTES, 1 << 20, 2 << 30, 1 << 40)


def _parts(plan_: Layout) -> list[tuple[str, int, int]]:
    """Name, start and end of every part of the file, as the header tells a reader."""
    pages = plan_.heap_bytes // PAGE_BYTES
    return [
        ("header", 0, HEADER.size),
        ("generation", TABLES_GENERATION, TABLES_GENERATION + 8),
        ("claim lock", CLAIM_LOCK, CLAIM_LOCK + CLAIM_LOCK_BYTES),
        ("cores", plan_.cores, plan_.cores + MAX_CORES * CORE_RECORD_BYTES),
        ("clients", plan_.clients, plan_.clients + CLIENT_COUNT * CLIENT_RECORD_BYTES),
        ("states", plan_.states, plan_.states + SLOT_COUNT),
        ("announce", plan_.announce, plan_.announce + MAX_CORES * SLOT_COUNT),
        ("records", plan_.records, plan_.records + SLOT_COUNT * SLOT_RECORD_BYTES),
        ("pages", plan_.pages, plan_.pages + pages * 4),
        # Every block id that the heap can give: 1 to as many as fit with a guard page each.
        ("blocks", plan_.blocks, plan_.blocks + ((pages + 1) // 2 + 1) * BLOCK_RECORD_BYTES),
        ("heap", plan_.heap, plan_.heap + plan_.heap_bytes),
    ]


@each("heap_bytes", SIZES)
@each("cores", [1, MAX_CORES])
def test_parts_do_not_overlap_and_fill_no_more_than_the_file(heap_bytes: int, cores: int) -> None:
    plan_ = plan(heap_bytes, cores)
    parts = sorted(_parts(plan_), key=lambda part: part[1])
    for (_, _, end), (name, start, _) in itertools.pairwise(parts):
        assert end <= start, name
    assert parts[-1][2] == plan_.file_bytes
    assert all(start % PAGE_BYTES == 0 for name, start, _ in parts if name not in {"generation", "claim lock"})


@each("heap_bytes", SIZES)
def test_header_tells_the_whole_layout(heap_bytes: int) -> None:
    plan_ = plan(heap_bytes, 2)
    raw = plan_.pack_header()
    assert len(raw) == HEADER.size
    assert raw.startswith(MAGIC)
    assert read_header(raw, plan_.file_bytes) == plan_


def test_sizes_are_rounded_up_to_pages_and_bounded() -> None:
    assert plan(1 << 20, 1).heap_bytes == 1 << 20
    assert plan((1 << 20) + 1, 1).heap_bytes == (1 << 20) + PAGE_BYTES
    for cores in (MAX_CORES + 1, -1):
        with pytest.raises(LayoutError, match=f"A board must have 0 to {MAX_CORES} cores, not {cores}"):
            plan(1 << 20, cores)
    for heap_bytes in (0, -1, PAGE_BYTES - 1):
        with pytest.raises(LayoutError, match=f"A DDR of {heap_bytes} bytes is smaller than a page of {PAGE_BYTES}"):
            plan(heap_bytes, 1)


def _broken_headers() -> Iterator[tuple[str, bytes, str]]:
    good = plan(1 << 20, 2).pack_header()
    yield "short", good[:-1], f"has {HEADER.size - 1} bytes, fewer than its header's {HEADER.size}"
    yield "empty", b"", "has 0 bytes"
    yield "magic", b"ELF" + good[3:], "it is not a DDR file"
    yield (
        "version",
        good[:8] + struct.pack("<I", LAYOUT_VERSION + 1) + good[12:],
        f"layout version {LAYOUT_VERSION + 1}",
    )
    base, number_of_cores = 20, 60  # any is as good as another
    for at in set(range(12, HEADER.size, 4)) - {base, number_of_cores}:
        changed = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        yield f"byte {at}", changed, ""


@pytest.mark.parametrize(
    ("raw", "text"), [case[1:] for case in _broken_headers()], ids=[c[0] for c in _broken_headers()]
)
def test_file_that_is_none_of_this_version_is_refused(raw: bytes, text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        read_header(raw, 1 << 40)
    assert text in str(caught.value)


def test_file_that_is_shorter_than_it_says_is_refused() -> None:
    plan_ = plan(1 << 20, 2)
    with pytest.raises(LayoutError, match="does not match"):
        read_header(plan_.pack_header(), plan_.file_bytes - 1)


STRUCTS: dict[str, struct.Struct] = {
    "header": HEADER,
    "request": mailbox.REQUEST,
    "answer": mailbox.ANSWER,
    "block": BLOCK,
}


def test_structs_have_the_documented_sizes() -> None:
    """docs/mailbox.md has these for readers in other languages; standard sizes, no padding but what is written."""
    assert {name: packed.size for name, packed in STRUCTS.items()} == {
        "header": 148,
        "request": 64,
        "answer": 48,
        "block": 22,
    }
    assert mailbox.REQUEST.size <= mailbox.ANSWER_OFFSET
    assert mailbox.ANSWER_OFFSET + mailbox.ANSWER.size <= SLOT_TEXT
    assert SLOT_TEXT + SLOT_TEXT_BYTES == SLOT_WORK
    assert SLOT_WORK + WORK.size <= SLOT_RECORD_BYTES
    assert HISTORY_WORK + WORK.size <= HISTORY_RECORD_BYTES
    assert BLOCK.size <= BLOCK_SHARERS
    assert BLOCK_SHARERS + 2 * BLOCK_MAX_SHARERS <= BLOCK_RECORD_BYTES
    assert CLIENT_COUNT <= 1 << 16  # a sharer's id is 16 bits wide
    assert DDR_BASE >= 0x8000_0000


def test_partial_views_of_a_record_read_the_same_fields() -> None:
    values = (LARGE, -5, 0x1234, 255, 3, 77, 78, LARGE + 1, LARGE + 2, LARGE + 3, LARGE + 4)
    raw = mailbox.REQUEST.pack(*values)
    request = mailbox.Request(*values)
    assert mailbox.ORDER.unpack_from(raw) == values[: len(mailbox.ORDER.unpack_from(raw))]
    assert int.from_bytes(raw[mailbox.REQUEST_CLIENT_AT : mailbox.REQUEST_CLIENT_AT + 4], "little") == request.client
    answer = mailbox.ANSWER.pack(1, -2, 3, 0, LARGE, LARGE + 1, LARGE + 2, LARGE + 3)
    assert mailbox.RESULT.unpack_from(answer) == (1, -2, 3)
    assert mailbox.CLAIM.unpack_from(answer) == (1, -2, 3, 0, LARGE)
    record = raw.ljust(mailbox.ANSWER_OFFSET, b"\0") + answer
    assert mailbox.RUN.unpack_from(record) == (request.cmd, request.priority, request.owner, request.client, LARGE)


CORE_FIELDS = {
    "CORE_ACTIVITY": 1,
    "CORE_STATE": 1,
    "CORE_EPOCH": 8,
    "CORE_HEARTBEAT": 8,
    "CORE_TASKS": 8,
    "CORE_BUSY_NS": 8,
    "CORE_CYCLES": 8,
    "CORE_PID": 4,
    "CORE_BEAT_THREAD": 4,
}
CLIENT_FIELDS = {"CLIENT_ASLEEP": 1, "CLIENT_PID": 4, "CLIENT_GONE": 1, "CLIENT_NUMBER": 4}


@pytest.mark.parametrize(
    ("fields", "record_bytes"), [(CORE_FIELDS, CORE_RECORD_BYTES), (CLIENT_FIELDS, CLIENT_RECORD_BYTES)]
)
def test_fields_of_the_small_records_are_apart_and_aligned(fields: dict[str, int], record_bytes: int) -> None:
    places = sorted((getattr(layout, name), size) for name, size in fields.items())
    for (at, size), (following, _) in itertools.pairwise([*places, (record_bytes, 0)]):
        assert at % size == 0
        assert at + size <= following


def test_records_of_all_cores_clients_and_slots_are_apart() -> None:
    ddr = Ddr.create(1 << 20, MAX_CORES)
    plan_ = ddr.layout
    starts = [plan_.core(index) for index in range(MAX_CORES)]
    starts += [plan_.client(client) for client in range(CLIENT_COUNT)]
    starts += [plan_.announced(core) for core in range(MAX_CORES)]
    starts += [plan_.record(slot) for slot in range(SLOT_COUNT)]
    assert len(set(starts)) == len(starts)
    assert starts[MAX_CORES - 1] + CORE_RECORD_BYTES <= plan_.clients
    assert plan_.record(SLOT_COUNT - 1) + SLOT_RECORD_BYTES <= plan_.pages
    ddr.close()


def test_last_slots_record_keeps_large_values_beside_the_first() -> None:
    ddr = Ddr.create(1 << 20, 2)
    table = mailbox.Mailbox(ddr)
    first = mailbox.Request(LARGE, -(1 << 63), 0xFFFF, 255, 2, 1, 1, LARGE, LARGE, LARGE, LARGE)
    last = first._replace(sequence=1, custom_id=(1 << 63) - 1, client=(1 << 32) - 1)
    for slot, request in ((0, first), (SLOT_COUNT - 1, last)):
        mailbox.REQUEST.pack_into(ddr.map, ddr.layout.record(slot), *request)
        answer = mailbox.Answer(-1, -(1 << 31), 0, 0, LARGE, LARGE, LARGE, LARGE)
        table.write_answer(slot, answer, f"slot {slot} " + "\u00e9" * 5000)
    assert (table.request(0), table.request(SLOT_COUNT - 1)) == (first, last)
    for slot in (0, SLOT_COUNT - 1):
        assert table.answer(slot)[4:] == (LARGE,) * 4
        assert table.text(slot).startswith(f"slot {slot} ")
        assert table.answer(slot).text_bytes == SLOT_TEXT_BYTES
    ddr.close()
