"""The allocator's invariants, checked from outside."""

from __future__ import annotations

from collections.abc import Iterator

from dsp_server.memory.free_ranges import FreeRanges
from dsp_server.memory.heap import Block, Heap


def check(heap: Heap) -> None:
    """Fail with the invariants that do not hold, and where; O(n log n)."""
    faults = [*_faults_of_free(heap._free), *_faults_of_layout(heap), *_faults_of_records(heap)]
    assert not faults, "; ".join(faults)


def _faults_of_free(free: FreeRanges) -> Iterator[str]:
    """The three views of the free ranges agree."""
    if free.pages != sum(end - start for start, end in free):
        yield "the count of free pages is wrong"
    if {end: start for start, end in free} != free._start_of:
        yield "free ranges by their end differ from free ranges by their start"
    if sorted((end - start) << free._shift | start for start, end in free) != list(free._keys):
        yield "free ranges by length differ from free ranges by their start"


def _faults_of_layout(heap: Heap) -> Iterator[str]:
    """Blocks and free ranges cover the heap without gaps or overlaps, and no two free ranges touch."""

    def span(block: Block) -> tuple[int, int, bool]:
        start = (block.phy_addr - heap.base) // heap.page_bytes
        return start, start + block.reserved_bytes // heap.page_bytes + heap.guard_pages, False

    spans = [span(block) for block in (*heap, *heap._resting)] + [(*free, True) for free in heap._free]
    edge, edge_is_free = 0, False
    for start, end, is_free in sorted(spans):
        if start != edge or end <= start:
            yield f"pages {start} to {end} do not follow the previous range, which ends at {edge}"
        if is_free and edge_is_free:
            yield f"the free ranges that meet at page {start} are not merged"
        edge, edge_is_free = end, is_free
    if edge != heap._end_page:
        yield f"the ranges end at page {edge}, not at {heap._end_page}"


def _faults_of_records(heap: Heap) -> Iterator[str]:
    blocks = list(heap)
    if {block.phy_addr: block for block in blocks} != heap._blocks:
        yield "the sorted addresses differ from the blocks"
    if any(not 0 <= block.reserved_bytes - block.size_bytes < heap.page_bytes for block in blocks):
        yield "a block has more or fewer pages than its size needs"
    if sum(block.reserved_bytes for block in blocks) != heap.used_bytes:
        yield "the count of used bytes is wrong"
    if heap._resting_bytes != sum(block.reserved_bytes for block in heap._resting):
        yield "the count of resting bytes is wrong"
    known = [block.block_id for block in (*blocks, *heap._resting)] + heap._spare_ids
    if sorted(known) != list(range(1, heap._next_id)):
        yield "a block id is lost or used twice"
