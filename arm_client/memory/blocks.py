"""This process's blocks of device memory: allocation, the two cache modes, flushes, registration.

Uncached memory is one copy: the CPU's view is the DDR itself. Cached memory in ``coherent`` mode is the same, and a
flush moves nothing. In ``strict`` mode the CPU sees its own image: CLEAN writes it to the DDR, INVALIDATE reads
the DDR again, so a missing flush gives the same wrong data as on a board.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING

from arm_client.cabi.call_site import call_site
from arm_client.cabi.last_error import RequestRefusedError
from arm_client.memory.block import Block, BlockUser, Writes, address_of, block_users
from arm_client.memory.freed import Freed, FreedBlock
from arm_client.memory.kept_views import KeptViews
from hbrt.attach.question import Question
from hbrt.board.forked import mark, notice
from hbrt.borders.printable import printable
from hbrt.ddr.layout import PAGE_BYTES, extent_of
from hbrt.protocol.control import MAX_SITE
from hbrt.status import Status
from hbrt.trace.kinds import EventKind
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.memory.beside import Beside
    from hbrt.attach.link import Link
    from hbrt.attach.tasks import Tasks
    from hbrt.trace.ring import Ring

SIZE_LIMIT = (1 << 32) - 1


class Blocks:
    """All blocks that this process allocated or registered on one board."""

    def __init__(self, link: Link, tasks: Tasks, *, is_strict: bool = False) -> None:
        """``is_strict``: whether cached memory has a separate CPU image."""
        self._link = link
        self._tasks = tasks
        self._blocks: dict[int, Block] = {}  # no lock: a signal handler would wait for the thread it interrupted
        self._abandoned: deque[Block] = deque()
        self.freed = Freed(link)
        self.views = KeptViews(link, self.freed)
        self._beside: Beside | None = None
        self.is_strict = is_strict
        self.trace: Ring | None = None
        # Set by strict mode: called when a range of a cached block has been flushed.
        self.notes_writes = False  # whether arrays in cached memory record who writes into them
        self.on_flush: Callable[[Block, int, int], None] | None = None
        self.before_flush: Callable[[Block, int, int, int], None] | None = None  # likewise, before it, with the flag
        # Set by the check memory: called with the line when a block is freed again.
        self.on_double_free: Callable[[FreedBlock, str], None] | None = None
        self.on_late_flush: Callable[[FreedBlock], None] | None = None
        self.before_free: Callable[[Block, str], None] | None = None  # with the place

    def alloc(
        self,
        size_bytes: int,
        *,
        is_cached: bool = False,
        is_zeroed: bool = False,
        use: str = "",
        at: int | None = None,
    ) -> Block:
        """Allocate a block. It holds zeros, or the board's HBRT_FILL pattern unless ``is_zeroed``.

        Args:
            size_bytes: How many bytes.
            is_cached: Whether the CPU has a cache for it.
            is_zeroed: Whether it must hold zeros.
            use: The model for which the runtime keeps it; empty for the program's own blocks.
            at: Its physical address, a multiple of a page; None for any.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT for a size outside 1..2^32-1, HB_SYS_OUT_OF_MEMORY with the
                free memory, or the status of a lost board.
        """
        start_ns = monotonic_ns()
        notice()
        if not 0 < size_bytes <= SIZE_LIMIT:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"A block must have 1 to {SIZE_LIMIT} bytes, not {size_bytes}.",
            )
        self.free_abandoned()
        site, use = call_site(MAX_SITE), printable(use[-MAX_SITE:])[-MAX_SITE:]
        # No "**": an interrupt could then come between the request's return and the next line, and lose the block.
        if at is None:
            phy_addr = self._link.request("alloc", size=size_bytes, cached=int(is_cached), site=site, use=use)
        else:
            phy_addr = self._link.request("alloc", size=size_bytes, cached=int(is_cached), site=site, use=use, at=at)
        try:
            block = self._adopt(phy_addr, size_bytes, site, is_cached=is_cached)
            block.is_runtimes = bool(use)
            if (is_zeroed or block.image is not None) and self._link.ddr.has_data(phy_addr, size_bytes):
                if is_zeroed:
                    block.base[:] = bytes(size_bytes)
                else:  # the CPU's first reads come from there
                    block.invalidate(0, size_bytes)
            self._note(EventKind.ALLOC, start_ns, phy_addr, size_bytes)
        except BaseException:
            self._blocks.pop(phy_addr, None)
            self._tasks.carrier.discard_block(phy_addr)
            self._link.undo("free", phy_addr)
            raise
        return block

    def _note(self, kind: EventKind, start_ns: int, phy_addr: int, size_bytes: int = 0, how: str = "") -> None:
        """Record a memory operation while the board is traced."""
        if (trace := self.trace) is not None:
            trace.note(kind, start_ns, monotonic_ns(), phy_addr, size_bytes, text=trace.text(how))

    def free_later(self, block: Block) -> None:
        """Free a block at the next request to the daemon, unless it is freed earlier; for finalizers.

        The garbage collector may run a finalizer in the middle of a request.
        """
        self._abandoned.append(block)

    def free_abandoned(self) -> None:
        """Free what ``free_later`` queued, and what finished tasks that nobody queried have kept."""
        self._tasks.release_abandoned()
        while self._abandoned:
            taken: list[Block] = []
            try:
                # A single C call takes it out and keeps it, so no interrupt comes between the two.
                taken.extend(map(deque.popleft, (self._abandoned,)))
                if not self._link.fault and self._holds(taken[0]):
                    self.release(taken[0], "the end of its last array")
            except IndexError:
                return  # another thread took the last one
            except RequestRefusedError:
                pass
            except BaseException:
                self._abandoned.extend(taken)  # interrupted: the free may not have begun
                raise

    def free_managed(self) -> None:
        """Free what the process's own objects hold or have dropped: at an orderly exit these are not leaks."""
        for block in list(self._blocks.values()):
            block.spill()
        try:
            for block in self._owned():
                if block.is_managed or block.is_runtimes:
                    self.release(block, "its program's end")
        except RequestRefusedError:
            return  # the board is gone or does not answer: it frees everything with the lease

    def keep_views(self) -> None:
        """Before this process releases everything, let remaining views of its blocks keep their last bytes."""
        self.views.keep_all(list(self._blocks.values()))

    def detach_in_child(self) -> None:
        """In a forked child: make its writes into its parent's blocks private."""
        ddr = self._link.ddr
        ddr.private.cut_off(ddr.layout.heap, ddr.layout.file_bytes)
        for block in list(self._blocks.values()):
            start = ddr.offset_of(block.phy_addr)
            if block.image is None and block.address != ddr.address + start:
                ddr.private.isolate(block.address, start, block.end_of_pages(start))

    def free(self, phy_addr: int, freed_at: str = "") -> None:
        """Free a block that this process allocated. A block in use by a task is freed when the task ends.

        Args:
            phy_addr: Its start.
            freed_at: Place named in a message about a late use; empty for the program's file and line.

        Raises:
            RequestRefusedError: HB_SYS_NOT_ALLOCATED if no block starts there (already freed, never allocated, or
                foreign).
        """
        start_ns = monotonic_ns()
        notice()
        freed_at = freed_at or call_site(MAX_SITE)
        self._tasks.carrier.discard_block(phy_addr)
        block = self._blocks.get(phy_addr)
        using = [] if block is None else self._users_of(block, freed_at)
        for _ in using:  # a registration keeps it, since the daemon does not know the user
            self._link.request("register", phy=phy_addr, size=1)
        is_last = block is not None and not block.registrations and not using
        try:
            self._request_free(phy_addr, block if is_last else None, freed_at)
        except RequestRefusedError as error:
            for _ in using:
                self._request_unregister(phy_addr, None, freed_at)
            gone = self.freed.find_physical(phy_addr) if error.status == Status.HB_SYS_NOT_ALLOCATED else None
            if gone is not None:
                if self.on_double_free is not None:
                    self.on_double_free(gone, freed_at)
                raise RequestRefusedError(error.status, f"Free a block once: {gone}.") from None
            raise
        if block is not None and not block.registrations:
            self._blocks.pop(phy_addr, None)
        last = None if block is None or block.registrations else block
        for one in using:
            release = functools.partial(self._request_unregister, phy_addr, last, freed_at)
            if block is not None and not one.keep(phy_addr, block.size_bytes, release):
                release()
        if self.trace is not None:
            self._note(EventKind.FREE, start_ns, phy_addr)

    def _users_of(self, block: Block, freed_at: str) -> list[BlockUser]:
        """Return what still uses a block that is about to be freed."""
        if self.before_free is not None:
            self.before_free(block, freed_at)
        block.spill()
        return [one for one in block_users if one.user_of(block.phy_addr, block.size_bytes) is not None]

    def _request_free(self, phy_addr: int, block: Block | None, freed_at: str) -> None:
        asked = Question()
        try:
            with self.views.around(block, asked, freed_at):
                self._link.request("free", asked, phy=phy_addr, site=freed_at)
        except RequestRefusedError:
            raise
        except BaseException:  # an interrupt
            if asked.sent[0]:
                self._blocks.pop(phy_addr, None)
            raise

    def _holds(self, block: Block) -> bool:
        return self._blocks.get(block.phy_addr) is block

    def _request_unregister(self, phy_addr: int, block: Block | None, freed_at: str) -> None:
        # The board is gone, and the block with it.
        with contextlib.suppress(RequestRefusedError), self.views.around(block, Question(), freed_at):
            self._link.request("unregister", phy=phy_addr)

    def isolate(self) -> None:
        """Restrict this process to its own and registered blocks; call before it has any."""
        from arm_client.memory.isolation import watch  # no cost for a program that is not isolated

        watch(self._link)

    def register(self, phy_addr: int, size_bytes: int) -> tuple[Block, int]:
        """Map a range by its physical address, reference-counted. Returns its block and the range's offset there.

        Raises:
            RequestRefusedError: HB_SYS_REGISTER_MEM_FAILED if the range is not inside one live block.
        """
        if not size_bytes:
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The range at {phy_addr:#x} is empty; set memSize to the number of bytes to register.",
            )
        base = self._link.request("register", phy=phy_addr, size=size_bytes)
        try:
            block = self._blocks.get(base) or self._adopt_registered(base)
        except BaseException:
            self._link.undo("unregister", base)
            raise
        block.registrations += 1
        return block, phy_addr - base

    def import_(self, fd: int, size_bytes: int, offset: int) -> Block:
        """Register another library's memory by its file descriptor; reference-counted, like ``register``.

        Args:
            fd: A memfd, shared memory or a file, open for reading and writing.
            size_bytes: 1..2^32-1.
            offset: Start of the range in the file, a multiple of the page size.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT: no such memory, or the range is outside it;
                HB_SYS_REGISTER_MEM_FAILED: it cannot be shared, or the board is on another machine;
                HB_SYS_OUT_OF_MEMORY: no room on the board.
        """
        notice()
        if not self._link.can_import:
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"Board {self._link.paths.name} is on another machine, which cannot map the memory behind file "
                f"descriptor {fd}: copy it into memory from hbSysAllocMem.",
            )
        _check_shareable(fd, size_bytes, offset)
        self.free_abandoned()
        site = call_site(MAX_SITE)
        base = self._link.request("import", fd=fd, size=size_bytes, offset=offset, site=site)
        try:
            block = self._blocks.get(base) or self._adopt_registered(base)
        except BaseException:
            self._link.undo("unregister", base)
            raise
        block.is_imported = True
        block.registrations += 1
        return block

    def release(self, block: Block, where: str = "") -> None:
        """Free a block, or unregister another library's; ``where`` is like ``freed_at`` of ``free``."""
        if block.is_imported:
            self.unregister(block.phy_addr, where)
        else:
            self.free(block.phy_addr, where)

    def unregister(self, phy_addr: int, where: str = "") -> None:
        """Undo one registration of the block that holds the address; ``where`` is like ``freed_at`` of ``free``.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT if this process has not registered it.
        """
        notice()
        block = self.holding(phy_addr)
        if block is None:
            self._link.request("unregister", phy=phy_addr)
            return
        block.spill()
        is_last = block.registrations == 1 and (block.is_imported or not self._is_owned(block))
        asked, site = Question(), where or call_site(MAX_SITE)
        if is_last and block.is_imported and self.before_free is not None:
            self.before_free(block, site)
        try:
            with self.views.around(block if is_last else None, asked, site):
                self._link.request("unregister", asked, phy=phy_addr, site=site)
        except RequestRefusedError:
            raise
        except BaseException:  # an interrupt
            if asked.sent[0]:
                self._note_unregistered(block, is_last=is_last)
            raise
        self._note_unregistered(block, is_last=is_last)

    def _note_unregistered(self, block: Block, *, is_last: bool) -> None:
        block.registrations -= 1
        if is_last:
            self._blocks.pop(block.phy_addr, None)

    def flush(self, phy_addr: int, size_bytes: int, flag: int) -> None:
        """Clean or invalidate a range of cached memory; does nothing for uncached memory.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT for an unknown flag or a range outside this process's blocks.
        """
        if flag not in {HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE}:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"Unknown flush flag {flag}: use HB_SYS_MEM_CACHE_INVALIDATE (1) or HB_SYS_MEM_CACHE_CLEAN (2).",
            )
        if not mark[0]:
            notice()  # first, since a clean writes into the block
        block = self.holding(phy_addr)
        if block is None or phy_addr + size_bytes > block.phy_addr + block.size_bytes:
            gone = None if block is not None else self.freed.find_physical(phy_addr)
            if gone is not None:
                if self.on_late_flush is not None:
                    self.on_late_flush(gone)
                why = f"The memory at {phy_addr:#x} was freed: {gone}. Flush a block before freeing it."
                raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, why)
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"The range {phy_addr:#x}+{size_bytes:#x} is not inside one block of this process. "
                f"{'' if block is None else f'Its block is {block.phy_addr:#x}+{block.size_bytes:#x}.'}".rstrip(),
            )
        start, start_ns = phy_addr - block.phy_addr, 0 if self.trace is None else monotonic_ns()
        if self.before_flush is not None and block.image is not None:
            self.before_flush(block, start, start + size_bytes, flag)
        move = block.clean if flag == HB_SYS_MEM_CACHE_CLEAN else block.invalidate
        move(start, start + size_bytes)
        if self.on_flush is not None and block.image is not None:
            self.on_flush(block, start, start + size_bytes)
        if self.trace is not None:
            way = "clean" if flag == HB_SYS_MEM_CACHE_CLEAN else "invalidate"
            self._note(EventKind.FLUSH, start_ns, phy_addr, size_bytes, way)

    def holding(self, phy_addr: int) -> Block | None:
        """Return this process's block that contains an address."""
        block = self._blocks.get(phy_addr)
        if block is not None:
            return block
        return next(
            (b for b in list(self._blocks.values()) if b.phy_addr <= phy_addr < b.phy_addr + b.size_bytes), None
        )

    def bytes_at(self, address: int, size_bytes: int) -> memoryview | None:
        """Return the bytes at a CPU address if they are DDR bytes of one block of this process."""
        ddr = self._link.ddr
        if not 0 <= address - ddr.address < ddr.layout.file_bytes:
            return None
        phy_addr = address - ddr.address + ddr.layout.ddr_base
        entry = ddr.block_at(phy_addr)
        block = None if entry is None else self._blocks.get(entry.phy_addr)
        if block is None or block.address != ddr.address + ddr.offset_of(block.phy_addr):
            return None
        start = phy_addr - block.phy_addr
        return block.view[start : start + size_bytes] if start + size_bytes <= block.size_bytes else None

    def physical_of(self, address: int) -> int | None:
        """Translate a CPU address to a physical address; None if it is in no block of this process."""
        for block in list(self._blocks.values()):
            if 0 <= address - block.address < block.size_bytes:
                return block.phy_addr + address - block.address
        return None

    def is_mapped_at(self, address: int) -> bool:
        """Whether a CPU address is in device memory: in the DDR or in a block's image."""
        return any(start <= address < end for start, end in self.mapped_ranges())

    def mapped_ranges(self) -> list[tuple[int, int]]:
        """Return the CPU ranges of device memory: the DDR, and the images of blocks."""
        images = [(address_of(block.image), len(block.image)) for block in list(self._blocks.values()) if block.image]
        ddr = self._link.ddr
        return [(start, start + size) for start, size in ((ddr.address, len(ddr.bytes)), *images)]

    def cached(self) -> list[Block]:
        """Return blocks with a CPU image, by address, so the order is the same in each run."""
        return sorted((one for one in self._blocks.values() if one.image is not None), key=lambda one: one.phy_addr)

    def owned(self) -> list[Block]:
        """Return blocks that this process allocated and has not freed, by address, without the runtime's own."""
        return [block for block in self._owned() if not block.is_runtimes]

    def _owned(self) -> list[Block]:
        self.free_abandoned()
        blocks = sorted(self._blocks.values(), key=lambda block: block.phy_addr)
        return [block for block in blocks if self._is_owned(block)]

    def _is_owned(self, block: Block) -> bool:
        entry = self._link.ddr.block_at(block.phy_addr)
        return entry is not None and entry.owner == self._link.client_id

    def _adopt_registered(self, phy_addr: int) -> Block:
        entry = self._link.ddr.block_at(phy_addr)
        if entry is None:
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The block at {phy_addr:#x} was freed while it was being registered.",
            )
        ddr = self._link.ddr
        start = ddr.offset_of(phy_addr)
        if ddr.imported(phy_addr) and ddr.private.overlap(start, start + entry.size_bytes):
            raise RequestRefusedError(
                Status.HB_SYS_OUT_OF_MEMORY,
                f"The address {phy_addr:#x} is free again on the board, but arrays of its former block are "
                "still in use: delete arrays of freed blocks first.",
            )
        if why := ddr.reach(entry):
            raise RequestRefusedError(Status.HB_SYS_REGISTER_MEM_FAILED, why)
        block = self._adopt(phy_addr, entry.size_bytes, call_site(MAX_SITE), is_cached=True)
        block.invalidate(0, block.size_bytes)
        return block

    def _adopt(self, phy_addr: int, size_bytes: int, site: str, *, is_cached: bool) -> Block:
        offset = self._link.ddr.offset_of(phy_addr)
        extent = extent_of(phy_addr, size_bytes, self._link.ddr.layout.phy_end)
        self.freed.reuse(offset, offset + extent)
        if not self._link.ddr.private.open(offset, offset + extent):
            from arm_client.memory.isolation import open_all

            open_all(self._link)
        if self._link.ddr.imports and (entry := self._link.ddr.block_at(phy_addr)) is not None:
            self._link.ddr.reach(entry)
        ddr, at = self._link.ddr.bytes_with(offset, extent)
        whole = ddr[at : at + extent]
        block = Block(phy_addr, size_bytes, whole, is_cached=is_cached, image=is_cached and self.is_strict)
        if self.notes_writes and block.image is not None:
            block.writes = Writes()
        block.allocated_at = site
        self._blocks[phy_addr] = block
        if block.image is not None and self._beside is None:
            from arm_client.memory.beside import Beside

            self._beside = Beside(self._link, self.cached)
        return block


def _check_shareable(fd: int, size_bytes: int, offset: int) -> None:
    """Refuse a descriptor that, as far as this process can tell, no other process could map."""
    try:
        way = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    except (OSError, ValueError, OverflowError):
        why = f"File descriptor {fd} is not open; pass a memfd or shared memory before closing it."
    else:
        if way != os.O_RDWR:
            why = f"File descriptor {fd} is not open for writing, but cores write to it: open the memory with O_RDWR."
        elif not 0 < size_bytes <= SIZE_LIMIT:
            why = f"Cannot register {size_bytes} bytes: a block must have 1 to {SIZE_LIMIT} bytes."
        elif offset < 0 or offset % PAGE_BYTES:
            why = f"Offset {offset} must be a multiple of {PAGE_BYTES}."
        else:
            return
    raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, why)
