"""The dirty bytes of a task's memory, for the core that runs it, which sees whether the op uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arm_client.strict.rules import MAX_MARKS, reach
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.mailbox.dirty_ranges import KEY, LINE_BYTES, DirtyRanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arm_client.memory.block import Block
    from arm_client.strict.rules import TaskFootprint

NEAR_BYTES = PAGE_BYTES


def key_of(client: int, footprint: TaskFootprint) -> bytes:
    """Return the bytes that identify a task's request."""
    into, out = footprint.input, footprint.output
    return KEY.pack(client, into.start, into.end - into.start, out.start, out.end - out.start)


def dirty_ranges_of(footprint: TaskFootprint, block_of: Callable[[int], Block | None]) -> list[DirtyRanges]:
    """Return the dirty bytes of memory that a task may use.

    Args:
        footprint: The task.
        block_of: Returns this process's block that contains an address, or None.
    """
    found = []
    for what, start, end, is_whole in _parts(footprint, block_of):
        block = block_of(start)
        if block is None or not (ranges := _changed(block, start - block.phy_addr, end - block.phy_addr)):
            continue
        writes = block.writes
        by_writer: dict[str, list[tuple[int, int]]] = {}
        for at, size in ranges:
            by_writer.setdefault(writes.site_of(at) if writes else "", []).append((block.phy_addr + at, size))
        of_block = (what, block.phy_addr, block.size_bytes, block.flushed_at)
        found += [DirtyRanges(*of_block, site, start, is_whole, tuple(runs)) for site, runs in by_writer.items()]
    return found


def reach_of(block: Block, start: int) -> tuple[int, int]:
    """Return how far an op may go from an offset in a block: the certain end and the last possible one, as offsets.

    If the program flushes parts of the block, it may be working on another part; then only bytes near the offset are
    certain.
    """
    end = reach(start, block.size_bytes, block.marks)
    return (min(end, start + NEAR_BYTES) if block.is_flushed else end), end


def _parts(footprint: TaskFootprint, block_of: Callable[[int], Block | None]) -> Iterator[tuple[str, int, int, bool]]:
    into, out = footprint.input, footprint.output
    if into.start:
        yield "its input block", into.start, into.end, True
    if out.start and not footprint.targets:
        yield "its output block", out.start, out.end, True
    for at, address in footprint.beside:
        block = block_of(address)
        if block is None or len(block.marks) > MAX_MARKS:
            continue
        near, end = (block.phy_addr + offset for offset in reach_of(block, address - block.phy_addr))
        what = f"the memory whose address is at offset {at} of its input block"
        yield what, address, near, True
        yield what, near, end, False


def _changed(block: Block, start: int, end: int) -> list[tuple[int, int]]:
    """Return offset and size of each run of bytes that the CPU has changed since they were last flushed."""
    if block.image is None or block.flushed is None or start >= end:
        return []
    import numpy as np  # only strict mode needs it

    now, before = (np.frombuffer(view[start:end], np.uint8) for view in (block.image, block.flushed))
    changed = np.flatnonzero(now != before)
    if not len(changed):
        return []
    cuts = np.flatnonzero(np.diff(changed) >= LINE_BYTES)
    firsts, lasts = changed[np.r_[0, cuts + 1]], changed[np.r_[cuts, len(changed) - 1]]
    return [(start + int(first), int(last - first) + 1) for first, last in zip(firsts, lasts, strict=True)]
