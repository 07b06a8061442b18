"""Blocks of device memory of this process: allocation, the two cache modes, flushes, registration.

Uncached memory is one copy: the CPU's view is the DDR itself. Cached memory in ``coherent`` mode is the same, and a
flush moves nothing. In ``strict`` mode the CPU sees an image of its own: CLEAN writes it to the DDR, INVALIDATE reads
the DDR again, so that a missing flush gives here the wrong data that it gives on a board.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Protocol

from arm_client.buried import Buried
from arm_client.refusal import RequestRefusedError
from arm_client.unclean import tell, unclean_bytes
from hbrt import settings
from hbrt.layout import PAGE_BYTES
from hbrt.private_pages import AnyBytes
from hbrt.status import Status
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arm_client.strict import Watch
    from hbrt.link import Link
    from hbrt.tasks import Tasks

SIZE_LIMIT = (1 << 32) - 1
GUARD_PAGES = 1  # behind a block: what is written there is an overrun, which the board finds


class BlockUser(Protocol):
    """What uses memory of this process without the daemon's knowledge: tasks of models."""

    def is_used(self, phy_addr: int, size_bytes: int) -> bool:
        """Whether any of this memory is in use."""

    def keep(self, phy_addr: int, size_bytes: int, let_go: Callable[[], None]) -> bool:
        """Have ``let_go`` called when it no longer is; False when it is not in use."""


block_users: list[BlockUser] = []
"""Asked before a block is freed: what they use goes when they have ended."""


class Exporter(AnyBytes):  # type: ignore[misc, valid-type]
    """The bytes of a block, as the buffer protocol gives them out: whatever looks at them keeps this object.

    numpy, for one, drops every array between a view and the object whose buffer it looks at.
    """

    bytes: memoryview  # keeps them mapped


