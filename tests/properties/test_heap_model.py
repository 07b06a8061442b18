"""The allocator against a model: a list of pages, searched from end to end, with a pattern in every block."""

from dataclasses import dataclass

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dsp_server.memory.heap import Block, Heap, NotAllocated, OutOfMemory
from tests.dsp_server.memory.heap_rules import check

BASE = 0x8_0000_0000
PAGE = 64  # small, so that the model can keep the bytes themselves
PAGES = 48


@dataclass
class Page:
    serial: int = 0  # of the block that has the page or whose guard it is; 0 is free


class HeapAgainstModel(RuleBasedStateMachine):
    """Same calls to the heap and to the model; after each, both have to agree."""

    @initialize(guard_pages=st.integers(0, 2))
    def start(self, guard_pages: int) -> None:
        self.guard_pages = guard_pages
        self.heap = Heap(BASE, PAGES * PAGE, page_bytes=PAGE, guard_pages=guard_pages)
        self.pages = [Page() for _ in range(PAGES + guard_pages)]  # the last guard lies past the end
        self.ddr = bytearray(PAGES * PAGE)
        self.blocks: dict[int, Block] = {}
        self.freed: list[Block] = []

    def runs(self) -> list[tuple[int, int]]:
        """The model's free ranges as (pages, first page)."""
        found, start = [], None
        for index, page in enumerate([*self.pages, Page(serial=-1)]):
            if page.serial == 0 and start is None:
                start = index
            elif page.serial != 0 and start is not None:
                found.append((index - start, start))
                start = None
        return found

    @rule(size_bytes=st.integers(1, 12 * PAGE), owner=st.integers(0, 2))
    def alloc(self, size_bytes: int, owner: int) -> None:
        needed = -(-size_bytes // PAGE) + self.guard_pages
        fitting = sorted(run for run in self.runs() if run[0] >= needed)
        if not fitting:
            with pytest.raises(OutOfMemory) as info:
                self.heap.alloc(size_bytes, owner)
            assert info.value.largest_free_bytes < size_bytes
            return
        block = self.heap.alloc(size_bytes, owner)
        first = fitting[0][1]
        assert block.phy_addr == BASE + first * PAGE
        assert (block.size_bytes, block.owner) == (size_bytes, owner)
        assert block.serial == max([0, *(old.serial for old in [*self.blocks.values(), *self.freed])]) + 1
        assert block.block_id not in {other.block_id for other in self.blocks.values()}
        assert 1 <= block.block_id <= PAGES
        for page in self.pages[first : first + needed]:
            assert page.serial == 0
            page.serial = block.serial
        self.blocks[block.phy_addr] = block
        self.ddr[self.bytes_of(block)] = self.pattern(block)

    def bytes_of(self, block: Block) -> slice:
        return slice(block.phy_addr - BASE, block.phy_addr - BASE + block.size_bytes)

    @staticmethod
    def pattern(block: Block) -> bytes:
        return bytes([block.serial % 251 + 1]) * block.size_bytes

    def forget(self, block: Block) -> None:
        assert self.ddr[self.bytes_of(block)] == self.pattern(block)
        del self.blocks[block.phy_addr]
        self.freed.append(block)
        for page in self.pages:
            if page.serial == block.serial:
                page.serial = 0

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(list(self.blocks.values())))
        assert self.heap.free(block.phy_addr) == block
        self.forget(block)

    @rule(owner=st.integers(0, 2))
    def free_owner(self, owner: int) -> None:
        theirs = sorted(
            (block for block in self.blocks.values() if block.owner == owner),
            key=lambda block: block.phy_addr,
        )
        assert [block for block in self.heap if block.owner == owner] == theirs
        for block in theirs:
            assert self.heap.free(block.phy_addr) == block
            self.forget(block)

    @rule(phy_addr=st.integers(BASE - 2 * PAGE, BASE + (PAGES + 2) * PAGE))
    def free_anywhere_else(self, phy_addr: int) -> None:
        if phy_addr in self.blocks:
            return
        with pytest.raises(NotAllocated) as info:
            self.heap.free(phy_addr)
        assert f"0x{phy_addr:x} " in str(info.value)
        if info.value.freed is not None:
            last = [block for block in self.freed if block.contains(phy_addr)][-1]
            assert info.value.freed == last

    @rule(phy_addr=st.integers(BASE - PAGE, BASE + PAGES * PAGE))
    def look_up(self, phy_addr: int) -> None:
        def distance(block: Block) -> int:
            end = block.phy_addr + block.reserved_bytes - 1
            return max(block.phy_addr - phy_addr, phy_addr - end, 0)

        holding = [block for block in self.blocks.values() if block.contains(phy_addr)]
        assert self.heap.find(phy_addr) == (holding[0] if holding else None)
        nearest = self.heap.nearest(phy_addr)
        if nearest is None:
            assert not self.blocks
        else:
            assert distance(nearest) == min(map(distance, self.blocks.values()))

    @invariant()
    def both_agree(self) -> None:
        check(self.heap)
        assert list(self.heap) == [self.blocks[at] for at in sorted(self.blocks)]
        assert self.heap.used_bytes == sum(block.reserved_bytes for block in self.blocks.values())
        assert self.heap.free_bytes == sum(page.serial == 0 for page in self.pages[:PAGES]) * PAGE
        longest = max((pages for pages, _ in self.runs()), default=0)
        assert self.heap.largest_free_bytes == max(0, longest - self.guard_pages) * PAGE

    def teardown(self) -> None:
        if not hasattr(self, "heap"):
            return
        for block in list(self.heap):
            self.heap.free(block.phy_addr)
        assert self.heap.largest_free_bytes == self.heap.free_bytes == PAGES * PAGE
        check(self.heap)


HeapAgainstModel.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=40)
TestHeapAgainstModel = HeapAgainstModel.TestCase
