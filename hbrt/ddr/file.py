"""The DDR file: the only place for address <-> offset conversion, bounds, and the block of each page.

The file is a memfd that every process of a board maps whole. An address is an offset from ``DDR_BASE``.
Only the supervisor writes the page table and the block table; everyone may read them.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hbrt.ddr.claim_lock import ClaimLock
from hbrt.ddr.imported import ImportedPages
from hbrt.ddr.layout import (
    BLOCK,
    BLOCK_FREED,
    BLOCK_FREED_AT,
    BLOCK_FREED_AT_BYTES,
    BLOCK_IMPORTED,
    BLOCK_MAX_SHARERS,
    BLOCK_RECORD_BYTES,
    BLOCK_SHARERS,
    DDR_BASE,
    PAGE_BYTES,
    TABLES_GENERATION,
    Layout,
    LayoutError,
    plan,
    read_header,
)
from hbrt.ddr.private_pages import PrivatePages
from hbrt.findings.record import site_bytes
from hbrt.findings.text import counted
from hbrt.status import Status

# Mappings rely on the file's length: if it shrank, touching the lost part would kill every process of the board.
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

_CHUNK_BYTES = 1 << 20
_NEAR_PAGES = 4096  # below an address, in which a message looks for a block
_ZEROS = bytes(_CHUNK_BYTES)
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_SHARERS = struct.Struct(f"<{BLOCK_MAX_SHARERS}H")


class BlockEntry(NamedTuple):
    """A live block from the block table."""

    phy_addr: int
    size_bytes: int
    owner: int
    sharer_count: int

    @property
    def end(self) -> int:
        """Physical address after the block's last byte."""
        return self.phy_addr + self.size_bytes


class FreedBlock(NamedTuple):
    """A block that was freed, and whose address has not been reused."""

    phy_addr: int
    size_bytes: int
    client_id: int
    freed_at: str

    def __str__(self) -> str:
        return f"the block {self.phy_addr:#x}+{self.size_bytes:#x} of client {self.client_id}, freed at {self.freed_at}"


class AddressError(ValueError):
    """A physical range is not inside one live block; the message names the range and what is there."""


