"""Byte layout of the DDR file: the offsets of the header, the tables, the mailbox and the heap. Pure arithmetic.

The first part of the file is the system area; it is to the board what a reserved carve-out is to a chip.
The rest is the heap, whose bytes have physical addresses: ``phyAddr = DDR_BASE + file offset``.
Everything is little-endian; docs/mailbox.md has the same tables for readers in other languages.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = b"HBRTDDR\0"
LAYOUT_VERSION = 6
DDR_BASE = 0x8000_0000
MAX_BASE = 1 << 62
PAGE_BYTES = 4096
GUARD_PAGES = 1  # after a block: writes there are overruns, which the board detects

# Header: magic, version, header bytes, ddr base, file bytes, heap offset, heap bytes, then
# (offset, record bytes, count) of the core, client and slot tables, offsets of the state and announce bytes,
# of the page table, (offset, record bytes) of the block table, and (record bytes, offset, records a ring) of the
# history.
HEADER = struct.Struct("<8sIIQQQQ QII QII QII QQQ QI IQI")

# u64 in the header's page: increases with every change of the page table or block table, so that cached table
# contents can be validated.
TABLES_GENERATION = 2048

# pthread_mutex_t, process-shared and robust, in the header's page on cache lines of its own.
CLAIM_LOCK = 3072
CLAIM_LOCK_BYTES = 64

# Core record: one cache line that the core writes often, then counters and identity.
CORE_RECORD_BYTES = 256
CORE_ACTIVITY = 0  # u8: one of ACTIVITY_*
CORE_STATE = 1  # u8: 0 offline, 1 running, 2 crashed
CORE_EPOCH = 8  # u64: number of this start of the core
CORE_HEARTBEAT = 16  # u64: CLOCK_MONOTONIC ns of the last beat, which comes every BEAT_SECONDS
CORE_TASKS = 24  # u64: tasks ended by this core since the board started
CORE_BUSY_NS = 32  # u64: ns spent in ops
CORE_CYCLES = 40  # u64: modeled cycles
CORE_PID = 48  # u32
CORE_BEAT_THREAD = 52  # u32: kernel id of the heartbeat thread
# The running op as of the last beat, zeros for none: claim time of its task; ns without progress, and how many of
# them with a CPU; its longest run so far, in ns; the iDMA handle that it polls; descriptors outstanding; offset in this
# file and bytes of the flag that its loop reads.
CORE_PROGRESS = 56  # u64[8]
PROGRESS = struct.Struct("<QQQQQQQQ")
# TCM in use as of the last beat: a bit for each TCM_UNIT_BYTES of a bank, bit 0 for the first.
CORE_TCM = CORE_PROGRESS + PROGRESS.size  # u64[2]
TCM_BITS = struct.Struct("<QQ")
TCM_UNIT_BYTES = 2048
BEAT_SECONDS = 0.08
MAX_CORES = 8
# A core's activity, for deciding whether to ring it: asleep; awake and about to look; in an op; absent; without a
# heartbeat, so that a ring may wake nobody.
ACTIVITY_ASLEEP, ACTIVITY_LOOKING, ACTIVITY_RUNNING, ACTIVITY_OFFLINE, ACTIVITY_STALLED = range(5)

CLIENT_RECORD_BYTES = 64
CLIENT_ASLEEP = 0  # u8: 1 while the client waits for its doorbell
CLIENT_SLEEPS = 1  # u8: 1 while polling costs the client more than it saves: cores that answer it do not poll
CLIENT_CHECKS = 2  # u8: active checks of its tasks, a Check of hbrt.findings.checks
CLIENT_ASKED = 3  # u8: 1 when the daemon asks where the client waits; a sleeping client answers by the verb "waits"
CLIENT_PID = 4  # u32
CLIENT_GONE = 8  # u8: 1 when its lease has ended: a model still running for it must end
CLIENT_NUMBER = 12  # u32: number of this attachment to the board; unlike ids, numbers are not reused
CLIENT_COUNT = 1024

SLOT_RECORD_BYTES = 4096
SLOT_COUNT = 4096
SLOT_SITE = 128  # end of the "file:line" that submitted the task, for a program with checks; zero-terminated
SLOT_SITE_BYTES = 128
SLOT_TEXT = 256  # offset of the text in a record
SLOT_WORK_BYTES = 128
SLOT_WORK = SLOT_RECORD_BYTES - SLOT_WORK_BYTES  # the op's charges, WORK of hbrt.profiles.work, if the answer says so
SLOT_TEXT_BYTES = SLOT_WORK - SLOT_TEXT

# Block record: start (physical), size in bytes, owner, number of registered clients, their ids.
BLOCK_RECORD_BYTES = 64
BLOCK = struct.Struct("<QQIH")
BLOCK_SHARERS = 24  # u16[16]: ids of clients that registered the block, 0 for none
BLOCK_MAX_SHARERS = 16
BLOCK_IMPORTED = 56  # u64: the file mapped in the block's place, see hbrt.ddr.imported; 0 for the DDR
# A freed block's pages and record are kept until the address is reused, so that a message about a late use can name
# its owner and the line that freed it: the end of "file:line" from the client ids on.
BLOCK_FREED = 1 << 31  # with the block's id, in the page table
BLOCK_FREED_AT = BLOCK_SHARERS
BLOCK_FREED_AT_BYTES = BLOCK_RECORD_BYTES - BLOCK_FREED_AT

# History: rings of finished tasks, one per core and one for the daemon. A record: number of the task in the ring, 0
# while the record is being written; its end, a State of hbrt.mailbox.table; its client's process; a copy of the slot's
# REQUEST and ANSWER; its WORK.
HISTORY_RECORD_BYTES = 256
HISTORY_WORK = 128
HISTORY_RECORDS = 4096
HISTORY_RINGS = MAX_CORES + 1
HISTORY_HEAD = struct.Struct("<QB3xI")


def _up(value: int) -> int:
    return -(-value // PAGE_BYTES) * PAGE_BYTES


class Layout(NamedTuple):
    """Where each part of a board's DDR file starts; offsets and sizes in bytes from the file's start."""

    file_bytes: int
    heap: int
    heap_bytes: int
    core_count: int
    cores: int
    clients: int
    states: int
    announce: int
    records: int
    pages: int
    blocks: int
    history: int
    slot_count: int = SLOT_COUNT
    ddr_base: int = DDR_BASE

    def core(self, index: int) -> int:
        """Return the offset of a core's record."""
        return self.cores + index * CORE_RECORD_BYTES

    def client(self, client_id: int) -> int:
        """Offset of a client's record."""
        return self.clients + client_id * CLIENT_RECORD_BYTES

    def record(self, slot: int) -> int:
        """Offset of a slot's record."""
        return self.records + slot * SLOT_RECORD_BYTES

    def announced(self, core: int) -> int:
        """Offset of the announce bytes of a core, one per slot."""
        return self.announce + core * self.slot_count

    def history_ring(self, ring: int) -> int:
        """Offset of the history of a core, or of the daemon, whose ring is MAX_CORES."""
        return self.history + ring * HISTORY_RECORDS * HISTORY_RECORD_BYTES

    @property
    def phy_base(self) -> int:
        """Physical address of the heap's first byte."""
        return self.ddr_base + self.heap

    @property
    def phy_end(self) -> int:
        """Physical address after the heap's last byte."""
        return self.ddr_base + self.file_bytes

    def pack_header(self) -> bytes:
        """Header of the file."""
        return HEADER.pack(
            MAGIC,
            LAYOUT_VERSION,
            HEADER.size,
            self.ddr_base,
            self.file_bytes,
            self.heap,
            self.heap_bytes,
            *(self.cores, CORE_RECORD_BYTES, self.core_count),
            *(self.clients, CLIENT_RECORD_BYTES, CLIENT_COUNT),
            *(self.records, SLOT_RECORD_BYTES, self.slot_count),
            *(self.states, self.announce, self.pages),
            *(self.blocks, BLOCK_RECORD_BYTES),
            *(HISTORY_RECORD_BYTES, self.history, HISTORY_RECORDS),
        )


