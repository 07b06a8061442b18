"""Who owns which bytes of the DDR: allocation, registration, release, and what a free block gives away.

The heap decides addresses; the tables publish them; this module adds lives: a block goes when its owner and all that
registered it have let go and no op that runs for one of them may have it mapped; then its pages go back to the host.
So an op never loses memory under its hands. While somebody keeps the claim lock, what was let go waits for it.

Two mistakes that a board hides are found here: bytes written past the end of a block (found when it goes), and bytes
written into memory that was free (found at the next allocation).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from dsp_server.clients import Clients, TaskKey
from dsp_server.memory.heap import BadSize, Block, Heap, OutOfMemory
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import BLOCK_MAX_SHARERS, PAGE_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.findings.record import Place
from hbrt.mailbox.table import Mailbox
from hbrt.status import Status

NOBODY = 0


class _Life:
    """What the heap's record does not say: who holds the block now."""

    __slots__ = ("block", "freed_at", "is_cached", "last_owner", "leavers", "leaving", "owner", "sharers", "site")

    def __init__(self, block: Block, owner: int, site: str, *, is_cached: bool) -> None:
        self.block = block
        self.owner = owner
        self.site = site  # file:line of the allocation, as the program says; may be empty
        self.is_cached = is_cached
        self.sharers: list[int] = []  # a client as often as it registered the block
        self.last_owner = NOBODY  # of a block that was freed
        self.freed_at = ""  # file and line of its program
        self.leaving: dict[int, frozenset[TaskKey]] = {}  # clients that let go: what still runs for them
        self.leavers: set[int] = set()  # those of them that let go since it was last looked what runs

    def is_held_by(self, client: int) -> bool:
        return client == self.owner or client in self.sharers

    def users(self) -> set[int]:
        """Clients whose tasks may use the block because they registered it."""
        return set(self.sharers) | set(self.leaving) - {self.last_owner}

    def place(self) -> Place:
        """The block, and where it was allocated."""
        block = self.block
        return Place(
            "allocated",
            self.site or None,
            client=self.owner or self.last_owner,
            phy_addr=block.phy_addr,
            size_bytes=block.size_bytes,
            block=block.phy_addr,
            block_bytes=block.size_bytes,
        )

    def visible_owner(self) -> int:
        """Whom the tables name: one who freed it too, as long as a task of that client runs."""
        return self.last_owner if self.last_owner in self.leaving else self.owner