class Ddr:
    """One process's mapping of a board's DDR file."""

    def __init__(self, fd: int) -> None:
        """Map the file behind ``fd``, which this object then owns.

        Raises:
            LayoutError: the file is not a DDR file of this version. OSError: it cannot be mapped.
        """
        try:
            self.layout: Layout = read_header(os.pread(fd, PAGE_BYTES, 0), os.fstat(fd).st_size)
            self.map = mmap.mmap(fd, self.layout.file_bytes)
            self.map.madvise(mmap.MADV_DONTDUMP)  # a core dump would read, and so fill, all holes of the file
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        self.bytes = memoryview(self.map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.private = PrivatePages(fd, self.address, data_runs)
        self.imports = ImportedPages(fd, self.address)
        self._base = self.layout.ddr_base
        self._pages = self.layout.pages
        self._blocks = self.layout.blocks
        self._heap_start = self.layout.phy_base
        self._heap_end = self.layout.phy_end

    @classmethod
    def create(cls, heap_bytes: int, core_count: int, ddr_base: int = DDR_BASE) -> Ddr:
        """Create an empty DDR file: a memfd, so it has no name and disappears with its last user.

        Raises:
            LayoutError: the sizes are out of range, or more than this machine can map.
        """
        layout = plan(heap_bytes, core_count, ddr_base)
        try:
            ddr = cls(_new_file(layout))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise LayoutError(
                f"Cannot create a DDR of {heap_bytes} bytes on this machine: {why}; use less, with --ddr or HBRT_DDR."
            ) from None
        ClaimLock(ddr.map).initialize()
        return ddr

    def close(self) -> None:
        """Unmap and close; the mapping lives on until its last view is gone."""
        self.private.keep_finally([])
        try:
            self.bytes.release()
            self.map.close()
        except BufferError:
            pass  # the caller's numpy arrays or views still point into it
        os.close(self.fd)

    def offset_of(self, phy_addr: int) -> int:
        """Return the file offset of a physical address."""
        return phy_addr - self._base

    def phy_of(self, offset: int) -> int:
        """Return the physical address of a file offset, the inverse of ``offset_of``."""
        return offset + self._base

    def has_data(self, phy_addr: int, size_bytes: int) -> bool:
        """Whether any page of a range has been written since it was fresh."""
        offset = self.offset_of(phy_addr)
        return any(data_runs(self.fd, offset, offset + size_bytes))

    def bytes_with(self, offset: int, size_bytes: int) -> tuple[memoryview, int]:
        """Return bytes that contain a file range, and its offset there: the mapping, or another mapping of these pages.

        It is another one if this process's mapping has private pages: see ``hbrt.ddr.private_pages``.
        """
        if not self.private.overlap(offset, offset + size_bytes):
            return self.bytes, offset
        first = offset // PAGE_BYTES * PAGE_BYTES
        last = min(offset + size_bytes, self.layout.file_bytes)
        return memoryview(mmap.mmap(self.fd, last - first, offset=first)), offset - first

    def block_at(self, phy_addr: int) -> BlockEntry | None:
        """Return the live block that contains the address, in O(1), or None."""
        if not self._heap_start <= phy_addr < self._heap_end:
            return None
        page = (phy_addr - self._heap_start) // PAGE_BYTES
        block_id = _U32.unpack_from(self.map, self._pages + page * 4)[0]
        if not 0 < block_id < BLOCK_FREED:
            return None
        entry = BlockEntry(*BLOCK.unpack_from(self.map, self._blocks + block_id * BLOCK_RECORD_BYTES))
        return entry if entry.phy_addr <= phy_addr < entry.end else None

    def freed_block(self, phy_addr: int) -> FreedBlock | None:
        """Return the freed block that contained the address, as long as nothing else has been there since."""
        if not self._heap_start <= phy_addr < self._heap_end:
            return None
        page = (phy_addr - self._heap_start) // PAGE_BYTES
        block_id = _U32.unpack_from(self.map, self._pages + page * 4)[0]
        if block_id < BLOCK_FREED:
            return None
        at = self._blocks + (block_id - BLOCK_FREED) * BLOCK_RECORD_BYTES
        start, size_bytes, client_id, _ = BLOCK.unpack_from(self.map, at)
        site = self.map[at + BLOCK_FREED_AT : at + BLOCK_FREED_AT + BLOCK_FREED_AT_BYTES]
        found = FreedBlock(start, size_bytes, client_id, site.rstrip(b"\0").decode(errors="replace"))
        return found if start <= phy_addr < start + size_bytes else None  # otherwise another block has that record now

    def sharers(self, phy_addr: int) -> tuple[int, ...]:
        """Return the ids of clients that registered the live block at this address."""
        page = (phy_addr - self._heap_start) // PAGE_BYTES
        block_id = _U32.unpack_from(self.map, self._pages + page * 4)[0]
        found = _SHARERS.unpack_from(self.map, self._blocks + block_id * BLOCK_RECORD_BYTES + BLOCK_SHARERS)
        return tuple(client for client in found if client)

    def reach(self, block: BlockEntry) -> str:
        """Make a live block's bytes, even imported ones, accessible in this mapping; returns an error or ""."""
        word = self.imported(block.phy_addr)
        if not word and not self.imports:
            return ""
        start = self.offset_of(block.phy_addr)
        try:
            self.imports.show(start, start + -(-block.size_bytes // PAGE_BYTES) * PAGE_BYTES, word)
        except OSError as error:
            return (
                f"The block {block.phy_addr:#x}+{block.size_bytes:#x} is memory that client {block.owner} registered, "
                f"but process {os.getpid()} cannot map it: {error.strerror}."
            )
        return ""

    def imported(self, phy_addr: int) -> int:
        """Return the file in the record of the block at an address; see ``hbrt.ddr.imported``."""
        page = (phy_addr - self._heap_start) // PAGE_BYTES
        block_id = _U32.unpack_from(self.map, self._pages + page * 4)[0]
        if not 0 < block_id < BLOCK_FREED:
            return 0
        at = self._blocks + block_id * BLOCK_RECORD_BYTES
        word: int = _U64.unpack_from(self.map, at + BLOCK_IMPORTED)[0]
        return word

    def discard_imports(self) -> None:
        """Unmap imported memory that is no longer a live block."""
        self.imports.keep_only(lambda start, word: self.imported(start + self._base) == word)

    def contains(self, phy_addr: int, size_bytes: int) -> bool:
        """Whether the whole range is inside one live block."""
        block = self.block_at(phy_addr)
        return block is not None and 0 <= size_bytes <= block.end - phy_addr

    def refusal(
        self, phy_addr: int, size_bytes: int, client_id: int | None, alignment: int = 1
    ) -> tuple[Status, str] | None:
        """Return why a client may not use a range, as status and message; None if it may, with its bytes accessible.

        Args:
            phy_addr: Start of the range.
            size_bytes: Its size.
            client_id: The client, which must own or have registered the block; None for any client.
            alignment: Required alignment of the start.
        """
        block = self.block_at(phy_addr)
        if block is None or not 0 <= size_bytes <= block.end - phy_addr:
            return Status.HB_DSP_INVALID_ADDRESS, self.explain(phy_addr, size_bytes)
        if client_id not in {None, block.owner} and not (block.sharer_count and client_id in self.sharers(phy_addr)):
            why = f"belongs to another process, client {block.owner}, not to client {client_id}"
            return (
                Status.HB_DSP_INVALID_ADDRESS,
                f"{_asked(phy_addr, size_bytes)} {why}; register it first (hbSysRegisterMem).",
            )
        if phy_addr % alignment:
            why = f"{_asked(phy_addr, size_bytes)} must start at a multiple of {alignment} bytes."
            return Status.HB_DSP_UNALIGNED_ADDRESS, why
        if why := self.reach(block):
            return Status.HB_DSP_INVALID_ADDRESS, why
        return None

    def view(self, phy_addr: int, size_bytes: int) -> memoryview:
        """Return the bytes of a physical range, writable.

        Raises:
            AddressError: the range is not inside one live block.
        """
        if not self.contains(phy_addr, size_bytes):
            raise AddressError(self.explain(phy_addr, size_bytes))
        offset = phy_addr - self._base
        return self.bytes[offset : offset + size_bytes]

    def explain(self, phy_addr: int, size_bytes: int) -> str:
        """Return the message on why a range is not usable: the range, and what is there."""
        asked = _asked(phy_addr, size_bytes)
        if size_bytes < 0:
            return f"{asked} has a negative size."
        if not self._heap_start <= phy_addr < self._heap_end:
            hint = (
                " That looks like a virtual address: pass mem.phyAddr, not mem.virAddr."
                if phy_addr >= self._heap_end
                else ""
            )
            return f"{asked} is outside this board's DDR ({self._heap_start:#x}..{self._heap_end:#x}).{hint}"
        block = self.block_at(phy_addr)
        if block is None:
            if (freed := self.freed_block(phy_addr)) is not None:
                return f"{asked} is in freed memory: {freed}. Free a block after its last use."
            nearest = self._nearest_below(phy_addr)
            beside = f" The block below is {nearest.phy_addr:#x}+{nearest.size_bytes:#x}." if nearest else ""
            return f"{asked} is not in a live block; it was freed or never allocated.{beside}"
        over = phy_addr + size_bytes - block.end
        return (
            f"{asked} runs {counted(over, 'byte')} past the end of its block {block.phy_addr:#x}+{block.size_bytes:#x}."
        )

    def _nearest_below(self, phy_addr: int) -> BlockEntry | None:
        page = (phy_addr - self._heap_start) // PAGE_BYTES
        for candidate in range(page, max(-1, page - _NEAR_PAGES), -1):
            block_id = _U32.unpack_from(self.map, self._pages + candidate * 4)[0]
            if 0 < block_id < BLOCK_FREED:
                return BlockEntry(*BLOCK.unpack_from(self.map, self._blocks + block_id * BLOCK_RECORD_BYTES))
        return None


def _asked(phy_addr: int, size_bytes: int) -> str:
    return f"The physical range {phy_addr:#x}+{size_bytes:#x}"


def _new_file(layout: Layout) -> int:
    fd = os.memfd_create("hbrt-ddr", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, layout.file_bytes)
        os.pwrite(fd, layout.pack_header(), 0)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd


class DdrTables:
    """The supervisor's writer for the page table and block table of a DDR file."""

    def __init__(self, ddr: Ddr) -> None:
        """Write into ``ddr``; only one process per board may."""
        self._ddr = ddr
        self._can_remove = can_remove_pages()

    def _mark(self, phy_addr: int, reserved_bytes: int, block_id: int) -> None:
        layout = self._ddr.layout
        first = (phy_addr - layout.phy_base) // PAGE_BYTES
        count = reserved_bytes // PAGE_BYTES
        start = layout.pages + first * 4
        self._ddr.map[start : start + count * 4] = _U32.pack(block_id) * count
        self._note_change()

    def _note_change(self) -> None:
        mm = self._ddr.map
        mm[TABLES_GENERATION : TABLES_GENERATION + 8] = _U64.pack(_U64.unpack_from(mm, TABLES_GENERATION)[0] + 1)

    def add(
        self, block_id: int, phy_addr: int, size_bytes: int, reserved_bytes: int, owner: int, imported: int = 0
    ) -> None:
        """Publish a new block: record first, pages last, so that nobody sees a partial block."""
        record = self._ddr.layout.blocks + block_id * BLOCK_RECORD_BYTES
        self._ddr.map[record : record + BLOCK_RECORD_BYTES] = bytes(BLOCK_RECORD_BYTES)
        BLOCK.pack_into(self._ddr.map, record, phy_addr, size_bytes, owner, 0)
        _U64.pack_into(self._ddr.map, record + BLOCK_IMPORTED, imported)
        self._mark(phy_addr, reserved_bytes, block_id)

    def remove(self, block_id: int, reserved_bytes: int, client_id: int = 0, freed_at: str = "") -> None:
        """Withdraw a block: a later use of its address gets a message that says who freed it, and where."""
        record = self._ddr.layout.blocks + block_id * BLOCK_RECORD_BYTES
        phy_addr, size_bytes, _, _ = BLOCK.unpack_from(self._ddr.map, record)
        self._mark(phy_addr, reserved_bytes, BLOCK_FREED | block_id)
        BLOCK.pack_into(self._ddr.map, record, phy_addr, size_bytes, client_id, 0)
        site = site_bytes(freed_at, BLOCK_FREED_AT_BYTES).ljust(BLOCK_FREED_AT_BYTES, b"\0")
        self._ddr.map[record + BLOCK_FREED_AT : record + BLOCK_FREED_AT + BLOCK_FREED_AT_BYTES] = site

    def set_owner(self, block_id: int, owner: int, sharers: tuple[int, ...]) -> None:
        """Write the owner of a block and its registered sharers; owner 0 means none.

        Raises:
            ValueError: more sharers than a block record holds.
        """
        if len(sharers) > BLOCK_MAX_SHARERS:
            raise ValueError(f"A block can be registered by at most {BLOCK_MAX_SHARERS} clients, not {len(sharers)}.")
        record = self._ddr.layout.blocks + block_id * BLOCK_RECORD_BYTES
        padded = sharers + (0,) * (BLOCK_MAX_SHARERS - len(sharers))
        _SHARERS.pack_into(self._ddr.map, record + BLOCK_SHARERS, *padded)
        phy_addr, size_bytes, _, _ = BLOCK.unpack_from(self._ddr.map, record)
        BLOCK.pack_into(self._ddr.map, record, phy_addr, size_bytes, owner, len(sharers))
        self._note_change()

    def free_pages(self, phy_addr: int, reserved_bytes: int) -> None:
        """Return the pages of a range to the host; they read as zero afterwards."""
        offset = self._ddr.offset_of(phy_addr)
        if self._can_remove:
            self._ddr.map.madvise(mmap.MADV_REMOVE, offset, reserved_bytes)
            return
        for start, end in data_runs(self._ddr.fd, offset, offset + reserved_bytes):
            for at in range(start, end, _CHUNK_BYTES):
                os.pwrite(self._ddr.fd, bytes(min(_CHUNK_BYTES, end - at)), at)

    def write(self, phy_addr: int, size_bytes: int, new: Callable[[int], bytes]) -> None:
        """Fill a range part by part with the result of ``new``."""
        offset = self._ddr.offset_of(phy_addr)
        for at in range(offset, offset + size_bytes, _CHUNK_BYTES):
            os.pwrite(self._ddr.fd, new(min(_CHUNK_BYTES, offset + size_bytes - at)), at)

    def first_nonzero(self, phy_addr: int, size_bytes: int) -> int | None:
        """Return the physical address of a range's first nonzero byte, or None; skips holes."""
        offset = self._ddr.offset_of(phy_addr)
        for start, end in data_runs(self._ddr.fd, offset, offset + size_bytes):
            for at in range(start, end, _CHUNK_BYTES):
                chunk = os.pread(self._ddr.fd, min(_CHUNK_BYTES, end - at), at)
                if chunk != _ZEROS[: len(chunk)]:
                    return self._ddr.layout.ddr_base + at + len(chunk) - len(chunk.lstrip(b"\0"))
        return None


def data_runs(fd: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a file range that are not holes; reading a hole through a mapping would fill it."""
    while start < end:
        try:
            first = os.lseek(fd, start, os.SEEK_DATA)
        except OSError:
            return  # ENXIO: only holes from here on
        if first >= end:
            return
        start = min(end, os.lseek(fd, first, os.SEEK_HOLE))
        yield first, start


@functools.cache
def can_remove_pages() -> bool:
    """Whether MADV_REMOVE empties pages; an emulated kernel (qemu-user) returns 0 and leaves them unchanged."""
    fd = os.memfd_create("hbrt-probe", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, PAGE_BYTES)
        with mmap.mmap(fd, PAGE_BYTES) as page:
            page[0] = 1
            page.madvise(mmap.MADV_REMOVE)
            return not page[0]
    except OSError:
        return False
    finally:
        os.close(fd)
