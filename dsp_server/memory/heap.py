"""Allocator of physical addresses: best fit, page by page, arithmetic only.

The heap allocates ranges of `[base, base + size)` and knows nothing about files, processes or bytes; its caller
decides what an address means. So a test can compare the heap with a model.

- A block takes whole pages, followed by guard pages, which are address space without bytes. The guard of a block at
  the end of the heap lies past that end, so one block can take the whole heap.
- `free_ranges.py` keeps the free ranges; live blocks are in a sorted list of addresses, which also finds addresses
  inside a block.
- A freed range rests: it is reused only after more than `rest_bytes` have been freed since, or if nothing else is
  left. So a late use of a freed address does not hit another block.
- Every call costs O(log n) except `largest_free_bytes` and listing blocks; benchmarks/alloc.py shows the curve. The
  same calls give the same addresses.

Emulator: the chip's allocator is not documented. Page size, guards and best fit are the emulator's choice.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from sortedcontainers import SortedList

from dsp_server.memory.free_ranges import FreeRanges
from hbrt.ddr.layout import GUARD_PAGES, PAGE_BYTES

FREED_HISTORY = 256


class Block(NamedTuple):
    """One live allocation.

    `block_id` counts from 1 and is reused only after the block is freed; 0 means no block. It never exceeds the
    number of pages, so it can index a table. `serial` counts allocations and is never reused. `reserved_bytes` is
    `size_bytes` rounded up to whole pages.
    """

    block_id: int
    phy_addr: int
    size_bytes: int
    reserved_bytes: int
    owner: Hashable
    serial: int

    def contains(self, phy_addr: int) -> bool:
        """Whether the address is in the block's pages, including the rest of its last page."""
        return self.phy_addr <= phy_addr < self.phy_addr + self.reserved_bytes

    def __str__(self) -> str:
        return f"0x{self.phy_addr:x} ({self.size_bytes} bytes, owner {self.owner!r})"


class HeapError(Exception):
    """Base class of the allocator's refusals."""


class BadSize(HeapError, ValueError):
    """A size that blocks cannot have, or a heap that cannot be divided into pages."""


class OutOfMemory(HeapError):
    """No free range is large enough. Has `asked_bytes`, `free_bytes`, `largest_free_bytes`."""

    def __init__(self, asked_bytes: int, free_bytes: int, largest_free_bytes: int) -> None:
        self.asked_bytes, self.free_bytes = asked_bytes, free_bytes
        self.largest_free_bytes = largest_free_bytes
        super().__init__(
            f"{asked_bytes} bytes were requested, but the largest free range holds {largest_free_bytes} "
            f"({free_bytes} are free in total): free what you do not need, or start the board with more DDR."
        )


class NotFree(HeapError):
    """A range requested by address is not free."""


class NotAllocated(HeapError):
    """No live block starts at the address. Has `phy_addr`, `nearest` (live) and `freed` (was there last)."""

    def __init__(self, phy_addr: int, sentence: str, nearest: Block | None, freed: Block | None) -> None:
        self.phy_addr, self.nearest, self.freed = phy_addr, nearest, freed
        super().__init__(sentence)


