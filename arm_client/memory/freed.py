"""Blocks that this process freed: their addresses fault, and a message explains a late use before the process dies.

A freed block's range is inaccessible until its address is reused, which is as late as possible. So a stale pointer
faults, as it might on a board, and never reaches the bytes of another block.
"""

from __future__ import annotations

import mmap
import weakref
from typing import TYPE_CHECKING, NamedTuple

from arm_client.cabi.call_site import call_site
from arm_client.memory import fault_sentence
from arm_client.memory.block import MARGIN_BYTES
from hbrt.findings.record import Place

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from hbrt.attach.link import Link

MAX_BLOCKS = 1024  # each is a mapping of its own in the kernel, which allows 65 530 of them


class FreedBlock(NamedTuple):
    """What is known about a freed block. ``image``: its CPU image in strict mode, kept to reserve its address."""

    image: mmap.mmap | None
    address: int
    phy_addr: int
    size_bytes: int
    allocated_at: str
    freed_at: str

    @classmethod
    def of(cls, block: Block, freed_at: str) -> FreedBlock:
        """Record a block that is being freed."""
        return cls(block.image_map, block.address, block.phy_addr, block.size_bytes, block.allocated_at, freed_at)

    def __str__(self) -> str:
        return (
            f"the block {self.phy_addr:#x}+{self.size_bytes:#x}, allocated at {self.allocated_at}, was freed at "
            f"{self.freed_at}"
        )


class Freed:
    """Blocks that this process recently freed or unregistered on one board."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._ddr = link.ddr
        self._blocks: dict[int, FreedBlock] = {}  # by start in the file
        _all.add(self)

    def add(self, block: Block, freed_at: str) -> None:
        """Make a block's address inaccessible, once nothing known in this process refers to it."""
        fault_sentence.install(_late_use)
        start = self._ddr.offset_of(block.phy_addr)
        self._blocks[start] = FreedBlock.of(block, freed_at)
        if block.image_map is None:
            self._ddr.private.forbid(start, start + len(block.base) + len(block.behind))
        else:
            self._ddr.private.empty(block.image_map, block.address - MARGIN_BYTES)
        while len(self._blocks) > MAX_BLOCKS:
            oldest = next(iter(self._blocks))
            self._discard(oldest)

    def reuse(self, start: int, end: int) -> None:
        """Record that this range of the file now belongs to a block of this process."""
        for known in self._ddr.private.forbidden(start, end):
            self._discard(known)
        self._blocks.pop(start, None)

    def find(self, address: int) -> FreedBlock | None:
        """Return the freed block that contains a CPU address."""
        blocks = list(self._blocks.values())
        return next((one for one in blocks if 0 <= address - one.address < one.size_bytes), None)

    def find_physical(self, phy_addr: int) -> FreedBlock | None:
        """Return the freed block that contains a physical address."""
        if (start := self._blocks.get(self._ddr.offset_of(phy_addr))) is not None:
            return start
        return next((one for one in list(self._blocks.values()) if 0 <= phy_addr - one.phy_addr < one.size_bytes), None)

    def _discard(self, start: int) -> None:
        self._ddr.private.permit(start)
        self._blocks.pop(start, None)


_all: weakref.WeakSet[Freed] = weakref.WeakSet()


def freed_block_at(address: int) -> FreedBlock | None:
    """Return this process's freed block, on any board, that contains a CPU address."""
    return next((found for one in list(_all) if (found := one.find(address)) is not None), None)


def _late_use(address: int) -> str:
    """Return the message for a fault at an address; empty if no freed block was there."""
    for one in list(_all):
        block = one.find(address)
        if block is None:
            continue
        site = call_site()
        text = f"{site}: byte {address - block.address} of {block}. Free a block after its last use."
        places = (
            Place(what, where or None, phy_addr=block.phy_addr, size_bytes=block.size_bytes)
            for what, where in (("used", site), ("freed", block.freed_at), ("allocated", block.allocated_at))
        )
        return fault_sentence.note(one.link, "use-after-free", text, *places)
    return ""
