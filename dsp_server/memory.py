"""Who owns which bytes of the DDR: allocation, registration, release, and what a free block gives away.

The heap decides addresses; the tables publish them; this module adds lives: a block goes when its owner and all that
registered it have let go, and its pages go back to the host. Two mistakes that a board hides are found here: bytes
written past a block's end (found at free), and bytes written into memory that was free (found at the next allocation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dsp_server.heap import BadSize, Block, Heap, NotAllocated, OutOfMemory
from hbrt.ddr import Ddr, DdrTables
from hbrt.layout import BLOCK_MAX_SHARERS, PAGE_BYTES
from hbrt.status import Status

NOBODY = 0


class MemoryRefusedError(Exception):
    """A request that cannot be granted: its status, and the sentence."""

    def __init__(self, status: Status, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(slots=True)
class _Life:
    """What the heap's record does not say: who holds the block now."""

    block: Block
    owner: int
    is_cached: bool
    sharers: list[int] = field(default_factory=list)


class Memory:
    """The DDR of a board."""

    def __init__(self, ddr: Ddr, say: Callable[[str, str], None]) -> None:
        """``say(kind, sentence)`` gets each finding: an overrun, a write after free."""
        self._heap = Heap(ddr.layout.phy_base, ddr.layout.heap_bytes)
        self._tables = DdrTables(ddr)
        self._say = say
        self._lives: dict[int, _Life] = {}
        self._held: dict[int, set[int]] = {}  # client -> blocks that it owns or registered

    def alloc(self, size_bytes: int, client: int, *, is_cached: bool) -> int:
        """Allocate a zeroed block for a client; returns its physical address.

        Raises:
            MemoryRefusedError: no free range of that size; says asked, free, largest.
        """
        try:
            block = self._heap.alloc(size_bytes, client)
        except (OutOfMemory, BadSize) as error:
            status = Status.HB_SYS_OUT_OF_MEMORY if isinstance(error, OutOfMemory) else Status.HB_SYS_INVALID_ARGUMENT
            raise MemoryRefusedError(status, str(error)) from None
        touched = self._tables.first_nonzero(block.phy_addr, block.reserved_bytes)
        if touched is not None:
            self._say("write-after-free", f"A byte at {touched:#x} was written while that memory was free.")
        self._tables.drop_pages(block.phy_addr, block.reserved_bytes)
        self._tables.add(block.block_id, block.phy_addr, size_bytes, block.reserved_bytes, client)
        self._lives[block.phy_addr] = _Life(block, client, is_cached)
        self._held.setdefault(client, set()).add(block.phy_addr)
        return block.phy_addr

    def free(self, phy_addr: int, client: int) -> None:
        """Give up a client's block; it lives on while others have it registered.

        Raises:
            MemoryRefusedError: no block of this client starts there.
        """
        life = self._owned_life(phy_addr, client)
        life.owner = NOBODY
        self._let_go(life, client)
        self._settle(life)

    def check_owner(self, phy_addr: int, client: int) -> None:
        """Raise what ``free`` would raise, and change nothing."""
        self._owned_life(phy_addr, client)

    def _owned_life(self, phy_addr: int, client: int) -> _Life:
        life = self._lives.get(phy_addr)
        if life is None or life.owner == NOBODY:
            raise MemoryRefusedError(Status.HB_SYS_NOT_ALLOCATED, self._why_not(phy_addr))
        if life.owner != client:
            raise MemoryRefusedError(
                Status.HB_SYS_NOT_ALLOCATED,
                f"The block at {phy_addr:#x} belongs to client {life.owner}, not to client {client}; its owner frees it.",
            )
        return life

    def register(self, phy_addr: int, size_bytes: int, client: int) -> int:
        """Let a client use a range of a live block, its own or another's; counted. Returns the block's address.

        Raises:
            MemoryRefusedError: the range is not inside one live block, or too many clients registered it.
        """
        block = self._heap.find(phy_addr)
        life = self._lives.get(block.phy_addr) if block else None
        if life is None or phy_addr + size_bytes > life.block.phy_addr + life.block.size_bytes:
            raise MemoryRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The range {phy_addr:#x}+{size_bytes:#x} is not inside one live block. {self._why_not(phy_addr)}",
            )
        if client not in life.sharers and len(set(life.sharers)) >= BLOCK_MAX_SHARERS:
            raise MemoryRefusedError(
                Status.HB_SYS_REGISTER_MEM_FAILED,
                f"The block at {life.block.phy_addr:#x} is registered by {BLOCK_MAX_SHARERS} clients, which is the most.",
            )
        life.sharers.append(client)
        self._held.setdefault(client, set()).add(life.block.phy_addr)
        self._publish(life)
        return life.block.phy_addr

    def unregister(self, phy_addr: int, client: int) -> None:
        """Undo one registration of a client.

        Raises:
            MemoryRefusedError: the client has not registered a block there.
        """
        block = self._heap.find(phy_addr)
        life = self._lives.get(block.phy_addr) if block else None
        if life is None or client not in life.sharers:
            raise MemoryRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT, f"Client {client} has registered no block at {phy_addr:#x}."
            )
        life.sharers.remove(client)
        self._let_go(life, client)
        self._settle(life)

    def release_client(self, client: int) -> tuple[int, int]:
        """Free all that a client owned and registered; returns how many blocks and bytes it still owned."""
        count = size_bytes = 0
        for phy_addr in sorted(self._held.pop(client, ())):
            life = self._lives.get(phy_addr)
            if life is None:
                continue  # let go before
            if life.owner == client:
                count += 1
                size_bytes += life.block.size_bytes
                life.owner = NOBODY
            elif client not in life.sharers:
                continue
            life.sharers = [sharer for sharer in life.sharers if sharer != client]
            self._settle(life)
        return count, size_bytes

    def owned(self, client: int) -> tuple[int, int]:
        """How many blocks and bytes a client owns."""
        held = (self._lives.get(phy_addr) for phy_addr in self._held.get(client, ()))
        sizes = [life.block.size_bytes for life in held if life is not None and life.owner == client]
        return len(sizes), sum(sizes)

    def summary(self) -> dict[str, int]:
        """Sizes in bytes, and the number of live blocks."""
        heap = self._heap
        return {
            "base": heap.base,
            "size_bytes": heap.size_bytes,
            "used_bytes": heap.used_bytes,
            "free_bytes": heap.free_bytes,
            "largest_free_bytes": heap.largest_free_bytes,
            "blocks": len(heap),
        }

    def listing(self, most: int) -> list[dict[str, Any]]:
        """The first ``most`` live blocks by address."""
        lives = [self._lives[at] for at in sorted(self._lives)[:most]]
        return [
            {
                "phy_addr": life.block.phy_addr,
                "size_bytes": life.block.size_bytes,
                "client": life.owner,
                "cached": life.is_cached,
                "registered_by": sorted(set(life.sharers)),
            }
            for life in lives
        ]

    def _let_go(self, life: _Life, client: int) -> None:
        if life.owner != client and client not in life.sharers:
            self._held[client].discard(life.block.phy_addr)

    def _settle(self, life: _Life) -> None:
        if life.owner != NOBODY or life.sharers:
            self._publish(life)
            return
        block = life.block
        tail = block.phy_addr + block.size_bytes
        over = self._tables.first_nonzero(tail, block.reserved_bytes - block.size_bytes + self._guard(block))
        if over is not None:
            self._say(
                "overrun",
                f"Client {block.owner} wrote past the end of its block {block.phy_addr:#x}+{block.size_bytes:#x}: the "
                f"first byte found is {over:#x}, {over - tail} bytes behind the end.",
            )
        self._tables.remove(block.phy_addr, block.reserved_bytes)
        self._tables.drop_pages(block.phy_addr, block.reserved_bytes + self._guard(block))
        del self._lives[block.phy_addr]
        self._heap.free(block.phy_addr)

    def _guard(self, block: Block) -> int:
        """Bytes of the guard page behind a block that lie inside the file."""
        end = self._heap.base + self._heap.size_bytes
        return min(self._heap.guard_pages * PAGE_BYTES, end - block.phy_addr - block.reserved_bytes)

    def _publish(self, life: _Life) -> None:
        self._tables.set_owner(life.block.block_id, life.owner, tuple(sorted(set(life.sharers))))

    def _why_not(self, phy_addr: int) -> str:
        """The heap's sentence on an address at which no block starts."""
        life = self._lives.get(phy_addr)
        if life is not None:
            return f"The block at {phy_addr:#x} was freed by its owner and lives on only for those that registered it."
        block = self._heap.find(phy_addr)
        if block is not None:
            return f"The address {phy_addr:#x} is inside the block at {block.phy_addr:#x}, not its start."
        try:
            self._heap.free(phy_addr)
        except NotAllocated as error:
            return str(error)
        raise AssertionError(f"a block at {phy_addr:#x} was freed that this module did not know")