class Heap:
    """Best-fit allocator over `[base, base + size_bytes)`.

    Args:
        base: First physical address, a multiple of `page_bytes`.
        size_bytes: Length, a multiple of `page_bytes`.
        page_bytes: Granularity, a power of two.
        guard_pages: Pages of address space after each block, so that no two blocks are adjacent; 0 allows them
            to be.
        rest_bytes: How much freed memory rests; 0 makes freed ranges reusable at once.

    Raises:
        BadSize: The page size is not a power of two, or base and size are not whole pages.
    """

    def __init__(
        self,
        base: int,
        size_bytes: int,
        *,
        page_bytes: int = PAGE_BYTES,
        guard_pages: int = GUARD_PAGES,
        rest_bytes: int = 0,
    ) -> None:
        if page_bytes <= 0 or page_bytes & (page_bytes - 1):
            raise BadSize(f"Page size {page_bytes} must be a power of two, such as {PAGE_BYTES}.")
        if size_bytes <= 0 or base < 0 or base % page_bytes or size_bytes % page_bytes:
            raise BadSize(
                f"A heap of {size_bytes} bytes at {base:#x} does not consist of pages of {page_bytes} bytes: make both "
                "multiples of the page size, and the heap size positive."
            )
        if guard_pages < 0:
            raise BadSize(f"Invalid number of guard pages {guard_pages}: must be 0 or more.")
        self.base, self.size_bytes = base, size_bytes
        self.page_bytes, self.guard_pages = page_bytes, guard_pages
        self._end_page = size_bytes // page_bytes + guard_pages
        self._free = FreeRanges(self._end_page)
        self._free.give(0, self._end_page)
        self._blocks: dict[int, Block] = {}
        self._live: SortedList[int] = SortedList()  # the keys of _blocks
        self._freed: deque[Block] = deque(maxlen=FREED_HISTORY)
        self._rest_bytes, self._resting_bytes = rest_bytes, 0
        self._resting: deque[Block] = deque()
        self._spare_ids: list[int] = []
        self._next_id, self._serial, self.used_bytes = 1, 0, 0

    def alloc(self, size_bytes: int, owner: Hashable, at: int | None = None) -> Block:
        """Take the smallest free range that holds `size_bytes`, the lowest of equals; or the range at an address.

        Raises:
            BadSize: `size_bytes` is 0 or negative, or `at` is not a page of the heap.
            OutOfMemory: No range is large enough; says how much was requested and what is free. Nothing has changed.
            NotFree: The range at `at` is not free. Nothing has changed except that nothing rests anymore.
        """
        if size_bytes <= 0:
            raise BadSize(f"Cannot allocate a block of {size_bytes} bytes: the minimum is 1.")
        pages = -(-size_bytes // self.page_bytes)
        start = self._take(pages, at)
        while start is None and self._resting:
            self._end_oldest_rest()
            start = self._take(pages, at)
        if start is None and at is not None:
            raise NotFree(f"{size_bytes} bytes at {at:#x} are not free in the heap: {self.explain(at)}")
        if start is None:
            raise OutOfMemory(size_bytes, self.free_bytes, self.largest_free_bytes)
        if self._spare_ids:
            block_id = heapq.heappop(self._spare_ids)
        else:
            block_id, self._next_id = self._next_id, self._next_id + 1
        self._serial += 1
        phy_addr = self.base + start * self.page_bytes
        block = Block(block_id, phy_addr, size_bytes, pages * self.page_bytes, owner, self._serial)
        self._blocks[phy_addr] = block
        self._live.add(phy_addr)
        self.used_bytes += block.reserved_bytes
        return block

    def _take(self, pages: int, at: int | None) -> int | None:
        """Take a free range of this many pages plus a guard; return its first page, or None if there is none."""
        if at is None:
            return self._free.take(pages + self.guard_pages)
        start, rest = divmod(at - self.base, self.page_bytes)
        if rest or not 0 <= at - self.base < self.size_bytes:
            raise BadSize(
                f"No block can start at {at:#x}: the heap has pages of {self.page_bytes} bytes from {self.base:#x}."
            )
        return start if self._free.take_at(start, pages + self.guard_pages) else None

    def free(self, phy_addr: int) -> Block:
        """Free the block that starts at `phy_addr` and return its record.

        Raises:
            NotAllocated: No live block starts there: already freed, inside a block, or never allocated. Says
                which.
        """
        block = self._blocks.pop(phy_addr, None)
        if block is None:
            raise self._not_allocated(phy_addr)
        self._live.remove(phy_addr)
        self._freed.append(block)
        self.used_bytes -= block.reserved_bytes
        self._resting.append(block)
        self._resting_bytes += block.reserved_bytes
        while self._resting_bytes > self._rest_bytes:
            self._end_oldest_rest()
        return block

    def _end_oldest_rest(self) -> None:
        block = self._resting.popleft()
        self._resting_bytes -= block.reserved_bytes
        heapq.heappush(self._spare_ids, block.block_id)
        start = (block.phy_addr - self.base) // self.page_bytes
        self._free.give(start, start + block.reserved_bytes // self.page_bytes + self.guard_pages)

    def find(self, phy_addr: int) -> Block | None:
        """Return the live block whose pages contain the address; None in a guard or a free range."""
        at = next(self._live.irange(None, phy_addr, reverse=True), None)
        if at is None:
            return None
        block = self._blocks[at]
        return block if block.contains(phy_addr) else None

    def nearest(self, phy_addr: int) -> Block | None:
        """Return the live block closest to the address (the lower of two), for messages."""
        below = next(self._live.irange(None, phy_addr, reverse=True), None)
        above = next(self._live.irange(phy_addr), None)
        if below is None or above is None:
            only = above if below is None else below
            return None if only is None else self._blocks[only]
        lower, upper = self._blocks[below], self._blocks[above]
        gap_bytes = phy_addr - (lower.phy_addr + lower.reserved_bytes - 1)
        return lower if gap_bytes <= upper.phy_addr - phy_addr else upper

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Yield ranges that belong to no live block or its guard: address and size in bytes, in address order."""
        start, end = self.base, self.base + self.size_bytes
        for block in self:
            if start < block.phy_addr:
                yield start, block.phy_addr - start
            start = block.phy_addr + block.reserved_bytes + self.guard_pages * self.page_bytes
        if start < end:
            yield start, end - start

    def __iter__(self) -> Iterator[Block]:
        """Iterate over live blocks in address order. The heap must not change meanwhile."""
        return (self._blocks[at] for at in self._live)

    def __len__(self) -> int:
        """Number of live blocks."""
        return len(self._blocks)

    @property
    def free_bytes(self) -> int:
        """Bytes of the heap that belong to no block or guard; may be fragmented, see `largest_free_bytes`."""
        if not self._live:
            return self.size_bytes
        guard_bytes, last = self.guard_pages * self.page_bytes, self._blocks[self._live[-1]]
        past_the_end = last.phy_addr + last.reserved_bytes + guard_bytes - self.base - self.size_bytes
        return self.size_bytes - self.used_bytes - guard_bytes * len(self) + max(0, past_the_end)

    @property
    def largest_free_bytes(self) -> int:
        """The largest size that `alloc` would grant now; 0 if none."""
        guard_bytes, end = self.guard_pages * self.page_bytes, self.base + self.size_bytes
        # The guard of a block that ends where the heap ends needs no space in it.
        return max((0, *(size - guard_bytes * (start + size < end) for start, size in self.gaps())))

    def explain(self, phy_addr: int) -> str:
        """Say what is at an address where no block starts, or that a live block is there; for messages."""
        inside, nearest, freed = self.find(phy_addr), self.nearest(phy_addr), self._freed_at(phy_addr)
        near = "no block is allocated" if nearest is None else f"the nearest block is {nearest}"
        if inside is not None:
            if inside.phy_addr == phy_addr:
                return f"The block at {inside} starts there."
            return (
                f"0x{phy_addr:x} lies {phy_addr - inside.phy_addr} bytes inside the block at {inside}: "
                "pass the address that the allocation returned."
            )
        if not self.base <= phy_addr < self.base + self.size_bytes:
            return (
                f"0x{phy_addr:x} is outside DDR (0x{self.base:x} to 0x{self.base + self.size_bytes:x}): "
                "pass a physical address that the allocation returned, not a virtual one."
            )
        if freed is None:
            return f"0x{phy_addr:x} was never allocated, or was freed long ago; {near}."
        if freed.phy_addr == phy_addr:
            return f"0x{phy_addr:x} was already freed (free it only once): it was the block at {freed}; {near}."
        return f"0x{phy_addr:x} lies in freed memory, the block that was at {freed}; {near}."

    def _freed_at(self, phy_addr: int) -> Block | None:
        return next((block for block in reversed(self._freed) if block.contains(phy_addr)), None)

    def _not_allocated(self, phy_addr: int) -> NotAllocated:
        return NotAllocated(phy_addr, self.explain(phy_addr), self.nearest(phy_addr), self._freed_at(phy_addr))
