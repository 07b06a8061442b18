"""Blocks of three clients in any order of allocation, registration, release, tasks and ends, against a model.

Checked after every step: the page table says what the heap says; a client may use exactly the blocks that it owns or
has registered, and those that a task which ran when it let go may still use; and when all are gone, so is all memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dsp_server.clients import Client, Clients
from dsp_server.memory.owners import BoardMemory
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.mailbox.table import REQUEST, Mailbox, State

HEAP_PAGES = 24
WHO = st.integers(0, 2)
WHICH = st.integers(0, 50)


@dataclass
class Block:
    """What the model knows of a block that is not gone."""

    phy_addr: int
    size_bytes: int
    owner: int | None  # client's place in the list
    registered: list[int] = field(default_factory=list)
    used_by: dict[int, set[int]] = field(default_factory=dict)  # client -> slots that ran when it let go

    def may_use(self, who: int) -> bool:
        return who == self.owner or who in self.registered or bool(self.used_by.get(who))


class MemoryLives(RuleBasedStateMachine):
    """Three clients; each has slots in which tasks run."""

    def __init__(self) -> None:
        super().__init__()
        self.ddr = Ddr.create(HEAP_PAGES * PAGE_BYTES, 1)
        self.mailbox = Mailbox(self.ddr)
        self.clients = Clients(self.mailbox)
        self.found: list[str] = []
        self.memory = BoardMemory(
            self.ddr, self.mailbox, self.clients, lambda _, text, *_places, **_of: self.found.append(text)
        )
        self.people: list[Client] = [self.clients.attach(pid, "model") for pid in (1, 2, 3)]
        self.blocks: list[Block] = []
        self.running: dict[int, set[int]] = {who: set() for who in range(3)}
        self.sequence = 0

    def teardown(self) -> None:
        for who in range(3):
            self.client_goes(who)
        assert self.memory.summary()["used_bytes"] == 0
        assert self.memory.summary()["free_bytes"] == HEAP_PAGES * PAGE_BYTES
        assert self.found == []
        for client in self.people:
            self.clients.discard(client)
        self.ddr.close()

    @rule(who=WHO, size_bytes=st.integers(1, 3 * PAGE_BYTES))
    def alloc(self, who: int, size_bytes: int) -> None:
        try:
            phy_addr = self.memory.alloc(size_bytes, self.people[who].id, is_cached=False)
        except RequestRefusedError:
            assert self.memory.summary()["largest_free_bytes"] < size_bytes
            return
        self.ddr.view(phy_addr, size_bytes)[:] = b"\xa5" * size_bytes
        self.blocks.append(Block(phy_addr, size_bytes, who))

    @precondition(lambda self: self.blocks)
    @rule(who=WHO, which=WHICH)
    def free(self, who: int, which: int) -> None:
        block = self.blocks[which % len(self.blocks)]
        try:
            self.memory.free(block.phy_addr, self.people[who].id)
        except RequestRefusedError:
            assert block.owner != who
            return
        assert block.owner == who
        block.owner = None
        self._has_let_go(block, who)

    @precondition(lambda self: self.blocks)
    @rule(who=WHO, which=WHICH, offset=st.integers(0, PAGE_BYTES))
    def register(self, who: int, which: int, offset: int) -> None:
        block = self.blocks[which % len(self.blocks)]
        offset %= block.size_bytes
        try:
            base = self.memory.register(block.phy_addr + offset, block.size_bytes - offset, self.people[who].id)
        except RequestRefusedError:
            assert block.owner is None
            assert not block.registered
            return
        assert base == block.phy_addr
        block.registered.append(who)

    @precondition(lambda self: self.blocks)
    @rule(who=WHO, which=WHICH)
    def unregister(self, who: int, which: int) -> None:
        block = self.blocks[which % len(self.blocks)]
        try:
            self.memory.unregister(block.phy_addr, self.people[who].id)
        except RequestRefusedError:
            assert who not in block.registered
            return
        block.registered.remove(who)
        self._has_let_go(block, who)

    @rule(who=WHO, slot=st.integers(0, 2))
    def task_starts(self, who: int, slot: int) -> None:
        client = self.people[who]
        self.sequence += 1
        if slot not in self.running[who]:
            record = self.ddr.layout.record(client.slots[slot])
            REQUEST.pack_into(self.ddr.map, record, self.sequence, 0, 0x1000, 0, 0, client.id, client.id, 0, 0, 0, 0)
            self._set(who, slot, State.RUNNING)
            self.running[who].add(slot)

    @rule(who=WHO, slot=st.integers(0, 2))
    def task_ends(self, who: int, slot: int) -> None:
        self._set(who, slot, State.DONE)
        self.running[who].discard(slot)
        for block in self.blocks:
            block.used_by.get(who, set()).discard(slot)
        self._settle()

    @rule(who=WHO)
    def client_goes(self, who: int) -> None:
        """It is gone when nothing runs for it anymore, and comes back as another."""
        for slot in list(self.running[who]):
            self.task_ends(who, slot)
        count, size_bytes = self.memory.release_client(self.people[who].id)
        owned = [block for block in self.blocks if block.owner == who]
        assert (count, size_bytes) == (len(owned), sum(block.size_bytes for block in owned))
        for block in self.blocks:
            block.owner = None if block.owner == who else block.owner
            block.registered = [sharer for sharer in block.registered if sharer != who]
        self._settle()

    @invariant()
    def tables_say_what_the_heap_says(self) -> None:
        rows = {row["phy_addr"]: row["size_bytes"] for row in self.memory.listing(1000)}
        assert rows == {block.phy_addr: block.size_bytes for block in self.blocks}
        for page in range(HEAP_PAGES):
            at = self.ddr.layout.phy_base + page * PAGE_BYTES
            entry = self.ddr.block_at(at)
            inside = [block.phy_addr for block in self.blocks if 0 <= at - block.phy_addr < block.size_bytes]
            assert ([entry.phy_addr] if entry else []) == inside

    @invariant()
    def everybody_may_use_what_is_theirs_and_nothing_else(self) -> None:
        for block in self.blocks:
            for who, client in enumerate(self.people):
                assert (self.ddr.refusal(block.phy_addr, 0, client.id) is None) == block.may_use(who)

    @invariant()
    def bytes_are_kept(self) -> None:
        for block in self.blocks:
            assert bytes(self.ddr.view(block.phy_addr, block.size_bytes)) == b"\xa5" * block.size_bytes

    def _has_let_go(self, block: Block, who: int) -> None:
        if block.owner != who and who not in block.registered and self.running[who]:
            block.used_by.setdefault(who, set()).update(self.running[who])
        self._settle()

    def _settle(self) -> None:
        self.memory.reclaim()
        self.blocks = [
            block for block in self.blocks if block.owner is not None or block.registered or any(block.used_by.values())
        ]

    def _set(self, who: int, slot: int, state: State) -> None:
        self.ddr.map[self.ddr.layout.states + self.people[who].slots[slot]] = state


TestMemoryLives = MemoryLives.TestCase
TestMemoryLives.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
