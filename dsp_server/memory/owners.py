"""Who owns the DDR's bytes: allocation, registration, release, and checks of free memory.

The heap chooses addresses, the tables publish them, and this module decides how long a block lives. A block is
reclaimed once its owner has freed it, no client has it registered, and no running op of these clients may have it
mapped; then its pages go back to the host. So an op never loses memory that it is using. While a process keeps the
claim lock, freed blocks wait.

This module finds two mistakes that a board hides: writes past the end of a block (found when the block is reclaimed),
and writes to free memory (found at the next allocation).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from dsp_server.clients import Clients, TaskKey
from dsp_server.memory.heap import BadSize, Block, Heap, NotFree, OutOfMemory
from dsp_server.memory.imports import OpenedMemory
from hbrt import settings
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.fill import new_memory, unwritten
from hbrt.ddr.layout import BLOCK_MAX_SHARERS, CLIENT_CHECKS, PAGE_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.findings.checks import Check
from hbrt.findings.record import Finding, Place
from hbrt.findings.text import counted
from hbrt.mailbox.table import Mailbox
from hbrt.status import Status

NOBODY = 0
MAX_FREED = 4096
"""How many freed blocks are remembered, with the lines that allocated and freed them."""


class _LiveBlock:
    """A block in the heap, and the clients that hold it."""

    __slots__ = (
        "block", "freed_at", "imported", "is_cached", "last_owner", "owner", "running", "sharers", "site", "unchecked",
        "use"
    )  # fmt: skip

    def __init__(self, block: Block, owner: int, site: str, *, is_cached: bool, use: str = "") -> None:
        self.block = block
        self.owner = owner
        self.site = site  # file:line of the allocation, as given by the program; may be empty
        self.is_cached = is_cached
        self.use = use  # the model that the runtime keeps it for; empty if it is the program's own
        self.imported: OpenedMemory | None = None  # what is in its place: memory from the client's other library
        self.sharers: list[int] = []  # one entry per registration
        self.last_owner = NOBODY  # last owner of a freed block
        self.freed_at = ""  # file and line in its program
        self.running: dict[int, frozenset[TaskKey]] = {}  # clients that no longer hold it: their running tasks
        self.unchecked: set[int] = set()  # clients whose running tasks are not known yet

    def is_held_by(self, client: int) -> bool:
        return client == self.owner or client in self.sharers

    def users(self) -> set[int]:
        """Clients whose tasks may use the block because it is registered."""
        return set(self.sharers) | set(self.running) - {self.last_owner}

    def place(self) -> Place:
        """The block, and the line that allocated it."""
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
        """The owner shown in the tables; a freed block keeps its owner while one of that client's tasks runs."""
        return self.last_owner if self.last_owner in self.running else self.owner