class Memory:
    """The DDR of a board."""

    def __init__(
        self, ddr: Ddr, mailbox: Mailbox, clients: Clients, find: Callable[..., None], rest_bytes: int = 0
    ) -> None:
        """``find`` gets each finding, as of ``Journal.find``: an overrun, a write after free. ``rest_bytes`` rest."""
        self._heap = Heap(ddr.layout.phy_base, ddr.layout.heap_bytes, rest_bytes=rest_bytes)
        self._ddr = ddr
        self._tables = DdrTables(ddr)
        self._mailbox = mailbox
        self._clients = clients
        self._find = find
        self._lives: dict[int, _Life] = {}
        self._held: dict[int, set[int]] = {}  # client -> blocks that it owns or registered
        self._in_use: dict[int, _Life] = {}  # let go by a holder whose task may have it mapped

    def alloc(self, size_bytes: int, client: int, *, is_cached: bool, site: str = "") -> int:
        """Allocate a zeroed block for a client; returns its physical address.

        Args:
            size_bytes: How many bytes.
            client: Whose it is.
            is_cached: Whether the program asked for cached memory.
            site: ``file:line`` of the program that asks, for findings.

        Raises:
            RequestRefusedError: no free range of that size; says asked, free, largest.
        """
        try:
            block = self._heap.alloc(size_bytes, client)
        except OutOfMemory as error:
            raise RequestRefusedError(Status.HB_SYS_OUT_OF_MEMORY, str(error)) from None
        except BadSize as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        touched = self._tables.first_nonzero(block.phy_addr, block.reserved_bytes)
        if touched is not None:
            freed = self._ddr.freed_block(touched)
            self._find(
                "write-after-free",
                f"A byte at {touched:#x} was written while that memory was free."
                f"{'' if freed is None else f' It was in {freed}.'}",
                Place("written", phy_addr=touched, size_bytes=1),
            )
            self._tables.drop_pages(block.phy_addr, block.reserved_bytes)
        self._tables.add(block.block_id, block.phy_addr, size_bytes, block.reserved_bytes, client)
        self._lives[block.phy_addr] = _Life(block, client, site, is_cached=is_cached)
        self._held.setdefault(client, set()).add(block.phy_addr)
        return block.phy_addr

    def free(self, phy_addr: int, client: int, freed_at: str = "") -> None:
        """Give up a client's block; it lives on while others have it registered, or a running task may use it.

        Raises:
            RequestRefusedError: no block of this client starts there.
        """
        life = self._lives.get(phy_addr)
        if life is None or life.owner == NOBODY:
            raise RequestRefusedError(Status.HB_SYS_NOT_ALLOCATED, self._why_not(phy_addr))
        if life.owner != client:
            raise RequestRefusedError(
                Status.HB_SYS_NOT_ALLOCATED,
                f"The block at {phy_addr:#x} belongs to client {life.owner}, not to client {client}; it frees its own.",
            )
        life.owner, life.last_owner, life.freed_at = NOBODY, client, freed_at
        self._let_go(life, client)

    def register(self, phy_addr: int, size_bytes: int, client: int) -> int:
        """Let a client use a range of a live block, its own or another's; counted. Returns the block's address.

        Raises:
            RequestRefusedError: the range is not inside one live block, or too many clients registered it.
        """
        life = self._life_holding(phy_addr)
        if life is None:
            why = self._why_not(phy_addr)
        elif (over := phy_addr + size_bytes - life.block.phy_addr - life.block.size_bytes) > 0:
            why = f"It runs {over} bytes past the end of the block at {life.block}."
        elif life.owner == NOBODY and not life.sharers:
            why = "The block was freed, and goes when the task that uses it ends."
        elif client not in life.users() and len(life.users()) >= BLOCK_MAX_SHARERS:
            why = f"The block is registered by {BLOCK_MAX_SHARERS} clients, which is the most."
        else:
            life.sharers.append(client)
            self._held.setdefault(client, set()).add(life.block.phy_addr)
            self._publish(life)
            return life.block.phy_addr
        raise RequestRefusedError(
            Status.HB_SYS_REGISTER_MEM_FAILED, f"The range {phy_addr:#x}+{size_bytes:#x} cannot be registered. {why}"
        )

    def unregister(self, phy_addr: int, client: int) -> None:
        """Undo one registration of a client.

        Raises:
            RequestRefusedError: the client has not registered a block there.
        """
        life = self._life_holding(phy_addr)
        if life is None or client not in life.sharers:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT, f"Client {client} has registered no block at {phy_addr:#x}."
            )
        life.sharers.remove(client)
        self._let_go(life, client)

    def release_client(self, client: int) -> tuple[int, int]:
        """Free all that a client owned and registered; returns how many blocks and bytes it still owned."""
        count = size_bytes = 0
        for phy_addr in sorted(self._held.pop(client, ())):
            life = self._lives[phy_addr]
            if life.owner == client:
                count += 1
                size_bytes += life.block.size_bytes
                life.owner, life.last_owner, life.freed_at = NOBODY, client, "its program's end"
            life.sharers = [sharer for sharer in life.sharers if sharer != client]
            self._let_go(life, client)
        return count, size_bytes

    def settle(self) -> None:
        """Let blocks go whose last user has ended."""
        for life in list(self._in_use.values()):
            if not self._settle(life):
                return

    @property
    def is_waiting(self) -> bool:
        """Whether blocks that were let go wait for a running task to end, or for the claim lock."""
        return bool(self._in_use)

    def owned(self, client: int) -> tuple[int, int]:
        """How many blocks and bytes a client owns."""
        held = (self._lives[phy_addr] for phy_addr in self._held.get(client, ()))
        sizes = [life.block.size_bytes for life in held if life.owner == client]
        return len(sizes), sum(sizes)

    def owned_places(self, client: int) -> tuple[Place, ...]:
        """The blocks that a client owns, by address, each with the line that allocated it."""
        held = (self._lives[phy_addr] for phy_addr in sorted(self._held.get(client, ())))
        return tuple(life.place() for life in held if life.owner == client)

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
        lives = (self._lives[block.phy_addr] for block in itertools.islice(self._heap, most))
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
        if life.is_held_by(client):
            self._publish(life)
            return
        self._held.get(client, set()).discard(life.block.phy_addr)
        life.leavers.add(client)
        life.leaving.setdefault(client, frozenset())
        self._in_use[life.block.phy_addr] = life
        self._settle(life)

    def _settle(self, life: _Life) -> bool:
        """Take a block away when nobody holds it and no task that runs for one who left may have it mapped.

        Returns:
            False when the claim lock cannot be had; nothing was changed then.
        """
        block = life.block
        # The claim lock orders this with the cores: a task that was claimed before is seen running here, and one that
        # is claimed after does not find the block any more.
        try:
            with self._mailbox.claim_lock:
                for leaver in life.leavers:
                    life.leaving[leaver] |= self._clients.running_tasks(leaver)
                life.leavers.clear()
                still = {client: frozenset(filter(self._clients.is_running, of)) for client, of in life.leaving.items()}
                life.leaving = {client: tasks for client, tasks in still.items() if tasks}
                if not life.leaving:
                    self._in_use.pop(block.phy_addr, None)
                if life.leaving or life.owner != NOBODY or life.sharers:
                    self._publish(life)
                    return True
                self._tables.remove(block.block_id, block.reserved_bytes, life.last_owner, life.freed_at)
        except ClaimLockError:
            return False
        self._look_behind(life)
        self._tables.drop_pages(block.phy_addr, block.reserved_bytes + self._guard_bytes(block))
        del self._lives[block.phy_addr]
        self._heap.free(block.phy_addr)
        return True

    def _life_holding(self, phy_addr: int) -> _Life | None:
        block = self._heap.find(phy_addr)
        return self._lives[block.phy_addr] if block else None

    def _look_behind(self, life: _Life) -> None:
        block = life.block
        end = block.phy_addr + block.size_bytes
        over = self._tables.first_nonzero(end, block.reserved_bytes - block.size_bytes + self._guard_bytes(block))
        if over is not None:
            self._find(
                "overrun",
                f"The block {block.phy_addr:#x}+{block.size_bytes:#x} of {self._named(block.owner)} was written past "
                f"its end: byte {over - end + 1} behind it, at {over:#x}, is the first that was found."
                f"{f' It was allocated at {life.site}.' if life.site else ''}",
                life.place(),
                Place("written", phy_addr=over, size_bytes=1, block=block.phy_addr, block_bytes=block.size_bytes),
                client=block.owner,
            )

    def _named(self, client_id: Any) -> str:
        """A client in a sentence that may be read when it has gone."""
        client = self._clients.by_id.get(client_id)
        return f"client {client_id}" if client is None else f"client {client_id}, process {client.pid} ({client.name}),"

    def _guard_bytes(self, block: Block) -> int:
        """Bytes of the guard page behind a block that lie inside the file."""
        end = self._heap.base + self._heap.size_bytes
        return min(self._heap.guard_pages * PAGE_BYTES, end - block.phy_addr - block.reserved_bytes)

    def _publish(self, life: _Life) -> None:
        self._tables.set_owner(life.block.block_id, life.visible_owner(), tuple(sorted(life.users())))

    def _why_not(self, phy_addr: int) -> str:
        """Sentence on an address that starts no block, or one that was freed."""
        if phy_addr in self._lives:
            return f"The block at {phy_addr:#x} was freed by its owner before; others still use it."
        freed = self._ddr.freed_block(phy_addr)
        return self._heap.explain(phy_addr) if freed is None else f"It lies in freed memory: {freed}."