class Block:
    """One block as this process holds it."""

    __slots__ = (
        "_exporter",
        "_exporter_ref",
        "address",
        "base",
        "behind",
        "flushed",
        "image",
        "image_map",
        "is_cached",
        "is_flushed",
        "is_managed",
        "is_registered",
        "is_shared_told",
        "is_told",
        "marks",
        "phy_addr",
        "registrations",
        "size_bytes",
        "spilt",
    )

    def __init__(self, phy_addr: int, size_bytes: int, ddr: memoryview, *, is_cached: bool, image: bool) -> None:
        """``ddr``: the bytes of the block, its last page's rest, and the guard behind it."""
        self.phy_addr = phy_addr
        self.size_bytes = size_bytes
        self.is_cached = is_cached
        self.is_registered = False
        self.is_managed = False  # something frees it when nothing refers to it any more
        self.registrations = 0
        self.base = ddr[:size_bytes]  # the DDR's bytes of this block
        self.behind = ddr[size_bytes:]  # those that nobody may write
        self.image_map = mmap.mmap(-1, len(ddr)) if image else None
        whole = memoryview(self.image_map) if self.image_map is not None else None
        self.image = whole[:size_bytes] if whole is not None else None
        self.spilt = whole[size_bytes:] if whole is not None else None  # what a program writes past the image's end
        self.flushed = memoryview(mmap.mmap(-1, size_bytes)) if image else None  # the image as flushes left it
        self.is_told = False  # the program has heard that it did not clean this block
        self.is_shared_told = False  # likewise, that two unfinished tasks use it
        self.is_flushed = False  # the program knows that this block needs its flushes
        self.marks: list[int] = []  # offsets where ranges begin or end that it named; see arm_client.strict
        self.address = address_of(self.base if self.image is None else self.image)
        self._exporter: Exporter | None = None
        self._export()

    @property
    def view(self) -> memoryview:
        """Writable bytes as the CPU sees them: the DDR's own, or those of the image."""
        exporter = self._exporter_ref()
        if exporter is None:
            exporter = self._export()
        return memoryview(exporter).cast("B")[: self.size_bytes]

    def hand_over(self) -> Exporter:
        """What keeps the block's bytes viewed, for an owner who frees the block when that object goes."""
        exporter, self._exporter = self._exporter_ref() or self._export(), None
        return exporter

    def viewed(self) -> Exporter | None:
        """What views of the block hold, once this object holds it no more; None when there is no view."""
        self._exporter = None
        return self._exporter_ref()

    def _export(self) -> Exporter:
        exporter: Exporter = Exporter.from_address(self.address)
        exporter.bytes = self.base if self.image is None else self.image
        self._exporter = exporter
        self._exporter_ref = weakref.ref(exporter)
        return exporter

    def end_of_pages(self, start: int) -> int:
        """Where the block's last page ends in the DDR file, in which it begins at ``start``."""
        return start + -(-self.size_bytes // PAGE_BYTES) * PAGE_BYTES

    def clean(self, start: int, end: int) -> None:
        """CPU image to DDR."""
        if self.image is not None and self.flushed is not None:
            self.base[start:end] = self.flushed[start:end] = self.image[start:end]

    def spill(self) -> None:
        """Put what was written past the image's end where it was meant, as a cache does in time: the board finds it."""
        if self.spilt is not None and (spilt := bytes(self.spilt)) != bytes(len(self.spilt)):
            for at, byte in enumerate(spilt):
                if byte:
                    self.behind[at] = byte

    def invalidate(self, start: int, end: int) -> None:
        """DDR to CPU image."""
        if self.image is not None and self.flushed is not None:
            self.image[start:end] = self.flushed[start:end] = self.base[start:end]


class Blocks:
    """All blocks that this process allocated or registered on one board."""

    def __init__(self, link: Link, tasks: Tasks) -> None:
        self._link = link
        self._tasks = tasks
        self._blocks: dict[int, Block] = {}
        self._abandoned: deque[int] = deque()
        self._buried = Buried()
        self._lock = threading.Lock()
        self.is_strict = settings.choice("HBRT_CACHE") == "strict"
        self._watch: Watch | None = None
        if self.is_strict:
            from arm_client.strict import Watch

            self._watch = Watch(link, tasks, self)

    def alloc(self, size_bytes: int, *, is_cached: bool = False) -> Block:
        """Allocate a zeroed block.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT for a size outside 1..2^32-1, HB_SYS_OUT_OF_MEMORY with what
                was free, or the status of a board that is gone.
        """
        if not 0 < size_bytes <= SIZE_LIMIT:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"A block has 1 to {SIZE_LIMIT} bytes; {size_bytes} were asked for.",
            )
        self.free_abandoned()
        phy_addr = self._link.request("alloc", size=size_bytes, cached=int(is_cached))
        block = self._adopt(phy_addr, size_bytes, is_cached=is_cached)
        if block.image is None:  # one with an image is looked at in each submission
            self._tasks.remember_block(phy_addr, size_bytes)
        return block

    @property
    def is_locked(self) -> bool:
        """Whether some thread is in the middle of a change: a finalizer that ran there would wait for itself."""
        return self._lock.locked()

    def free_later(self, phy_addr: int) -> None:
        """Free a block at the next call that asks the daemon for anything: for finalizers.

        The garbage collector may run one in the middle of a request, whose locks its own request would wait for.
        """
        self._abandoned.append(phy_addr)

    def free_abandoned(self) -> None:
        """Free what ``free_later`` left, and what tasks that nobody asked about have kept until they ended."""
        self._tasks.release_abandoned()
        while self._abandoned:
            try:
                phy_addr = self._abandoned.popleft()
            except IndexError:
                return  # another thread took the last one
            if not self._link.fault:
                with contextlib.suppress(RequestRefusedError):
                    self.free(phy_addr)

    def free_managed(self) -> None:
        """Free what the process's own objects hold, or have let go of: at an orderly end none of it is a leak."""
        self._buried.look()
        for block in list(self._blocks.values()):
            block.spill()
        try:
            for block in self.owned():
                if block.is_managed:
                    self.free(block.phy_addr)
        except RequestRefusedError:
            return  # the board is gone or does not answer: it takes all back with the lease

    def keep_views(self) -> None:
        """Before this process lets everything go: what looks at its blocks keeps their last bytes, in private pages."""
        ddr = self._link.ddr
        ranges = []
        try:
            for block in list(self._blocks.values()):
                if block.image is not None or block.viewed() is None:
                    continue
                start = ddr.offset_of(block.phy_addr)
                end = block.end_of_pages(start)
                if block.address == ddr.address + start:
                    ranges.append((start, end))
                else:
                    ddr.private.exchange(block.address, start, end, [(start, end)])
            ddr.private.keep_finally(ranges)
        except OSError as error:
            import logging

            logging.getLogger("hbrt").warning(
                "There is no memory to keep the last bytes of %d blocks that arrays look at (%s): they read as zeros "
                "from now on. Copy results before the board is closed.",
                len(ranges),
                error.strerror,
            )

    def abandon_in_child(self) -> None:
        """In a fork's child: what it writes into its parent's blocks reaches nobody."""
        self._lock = threading.Lock()
        ddr = self._link.ddr
        ddr.private.cut_off(ddr.layout.heap, ddr.layout.file_bytes)
        for block in list(self._blocks.values()):
            start = ddr.offset_of(block.phy_addr)
            if block.image is None and block.address != ddr.address + start:
                ddr.private.isolate(block.address, start, block.end_of_pages(start))

    def close(self) -> None:
        """Look at no task any more: this object and the tasks let go of one another."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def free(self, phy_addr: int) -> None:
        """Free a block that this process allocated. One that a task uses goes when that has ended.

        Raises:
            RequestRefusedError: HB_SYS_NOT_ALLOCATED when none starts there (freed before, never allocated, foreign).
        """
        self._tasks.forget_block(phy_addr)
        block = self._blocks.get(phy_addr)
        if block is not None:
            block.spill()
        using = [] if block is None else [one for one in block_users if one.is_used(phy_addr, block.size_bytes)]
        for _ in using:  # a registration keeps it, for the daemon knows nothing of the user
            self._link.request("register", phy=phy_addr, size=1)
        is_last = block is not None and not block.registrations and not using
        try:
            with self._keeping_views(block if is_last else None):
                self._link.request("free", phy=phy_addr)
        except RequestRefusedError:
            for _ in using:
                self._forgo(phy_addr, None)
            raise
        if block is not None and not block.registrations:
            with self._lock:
                self._blocks.pop(phy_addr, None)
            self._buried.add(block)
        last = None if block is None or block.registrations else block
        for one in using:
            if block is not None and not one.keep(phy_addr, block.size_bytes, lambda: self._forgo(phy_addr, last)):
                self._forgo(phy_addr, last)

    def _forgo(self, phy_addr: int, block: Block | None) -> None:
        # Of a board that has gone: so has the block.
        with contextlib.suppress(RequestRefusedError), self._keeping_views(block):
            self._link.request("unregister", phy=phy_addr)

    @contextlib.contextmanager
    def _keeping_views(self, block: Block | None) -> Iterator[None]:
        """Around the request that lets a block go: what still looks at it keeps its last bytes, in private pages.

        Raises:
            RequestRefusedError: HB_SYS_OUT_OF_MEMORY: there is no memory for them.
        """
        viewed = block.viewed() if block is not None and not self._link.fault else None
        if block is None or viewed is None or block.image is not None:  # an image is private already
            yield
            return
        ddr = self._link.ddr
        start = ddr.offset_of(block.phy_addr)
        is_mapped = block.address == ddr.address + start
        try:
            if is_mapped:
                ddr.private.keep(start, block.end_of_pages(start), viewed)
            else:  # pages of its own, which nobody shares any more
                ddr.private.exchange(block.address, start, end := block.end_of_pages(start), [(start, end)])
        except OSError as error:
            raise RequestRefusedError(
                Status.HB_SYS_OUT_OF_MEMORY,
                f"The block {block.phy_addr:#x}+{block.size_bytes:#x} cannot go while arrays look at it: there is no "
                f"memory to keep their bytes in ({error.strerror}). Let go of arrays of freed blocks first.",
            ) from None
        try:
            yield
        except RequestRefusedError:
            if is_mapped and not self._link.fault:
                ddr.private.share(start)
            raise

    def register(self, phy_addr: int, size_bytes: int) -> tuple[Block, int]:
        """Map a range that is known by its physical address; counted. Returns its block and the range's offset in it.

        Raises:
            RequestRefusedError: HB_SYS_REGISTER_MEM_FAILED when the range is not inside one live block.
        """
        if not size_bytes:
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The range at {phy_addr:#x} has no bytes; set memSize to what is to be registered.",
            )
        base = self._link.request("register", phy=phy_addr, size=size_bytes)
        entry = self._link.ddr.block_at(base)
        if entry is None:
            raise RequestRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The block at {base:#x} was freed while it was being registered.",
            )
        with self._lock:
            block = self._blocks.get(base)
        if block is None:
            block = self._adopt(base, entry.size_bytes, is_cached=True)
            block.invalidate(0, block.size_bytes)
        block.registrations += 1
        return block, phy_addr - base

    def unregister(self, phy_addr: int) -> None:
        """Undo one registration of the block that holds the address.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT when it is not registered by this process.
        """
        block = self.holding(phy_addr)
        if block is None:
            self._link.request("unregister", phy=phy_addr)
            return
        block.spill()
        is_last = block.registrations == 1 and not self._is_owned(block)
        with self._keeping_views(block if is_last else None):
            self._link.request("unregister", phy=phy_addr)
        block.registrations -= 1
        if is_last:
            with self._lock:
                self._blocks.pop(block.phy_addr, None)

    def flush(self, phy_addr: int, size_bytes: int, flag: int) -> None:
        """Clean or invalidate a range of cached memory; nothing to do for uncached memory.

        Raises:
            RequestRefusedError: HB_SYS_INVALID_ARGUMENT for an unknown flag or a range outside this process's blocks.
        """
        if flag not in {HB_SYS_MEM_CACHE_CLEAN, HB_SYS_MEM_CACHE_INVALIDATE}:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"The flush flag is {flag}; write HB_SYS_MEM_CACHE_INVALIDATE (1) or HB_SYS_MEM_CACHE_CLEAN (2).",
            )
        block = self.holding(phy_addr)
        if block is None or phy_addr + size_bytes > block.phy_addr + block.size_bytes:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT,
                f"The range {phy_addr:#x}+{size_bytes:#x} is not inside one block of this process. "
                f"{'' if block is None else f'Its block is {block.phy_addr:#x}+{block.size_bytes:#x}.'}".rstrip(),
            )
        start = phy_addr - block.phy_addr
        move = block.clean if flag == HB_SYS_MEM_CACHE_CLEAN else block.invalidate
        move(start, start + size_bytes)
        if self._watch is not None and block.image is not None:
            block.is_flushed = True
            self._watch.mark(block, start, start + size_bytes)

    def look_at_input(self, what: str, phy_addr: int, size_bytes: int) -> None:
        """Strict mode: tell the program, once a block, of bytes that it wrote and did not clean before they are read.

        Args:
            what: What is about to be read: "input block", "input tensor".
            phy_addr: Its start.
            size_bytes: Its size.
        """
        block = self.holding(phy_addr) if self.is_strict else None
        if block is None or block.image is None or block.is_told:
            return
        start = phy_addr - block.phy_addr
        count = unclean_bytes(block, start, min(start + size_bytes, block.size_bytes))
        if count:
            block.is_told = True
            tell(self._link, what, phy_addr, size_bytes, count)

    def holding(self, phy_addr: int) -> Block | None:
        """This process's block that holds an address, interior ones too."""
        block = self._blocks.get(phy_addr)
        if block is not None:
            return block
        with self._lock:
            candidates = list(self._blocks.values())
        return next((b for b in candidates if b.phy_addr <= phy_addr < b.phy_addr + b.size_bytes), None)

    def bytes_at(self, address: int, size_bytes: int) -> memoryview | None:
        """Bytes at an address of the CPU's, when they lie in the DDR's own bytes of one block of this process."""
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

    def is_mapped_at(self, address: int) -> bool:
        """Whether an address of the CPU's is one of device memory, in the DDR or in a block's image."""
        with self._lock:
            images = [block.image for block in self._blocks.values() if block.image is not None]
        return any(0 <= address - address_of(view) < len(view) for view in (self._link.ddr.bytes, *images))

    def owned(self) -> list[Block]:
        """Blocks that this process allocated and has not freed, by address."""
        self.free_abandoned()
        with self._lock:
            blocks = sorted(self._blocks.values(), key=lambda block: block.phy_addr)
        return [block for block in blocks if self._is_owned(block)]

    def _is_owned(self, block: Block) -> bool:
        entry = self._link.ddr.block_at(block.phy_addr)
        return entry is not None and entry.owner == self._link.client_id

    def _adopt(self, phy_addr: int, size_bytes: int, *, is_cached: bool) -> Block:
        offset = self._link.ddr.offset_of(phy_addr)
        pages = -(-size_bytes // PAGE_BYTES) + GUARD_PAGES
        end = min(phy_addr + pages * PAGE_BYTES, self._link.ddr.layout.phy_end)
        ddr, at = self._link.ddr.bytes_with(offset, end - phy_addr)
        whole = ddr[at : at + end - phy_addr]
        block = Block(phy_addr, size_bytes, whole, is_cached=is_cached, image=is_cached and self.is_strict)
        with self._lock:
            self._blocks[phy_addr] = block
        return block


def address_of(view: memoryview) -> int:
    """Where the first byte lies in this process."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view))