class BoardMemory:
    """A board's DDR."""

    def __init__(
        self, ddr: Ddr, mailbox: Mailbox, clients: Clients, find: Callable[..., None], rest_bytes: int = 0
    ) -> None:
        """``find`` receives each finding, like ``Journal.find``; for ``rest_bytes`` see ``Heap``."""
        self._heap = Heap(ddr.layout.phy_base, ddr.layout.heap_bytes, rest_bytes=rest_bytes)
        self._ddr = ddr
        self._tables = DdrTables(ddr)
        self._new_memory = new_memory()
        self._is_fill_given = settings.is_given("HBRT_FILL")
        self._mailbox = mailbox
        self._clients = clients
        self._find = find
        self.refuses: Callable[[int, int], str] = lambda *_: (
            ""
        )  # why an allocation of this size by a client must fail, by injection
        self.settle: Callable[[], None] = lambda: None  # takes in the findings that cores have sent
        self._reported_overruns: set[tuple[int, str]] = (
            set()
        )  # by ops: owner of the block, and the line that allocated it
        self._blocks: dict[int, _LiveBlock] = {}
        self._held: dict[int, set[int]] = {}  # client -> blocks that it owns or has registered
        self._freed: dict[int, _LiveBlock] = {}  # latest last
        self._in_use: dict[int, _LiveBlock] = {}  # held by no client, but a task may have it mapped
        self._imports: dict[tuple[int, int, int], _LiveBlock] = {}  # by OpenedMemory's key

    def alloc(
        self, size_bytes: int, client: int, *, is_cached: bool, site: str = "", use: str = "", at: int | None = None
    ) -> int:
        """Allocate a zeroed block for a client; return its physical address.

        Args:
            size_bytes: Size of the block.
            client: The owner's client id.
            is_cached: Whether the program asked for cached memory.
            site: ``file:line`` of the allocation in the program, for findings.
            use: The model that the program's runtime keeps the block for; empty if it is the program's own.
            at: The physical address to allocate; None for any.

        Raises:
            RequestRefusedError: no free range of that size, or not at that address; says what is free.
        """
        block = self._take(size_bytes, client, at)
        is_watched = self._mailbox.map[self._mailbox.layout.client(client) + CLIENT_CHECKS] & ~Check.HOOKS
        if (new := unwritten if is_watched and not self._is_fill_given else self._new_memory) is not None:
            self._tables.write(block.phy_addr, size_bytes, new)
        self._tables.add(block.block_id, block.phy_addr, size_bytes, block.reserved_bytes, client)
        self._hold(_LiveBlock(block, client, site, is_cached=is_cached, use=use))
        return block.phy_addr

    def import_(self, opened: OpenedMemory, size_bytes: int, client: int, site: str = "") -> int:
        """Place memory of a client's other library in the DDR, as that client's block; registrations are counted.

        Args:
            opened: The memory; this object owns it from now on.
            size_bytes: How many bytes of it.
            client: The owner's client id.
            site: See ``alloc``.

        Returns:
            The physical address, which is the same for the same memory as long as anybody has it registered.

        Raises:
            RequestRefusedError: no free range of that size, or registered by too many clients.
        """
        known = self._imports.get(opened.key)
        is_known = known is not None and (known.owner != NOBODY or known.sharers)
        try:
            if known is not None and is_known and size_bytes <= known.block.size_bytes:
                phy_addr = self.register(known.block.phy_addr, size_bytes, client)
                os.close(opened.file.fd)
                return phy_addr
            block = self._take(size_bytes, client)
        except RequestRefusedError:
            os.close(opened.file.fd)
            raise
        word = opened.file.packed()
        self._tables.add(block.block_id, block.phy_addr, size_bytes, block.reserved_bytes, client, word)
        life = self._imports[opened.key] = _LiveBlock(block, client, site, is_cached=True)
        life.imported = opened
        self._hold(life)
        return block.phy_addr

    def _take(self, size_bytes: int, client: int, at: int | None = None) -> Block:
        if sentence := self.refuses(size_bytes, client):
            raise RequestRefusedError(Status.HB_SYS_OUT_OF_MEMORY, sentence)
        try:
            block = self._heap.alloc(size_bytes, client, at)
        except (OutOfMemory, NotFree) as error:
            raise RequestRefusedError(Status.HB_SYS_OUT_OF_MEMORY, str(error)) from None
        except BadSize as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        self._find_late_write(block.phy_addr, block.reserved_bytes)
        return block

    def _hold(self, life: _LiveBlock) -> None:
        phy_addr = life.block.phy_addr
        self._freed.pop(phy_addr, None)
        self._blocks[phy_addr] = life
        self._held.setdefault(life.owner, set()).add(phy_addr)

    def free(self, phy_addr: int, client: int, freed_at: str = "") -> None:
        """Free a client's block; it stays while others have it registered or a running task may use it.

        Raises:
            RequestRefusedError: no block of this client starts there.
        """
        life = self._blocks.get(phy_addr)
        if life is None or life.owner == NOBODY:
            raise RequestRefusedError(Status.HB_SYS_NOT_ALLOCATED, self._why_not(phy_addr))
        if life.owner != client:
            raise RequestRefusedError(
                Status.HB_SYS_NOT_ALLOCATED,
                f"The block at {phy_addr:#x} belongs to client {life.owner}, not to client {client}.",
            )
        if life.imported is not None:
            raise RequestRefusedError(
                Status.HB_SYS_NOT_ALLOCATED,
                f"The block at {phy_addr:#x} was registered, not allocated: release it with hbSysUnregisterMem.",
            )
        life.owner, life.last_owner, life.freed_at = NOBODY, client, freed_at
        self._release_hold(life, client)

    def register(self, phy_addr: int, size_bytes: int, client: int) -> int:
        """Register a range of a live block, the client's own or another's; counted. Return the block's address.

        Raises:
            RequestRefusedError: the range is not inside a single live block, or is registered by too many clients.
        """
        life = self._block_at(phy_addr)
        if life is None:
            why = self._why_not(phy_addr)
        elif (over := phy_addr + size_bytes - life.block.phy_addr - life.block.size_bytes) > 0:
            why = f"It runs {counted(over, 'byte')} past the end of the block at {life.block}."
        elif life.owner == NOBODY and not life.sharers:
            why = "The block was freed; it will be reclaimed when the task that uses it ends."
        elif client not in life.users() and len(life.users()) >= BLOCK_MAX_SHARERS:
            why = f"The block is already registered by {BLOCK_MAX_SHARERS} clients, the maximum."
        else:
            life.sharers.append(client)
            self._held.setdefault(client, set()).add(life.block.phy_addr)
            self._publish(life)
            return life.block.phy_addr
        raise RequestRefusedError(
            Status.HB_SYS_REGISTER_MEM_FAILED, f"The range {phy_addr:#x}+{size_bytes:#x} cannot be registered. {why}"
        )

    def unregister(self, phy_addr: int, client: int, site: str = "") -> None:
        """Undo one registration of a client; ``site`` is the line that does it, for messages about late use.

        Raises:
            RequestRefusedError: the client has not registered a block there.
        """
        life = self._block_at(phy_addr)
        if life is not None and client in life.sharers:
            life.sharers.remove(client)
        elif life is not None and life.imported is not None and client == life.owner:
            life.owner, life.last_owner, life.freed_at = NOBODY, client, site
        else:
            raise RequestRefusedError(
                Status.HB_SYS_INVALID_ARGUMENT, f"Client {client} has not registered a block at {phy_addr:#x}."
            )
        self._release_hold(life, client)

    def release_client(self, client: int) -> tuple[int, int]:
        """Free all of a client's blocks and registrations; return number and bytes of blocks that it still owned."""
        count = size_bytes = 0
        for phy_addr in sorted(self._held.pop(client, ())):
            life = self._blocks[phy_addr]
            if life.owner == client:
                count += 1
                size_bytes += life.block.size_bytes
                life.owner, life.last_owner, life.freed_at = NOBODY, client, "its program's end"
            life.sharers = [sharer for sharer in life.sharers if sharer != client]
            self._release_hold(life, client)
        self._reported_overruns = {
            one for one in self._reported_overruns if one[0] != client
        }  # its id will be another client's
        return count, size_bytes

    def reclaim(self) -> None:
        """Reclaim the blocks whose last user has ended."""
        for life in list(self._in_use.values()):
            if not self._reclaim(life):
                return

    @property
    def is_waiting(self) -> bool:
        """Whether freed blocks wait for a running task to end, or for the claim lock."""
        return bool(self._in_use)

    def owned(self, client: int) -> tuple[int, int]:
        """Number and total bytes of the blocks that a client owns."""
        held = (self._blocks[phy_addr] for phy_addr in self._held.get(client, ()))
        sizes = [life.block.size_bytes for life in held if life.owner == client]
        return len(sizes), sum(sizes)

    def kept_for_models(self, client: int) -> int:
        """Number of blocks that a client's runtime keeps for its models."""
        held = (self._blocks[phy_addr] for phy_addr in self._held.get(client, ()))
        return sum(life.owner == client and bool(life.use) for life in held)

    def has_imported(self, client: int) -> bool:
        """Whether a client owns memory that another library made."""
        held = (self._blocks[phy_addr] for phy_addr in self._held.get(client, ()))
        return any(life.owner == client and life.imported is not None for life in held)

    def owned_places(self, client: int) -> tuple[Place, ...]:
        """Blocks that a client owns and its runtime does not keep, by address, each with the line that allocated it."""
        held = (self._blocks[phy_addr] for phy_addr in sorted(self._held.get(client, ())))
        return tuple(life.place() for life in held if life.owner == client and not life.use)

    def with_history(self, found: Finding) -> Finding:
        """Add to a finding about a block the lines that allocated and freed it, if its finder did not know them."""
        if any(place.what == "allocated" for place in found.places):
            return found
        if found.kind == "overrun":
            return self._with_block(found)
        freed = next((place for place in found.places if place.what == "freed"), None)
        life = self._freed.get(freed.block) if freed is not None and freed.block is not None else None
        if life is None:
            return found
        places = [place._replace(site=life.freed_at) if place is freed else place for place in found.places]
        if not life.site:
            return found._replace(places=tuple(places))
        text = f"{found.text} The block was allocated at {life.site} and freed at {life.freed_at}."
        return found._replace(text=text, places=(*places, life.place()))

    def _with_block(self, found: Finding) -> Finding:
        """Handle an overrun seen while an op made it; it is not reported again when the block is reclaimed."""
        life = next((self._blocks[place.block] for place in found.places if place.block in self._blocks), None)
        if life is None:
            return found
        self._reported_overruns.add((life.owner or life.last_owner, life.site))
        text = f"{found.text} The block was allocated at {life.site}." if life.site else found.text
        return found._replace(text=text, places=(*found.places, life.place()))

    def look_at_free(self) -> None:
        """Find writes to memory that belongs to no block, and zero that memory again."""
        for start, size_bytes in list(self._heap.gaps()):
            self._find_late_write(start, size_bytes)

    def summary(self) -> dict[str, int]:
        """Return sizes in bytes, and the number of live blocks."""
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
        """Return the first ``most`` live blocks by address."""
        lives = (self._blocks[block.phy_addr] for block in itertools.islice(self._heap, most))
        return [
            {
                "phy_addr": life.block.phy_addr,
                "size_bytes": life.block.size_bytes,
                "client": life.owner,
                "cached": life.is_cached,
                "imported": life.imported is not None,
                "site": life.site,
                "use": life.use,
                "registered_by": sorted(set(life.sharers)),
            }
            for life in lives
        ]

    def _release_hold(self, life: _LiveBlock, client: int) -> None:
        if life.is_held_by(client):
            self._publish(life)
            return
        self._held.get(client, set()).discard(life.block.phy_addr)
        life.unchecked.add(client)
        life.running.setdefault(client, frozenset())
        self._in_use[life.block.phy_addr] = life
        self._reclaim(life)

    def _reclaim(self, life: _LiveBlock) -> bool:
        """Reclaim a block if no client holds it and no running task of its former holders may have it mapped.

        Returns:
            False if the claim lock is not available; then nothing was changed.
        """
        block = life.block
        # The claim lock orders this relative to the cores: a task claimed earlier is RUNNING here, and a task claimed
        # later does not find the block in the tables.
        try:
            with self._mailbox.claim_lock:
                for leaver in life.unchecked:
                    life.running[leaver] |= self._clients.running_tasks(leaver)
                life.unchecked.clear()
                still = {client: frozenset(filter(self._clients.is_running, of)) for client, of in life.running.items()}
                life.running = {client: tasks for client, tasks in still.items() if tasks}
                if not life.running:
                    self._in_use.pop(block.phy_addr, None)
                if life.running or life.owner != NOBODY or life.sharers:
                    self._publish(life)
                    return True
                self._tables.remove(block.block_id, block.reserved_bytes, life.last_owner, life.freed_at)
        except ClaimLockError:
            return False
        self._check_overrun(life)
        self._tables.free_pages(block.phy_addr, block.reserved_bytes + self._guard_bytes(block))
        if life.imported is not None:
            os.close(life.imported.file.fd)
            if self._imports.get(life.imported.key) is life:
                del self._imports[life.imported.key]
        self._freed[block.phy_addr] = self._blocks.pop(block.phy_addr)
        if len(self._freed) > MAX_FREED:
            del self._freed[next(iter(self._freed))]
        self._heap.free(block.phy_addr)
        return True

    def _block_at(self, phy_addr: int) -> _LiveBlock | None:
        block = self._heap.find(phy_addr)
        return self._blocks[block.phy_addr] if block else None

    def _check_overrun(self, life: _LiveBlock) -> None:
        block = life.block
        end = block.phy_addr + block.size_bytes
        over = self._tables.first_nonzero(end, block.reserved_bytes - block.size_bytes + self._guard_bytes(block))
        if over is not None:
            self.settle()
        if over is not None and (life.last_owner, life.site) not in self._reported_overruns:
            self._find(
                "overrun",
                f"Buffer overrun: the first bad byte is at {over:#x}, {counted(over - end + 1, 'byte')} past the end "
                f"of block {block.phy_addr:#x}+{block.size_bytes:#x} of {self._named(block.owner).rstrip(',')}"
                f"{f', allocated at {life.site}' if life.site else ''}.",
                life.place(),
                Place("written", phy_addr=over, size_bytes=1, block=block.phy_addr, block_bytes=block.size_bytes),
                client=block.owner,
            )

    def _named(self, client_id: Any) -> str:
        """Name a client in a sentence; it may have ended."""
        client = self._clients.by_id.get(client_id)
        return f"client {client_id}" if client is None else f"client {client_id}, process {client.pid} ({client.name}),"

    def _guard_bytes(self, block: Block) -> int:
        """Number of bytes of the guard page behind a block that are inside the file."""
        end = self._heap.base + self._heap.size_bytes
        return min(self._heap.guard_pages * PAGE_BYTES, end - block.phy_addr - block.reserved_bytes)

    def _find_late_write(self, phy_addr: int, size_bytes: int) -> None:
        if not self._ddr.has_data(phy_addr, size_bytes):
            return
        touched = self._tables.first_nonzero(phy_addr, size_bytes)
        if touched is not None:
            freed = self._ddr.freed_block(touched)
            self._find(
                "write-after-free",
                f"A byte at {touched:#x} was written while its memory was free."
                f"{'' if freed is None else f' It was in {freed}.'}",
                Place("written", phy_addr=touched, size_bytes=1),
            )
        self._tables.free_pages(phy_addr, size_bytes)  # also pages that were only read, or each search would read them

    def _publish(self, life: _LiveBlock) -> None:
        self._tables.set_owner(life.block.block_id, life.visible_owner(), tuple(sorted(life.users())))

    def _why_not(self, phy_addr: int) -> str:
        """Say why no block starts at an address, or why it cannot be used."""
        if phy_addr in self._blocks:
            return f"The block at {phy_addr:#x} was already freed by its owner; others still use it."
        freed = self._ddr.freed_block(phy_addr)
        return self._heap.explain(phy_addr) if freed is None else f"It lies in freed memory: {freed}."