class LayoutError(ValueError):
    """A file is not a DDR file of this version; the message says how it differs."""


def plan(heap_bytes: int, core_count: int, ddr_base: int = DDR_BASE) -> Layout:
    """Compute the layout of a new board.

    Args:
        heap_bytes: DDR that programs can allocate, rounded up to whole pages.
        core_count: Number of DSP cores, 0..MAX_CORES; 0 for a chip without DSP.
        ddr_base: Physical address of the first byte.

    Raises:
        LayoutError: the sizes are out of range.
    """
    if not 0 <= core_count <= MAX_CORES:
        raise LayoutError(f"A board must have 0 to {MAX_CORES} cores, not {core_count}.")
    if ddr_base % PAGE_BYTES or not 0 <= ddr_base < MAX_BASE:
        raise LayoutError(f"DDR base {ddr_base:#x} must be a multiple of {PAGE_BYTES} below {MAX_BASE:#x}.")
    if heap_bytes < PAGE_BYTES:
        raise LayoutError(f"A DDR of {heap_bytes} bytes is smaller than a page of {PAGE_BYTES}; use more.")
    heap_bytes = _up(heap_bytes)
    page_count = heap_bytes // PAGE_BYTES
    cores = PAGE_BYTES
    clients = cores + _up(MAX_CORES * CORE_RECORD_BYTES)
    states = clients + _up(CLIENT_COUNT * CLIENT_RECORD_BYTES)
    announce = states + _up(SLOT_COUNT)
    records = announce + _up(MAX_CORES * SLOT_COUNT)
    pages = records + SLOT_COUNT * SLOT_RECORD_BYTES
    blocks = pages + _up(page_count * 4)
    # A block takes at least one page and a guard page, so half as many records as pages are enough.
    history = blocks + _up((page_count // 2 + 2) * BLOCK_RECORD_BYTES)
    heap = history + HISTORY_RINGS * HISTORY_RECORDS * HISTORY_RECORD_BYTES
    return Layout(
        file_bytes=heap + heap_bytes,
        heap=heap,
        heap_bytes=heap_bytes,
        core_count=core_count,
        cores=cores,
        clients=clients,
        states=states,
        announce=announce,
        records=records,
        pages=pages,
        blocks=blocks,
        history=history,
        ddr_base=ddr_base,
    )


def read_header(raw: bytes | memoryview, file_bytes: int) -> Layout:
    """Read the layout of an existing DDR file from its first page.

    Raises:
        LayoutError: wrong magic or version, or sizes that do not match this build.
    """
    if len(raw) < HEADER.size:
        raise LayoutError(f"The DDR file has {len(raw)} bytes, fewer than its header's {HEADER.size}.")
    fields = HEADER.unpack_from(raw)
    if fields[0] != MAGIC:
        raise LayoutError(f"The file starts with {bytes(fields[0])!r}, not with {MAGIC!r}: it is not a DDR file.")
    if fields[1] != LAYOUT_VERSION:
        raise LayoutError(
            f"The DDR file has layout version {fields[1]}, but this program expects {LAYOUT_VERSION}. "
            "Restart the daemon and the client from the same installation."
        )
    ddr_base, heap_bytes, core_count = fields[3], fields[6], fields[9]
    layout = plan(heap_bytes, core_count, ddr_base)
    if layout.pack_header() != bytes(raw[: HEADER.size]) or layout.file_bytes > file_bytes:
        raise LayoutError("The DDR file's header does not match its layout version; restart the daemon.")
    return layout


def extent_of(phy_addr: int, size_bytes: int, phy_end: int) -> int:
    """Return the bytes reserved for a block: its whole pages and its guard, up to the end of the heap."""
    pages = -(-size_bytes // PAGE_BYTES) + GUARD_PAGES
    return min(pages * PAGE_BYTES, phy_end - phy_addr)
