"""Lives of blocks: owners, registrations, tasks that still use them, and what a mistake leaves to be found."""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from dsp_server.clients import Client, Clients
from dsp_server.memory.owners import BoardMemory
from hbrt.ddr.file import Ddr, can_remove_pages
from hbrt.ddr.layout import BLOCK_MAX_SHARERS, PAGE_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.findings.record import Place
from hbrt.mailbox.table import REQUEST, Mailbox, State
from hbrt.status import Status

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

HEAP_PAGES = 64


class Bench:
    """A memory over a real DDR file, three clients, and tasks that run when a test says so."""

    def __init__(self, rest_bytes: int = 0) -> None:
        self.ddr = Ddr.create(HEAP_PAGES * PAGE_BYTES, 1)
        self.mailbox = Mailbox(self.ddr)
        self.clients = Clients(self.mailbox)
        self.found: list[tuple[str, str]] = []
        self.memory = BoardMemory(self.ddr, self.mailbox, self.clients, self._find, rest_bytes)
        self.one, self.two, self.three = (self.clients.attach(pid, "test") for pid in (1, 2, 3))

    def _find(self, kind: str, text: str, *_places: Place, client: int = 0) -> None:
        del client
        self.found.append((kind, text))

    def run(self, client: Client, sequence: int = 1) -> int:
        """A core runs a task of a client; returns its slot."""
        slot = client.slots[sequence]
        record = self.ddr.layout.record(slot)
        REQUEST.pack_into(self.ddr.map, record, sequence, 0, 0x1000, 0, 0, client.id, client.id, 0, 0, 0, 0)
        self.ddr.map[self.ddr.layout.states + slot] = State.RUNNING
        return slot

    def end(self, slot: int) -> None:
        self.ddr.map[self.ddr.layout.states + slot] = State.DONE

    def alloc(self, size_bytes: int = 100, client: Client | None = None) -> int:
        return self.memory.alloc(size_bytes, (client or self.one).id, is_cached=False)

    def write(self, phy_addr: int, raw: bytes) -> None:
        offset = self.ddr.offset_of(phy_addr)
        self.ddr.map[offset : offset + len(raw)] = raw

    def is_live(self, phy_addr: int) -> bool:
        """What the page table says, which must be what the heap says."""
        block = self.ddr.block_at(phy_addr)
        listed = [row for row in self.memory.listing(1000) if row["phy_addr"] == phy_addr]
        assert bool(block) == bool(listed)
        if block:
            assert block.size_bytes == listed[0]["size_bytes"]
        return bool(block)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    for client in list(bench.clients.by_id.values()):
        bench.clients.discard(client)
    bench.ddr.close()


def _refusal(call: Callable[[], object]) -> RequestRefusedError:
    with pytest.raises(RequestRefusedError) as caught:
        call()
    return caught.value


def test_block_is_zeroed_published_and_its_owners_alone(bench: Bench) -> None:
    phy_addr = bench.alloc(5000)
    entry = bench.ddr.block_at(phy_addr + 4999)
    assert entry is not None
    assert (entry.phy_addr, entry.size_bytes, entry.owner) == (phy_addr, 5000, bench.one.id)
    assert bench.ddr.block_at(phy_addr + 5000) is None
    assert bytes(bench.ddr.view(phy_addr, 5000)) == bytes(5000)
    assert bench.ddr.refusal(phy_addr, 0, bench.one.id) is None
    assert bench.ddr.refusal(phy_addr, 0, bench.two.id) is not None
    assert bench.memory.owned(bench.one.id) == (1, 5000)
    assert bench.memory.owned(bench.two.id) == (0, 0)


def test_freed_memory_comes_back_zeroed_and_is_given_back_to_the_host(bench: Bench) -> None:
    def pages_in_use() -> int:
        return os.fstat(bench.ddr.fd).st_blocks * 512 // PAGE_BYTES

    before = pages_in_use()
    phy_addr = bench.alloc(32 * PAGE_BYTES)
    bench.write(phy_addr, b"\xff" * 32 * PAGE_BYTES)
    assert pages_in_use() >= before + 32
    bench.memory.free(phy_addr, bench.one.id)
    assert pages_in_use() < before + 32
    assert not bench.is_live(phy_addr)
    assert bench.alloc(32 * PAGE_BYTES) == phy_addr
    assert bytes(bench.ddr.view(phy_addr, 32 * PAGE_BYTES)) == bytes(32 * PAGE_BYTES)
    assert bench.found == []


def test_out_of_memory_says_asked_free_and_largest(bench: Bench) -> None:
    bench.alloc(10 * PAGE_BYTES)
    error = _refusal(lambda: bench.alloc(HEAP_PAGES * PAGE_BYTES))
    assert error.status == Status.HB_SYS_OUT_OF_MEMORY
    free = bench.memory.summary()["largest_free_bytes"]
    assert f"{HEAP_PAGES * PAGE_BYTES} bytes were requested, but the largest free range holds {free} " in str(error)
    error = _refusal(lambda: bench.alloc(0))
    assert error.status == Status.HB_SYS_INVALID_ARGUMENT


def test_free_of_what_is_not_ones_own_is_refused_with_the_reason(bench: Bench) -> None:
    phy_addr = bench.alloc(100)
    other = bench.alloc(100, bench.two)
    gone = bench.alloc(100)
    bench.memory.free(gone, bench.one.id, "arm.py:7")
    cases = {
        other: f"The block at {other:#x} belongs to client 2, not to client 1.",
        gone: f"It lies in freed memory: the block {gone:#x}+0x64 of client 1, freed at arm.py:7.",
        phy_addr + 8: f"{phy_addr + 8:#x} lies 8 bytes inside the block at {phy_addr:#x} (100 bytes, owner 1): pass",
        0x1234: "0x1234 is outside DDR",
    }
    for address, text in cases.items():
        error = _refusal(lambda address=address: bench.memory.free(address, bench.one.id))  # type: ignore[misc]
        assert error.status == Status.HB_SYS_NOT_ALLOCATED
        assert text in str(error)
    assert bench.is_live(phy_addr)
    assert bench.is_live(other)


def test_registration_is_counted_and_any_address_in_the_block_will_do(bench: Bench) -> None:
    phy_addr = bench.alloc(1000)
    assert bench.memory.register(phy_addr + 64, 100, bench.two.id) == phy_addr
    assert bench.memory.register(phy_addr, 1000, bench.two.id) == phy_addr
    assert bench.ddr.sharers(phy_addr) == (bench.two.id,)
    bench.memory.unregister(phy_addr + 999, bench.two.id)
    assert bench.ddr.refusal(phy_addr, 0, bench.two.id) is None
    bench.memory.unregister(phy_addr, bench.two.id)
    assert bench.ddr.refusal(phy_addr, 0, bench.two.id) is not None
    error = _refusal(lambda: bench.memory.unregister(phy_addr, bench.two.id))
    assert (error.status, str(error)) == (
        Status.HB_SYS_INVALID_ARGUMENT,
        f"Client 2 has not registered a block at {phy_addr:#x}.",
    )


def test_range_that_cannot_be_registered_is_refused_with_the_reason(bench: Bench) -> None:
    phy_addr = bench.alloc(1000)
    cases = {
        (phy_addr + 1, 1000): f"It runs 1 byte past the end of the block at {phy_addr:#x} (1000 bytes, owner 1).",
        (phy_addr + 1000, 1): "It runs 1 byte past the end of the block",
        (phy_addr + 2 * PAGE_BYTES, 1): "was never allocated",
        (0, 1): "0x0 is outside DDR",
        ((1 << 64) - 1, 1): "0xffffffffffffffff is outside DDR",
    }
    for (address, size), text in cases.items():
        error = _refusal(lambda a=address, s=size: bench.memory.register(a, s, bench.two.id))  # type: ignore[misc]
        assert error.status == Status.HB_SYS_REGISTER_MEM_FAILED
        assert str(error).startswith(f"The range {address:#x}+{size:#x} cannot be registered. ")
        assert text in str(error)
    assert bench.ddr.sharers(phy_addr) == ()


def test_block_can_be_registered_by_as_many_clients_as_its_record_holds(bench: Bench) -> None:
    phy_addr = bench.alloc()
    clients = [bench.clients.attach(9, "many") for _ in range(BLOCK_MAX_SHARERS + 1)]
    for client in clients[:-1]:
        bench.memory.register(phy_addr, 100, client.id)
    error = _refusal(lambda: bench.memory.register(phy_addr, 100, clients[-1].id))
    assert f"is already registered by {BLOCK_MAX_SHARERS} clients, the maximum." in str(error)
    bench.memory.register(phy_addr, 100, clients[0].id)  # once more is no other client
    assert bench.ddr.sharers(phy_addr) == tuple(client.id for client in clients[:-1])


@pytest.mark.parametrize("owner_first", [True, False])
def test_block_lives_as_long_as_anybody_holds_it(bench: Bench, *, owner_first: bool) -> None:
    phy_addr = bench.alloc()
    bench.memory.register(phy_addr, 100, bench.two.id)
    bench.memory.register(phy_addr, 100, bench.three.id)
    lets_go: list[Callable[[], object]] = [
        lambda: bench.memory.free(phy_addr, bench.one.id),
        lambda: bench.memory.unregister(phy_addr, bench.two.id),
        lambda: bench.memory.unregister(phy_addr, bench.three.id),
    ]
    for let_go in lets_go if owner_first else reversed(lets_go):
        assert bench.is_live(phy_addr)
        let_go()
    assert not bench.is_live(phy_addr)
    assert bench.memory.summary()["used_bytes"] == 0


def test_block_that_its_owner_freed_is_no_longer_the_owners(bench: Bench) -> None:
    phy_addr = bench.alloc()
    bench.memory.register(phy_addr, 100, bench.two.id)
    bench.memory.free(phy_addr, bench.one.id)
    assert bench.ddr.refusal(phy_addr, 0, bench.one.id) is not None
    assert bench.ddr.refusal(phy_addr, 0, bench.two.id) is None
    assert str(_refusal(lambda: bench.memory.free(phy_addr, bench.one.id))) == (
        f"The block at {phy_addr:#x} was already freed by its owner; others still use it."
    )
    assert bench.memory.owned(bench.one.id) == (0, 0)


def test_client_that_goes_leaves_what_others_registered(bench: Bench) -> None:
    own, shared, foreign = bench.alloc(10), bench.alloc(20), bench.alloc(30, bench.two)
    bench.memory.register(shared, 20, bench.two.id)
    bench.memory.register(own, 10, bench.one.id)  # its own, as a C program may
    bench.memory.register(foreign, 30, bench.one.id)
    assert bench.memory.release_client(bench.one.id) == (2, 30)
    assert [bench.is_live(at) for at in (own, shared, foreign)] == [False, True, True]
    assert bench.ddr.refusal(foreign, 0, bench.one.id) is not None
    assert bench.memory.release_client(bench.one.id) == (0, 0)
    assert bench.memory.release_client(bench.two.id) == (1, 30)
    assert bench.memory.summary()["blocks"] == 0


@pytest.mark.parametrize("how", ["free", "unregister", "go"])
def test_op_keeps_what_it_may_have_mapped(bench: Bench, how: str) -> None:
    phy_addr = bench.alloc(100, bench.two if how == "unregister" else bench.one)
    if how == "unregister":
        bench.memory.register(phy_addr, 100, bench.one.id)
        bench.memory.free(phy_addr, bench.two.id)
    slot = bench.run(bench.one)
    bench.write(phy_addr, b"still there")
    if how == "free":
        bench.memory.free(phy_addr, bench.one.id)
    elif how == "unregister":
        bench.memory.unregister(phy_addr, bench.one.id)
    else:
        bench.memory.release_client(bench.one.id)
    assert bench.memory.is_waiting
    assert bench.is_live(phy_addr)
    assert bench.ddr.refusal(phy_addr, 0, bench.one.id) is None  # the op maps it again
    assert bench.ddr.refusal(phy_addr, 0, bench.three.id) is not None
    bench.memory.reclaim()
    assert bytes(bench.ddr.view(phy_addr, 11)) == b"still there"
    assert "cannot be registered. The block was freed; it will be reclaimed when the task that uses it ends." in str(
        _refusal(lambda: bench.memory.register(phy_addr, 100, bench.three.id))
    )
    bench.end(slot)
    bench.memory.reclaim()
    assert bench.memory.summary()["blocks"] == 0
    assert not bench.is_live(phy_addr)


def test_freed_memory_waits_only_for_tasks_that_ran_then(bench: Bench) -> None:
    phy_addr = bench.alloc()
    first = bench.run(bench.one, sequence=1)
    bench.memory.free(phy_addr, bench.one.id)
    later = bench.run(bench.one, sequence=2)
    bench.memory.reclaim()
    assert bench.is_live(phy_addr)
    bench.end(first)
    bench.memory.reclaim()
    assert not bench.is_live(phy_addr)
    bench.end(later)


def test_freed_memory_waits_for_no_task_of_another_client(bench: Bench) -> None:
    phy_addr = bench.alloc()
    bench.run(bench.two)
    bench.memory.free(phy_addr, bench.one.id)
    assert not bench.is_live(phy_addr)


def test_second_free_is_refused_while_the_first_waits(bench: Bench) -> None:
    phy_addr = bench.alloc()
    slot = bench.run(bench.one)
    bench.memory.free(phy_addr, bench.one.id)
    error = _refusal(lambda: bench.memory.free(phy_addr, bench.one.id))
    assert str(error) == f"The block at {phy_addr:#x} was already freed by its owner; others still use it."
    bench.end(slot)


def test_registration_by_another_is_published_while_a_free_waits(bench: Bench) -> None:
    phy_addr = bench.alloc()
    bench.memory.register(phy_addr, 100, bench.two.id)
    slot = bench.run(bench.one)
    bench.memory.free(phy_addr, bench.one.id)
    bench.memory.register(phy_addr, 100, bench.three.id)
    assert [bench.ddr.refusal(phy_addr, 0, client.id) is None for client in (bench.one, bench.two, bench.three)] == [
        True
    ] * 3
    bench.end(slot)
    bench.memory.reclaim()
    assert [bench.ddr.refusal(phy_addr, 0, client.id) is None for client in (bench.one, bench.two, bench.three)] == [
        False,
        True,
        True,
    ]


def test_write_past_the_end_is_found_when_the_block_goes(bench: Bench) -> None:
    phy_addr = bench.alloc(100)
    bench.write(phy_addr + 107, b"\x01")
    assert bench.found == []
    bench.memory.free(phy_addr, bench.one.id)
    text = f"Buffer overrun: the first bad byte is at {phy_addr + 107:#x}, 8 bytes past the end of block "
    assert bench.found == [("overrun", f"{text}{phy_addr:#x}+0x64 of client 1, process 1 (test).")]


def test_write_into_the_page_behind_is_found_too(bench: Bench) -> None:
    phy_addr = bench.alloc(PAGE_BYTES)
    neighbor = bench.alloc(PAGE_BYTES)
    assert neighbor >= phy_addr + 2 * PAGE_BYTES  # a page between them belongs to nobody
    bench.write(phy_addr + PAGE_BYTES + 5, b"\x01")
    bench.memory.free(phy_addr, bench.one.id)
    assert [kind for kind, _ in bench.found] == ["overrun"]
    bench.memory.free(neighbor, bench.one.id)
    assert len(bench.found) == 1


def test_last_block_of_the_heap_has_no_page_behind_it(bench: Bench) -> None:
    phy_addr = bench.alloc(HEAP_PAGES * PAGE_BYTES)
    bench.write(phy_addr + HEAP_PAGES * PAGE_BYTES - 1, b"\x01")
    bench.memory.free(phy_addr, bench.one.id)
    assert bench.found == []


def test_write_into_free_memory_is_found_at_the_next_allocation_and_cleared(bench: Bench) -> None:
    phy_addr = bench.alloc(PAGE_BYTES)
    bench.memory.free(phy_addr, bench.one.id, f"/home/somebody/{'deep/' * 9}arm.py:63")
    bench.write(phy_addr + 40, b"\x07")
    assert bench.alloc(PAGE_BYTES) == phy_addr
    assert bench.found == [
        (
            "write-after-free",
            (
                f"A byte at {phy_addr + 40:#x} was written while its memory was free. It was in the block "
                f"{phy_addr:#x}+0x1000 of client 1, freed at /deep/deep/deep/deep/deep/deep/arm.py:63."
            ),
        )
    ]
    assert bytes(bench.ddr.view(phy_addr, PAGE_BYTES)) == bytes(PAGE_BYTES)


def test_write_into_free_memory_is_found_when_somebody_looks(bench: Bench) -> None:
    first, kept = bench.alloc(PAGE_BYTES), bench.alloc(PAGE_BYTES)
    bench.memory.free(first, bench.one.id, "arm.py:9")
    for written in (
        first + 40,
        kept,
        kept + PAGE_BYTES,
        kept + 5 * PAGE_BYTES,
    ):  # a live block and its guard are not free
        bench.write(written, b"\x07")
    for _ in range(2):
        bench.memory.look_at_free()
        assert [text.split(" was written")[0] for _, text in bench.found] == [
            f"A byte at {first + 40:#x}",
            f"A byte at {kept + 5 * PAGE_BYTES:#x}",
        ]
    assert bench.found[0][1].endswith(f"It was in the block {first:#x}+0x1000 of client 1, freed at arm.py:9.")


def test_free_pages_that_were_only_read_are_given_back(bench: Bench) -> None:
    base, size_bytes = bench.ddr.layout.phy_base, 16 * PAGE_BYTES
    assert not any(bench.ddr.map[at] for at in range(bench.ddr.offset_of(base), bench.ddr.offset_of(base + size_bytes)))
    assert bench.ddr.has_data(base, size_bytes)
    bench.memory.look_at_free()
    assert not bench.ddr.has_data(base, size_bytes)
    assert bench.found == []


def test_freed_address_rests_until_enough_was_freed_after_it_or_nothing_else_is_left() -> None:
    bench = Bench(rest_bytes=4 * PAGE_BYTES)
    first = bench.alloc(2 * PAGE_BYTES)
    bench.memory.free(first, bench.one.id, "arm.py:1")
    assert bench.ddr.explain(first + 8, 1) == (
        f"The physical range {first + 8:#x}+0x1 is in freed memory: the block {first:#x}+0x2000 of client 1, freed "
        "at arm.py:1. Free a block after its last use."
    )
    second = bench.alloc(2 * PAGE_BYTES)
    assert second > first
    free_bytes = bench.memory.summary()["free_bytes"]
    bench.memory.free(second, bench.one.id)
    third = bench.alloc(2 * PAGE_BYTES)
    assert third > second
    bench.memory.free(third, bench.one.id)  # more than four pages rest now: the oldest comes back
    assert bench.alloc(PAGE_BYTES) == first
    assert bench.memory.summary()["free_bytes"] == free_bytes + PAGE_BYTES
    largest = bench.memory.summary()["largest_free_bytes"]
    assert bench.alloc(largest)  # which takes in what rests
    assert bench.memory.summary()["largest_free_bytes"] == 0
    bench.ddr.close()


class MmapOfAnEmulator(mmap.mmap):
    """Takes every advice and follows none, as under qemu-user."""

    def madvise(self, option: int, start: int = 0, length: int | None = None) -> None:
        """Do nothing."""


def test_fresh_memory_is_zeros_where_madvise_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "mmap", MmapOfAnEmulator)
    can_remove_pages.cache_clear()
    bench = Bench()
    try:
        size = 3 * PAGE_BYTES - 100
        phy_addr = bench.alloc(size)
        for at in (0, PAGE_BYTES + 17, size - 1):
            bench.write(phy_addr + at, b"\x55")
        bench.memory.free(phy_addr, bench.one.id)
        assert bench.alloc(size, bench.two) == phy_addr
        assert not any(bench.ddr.view(phy_addr, size))
        assert bench.found == []
    finally:
        bench.ddr.close()
        can_remove_pages.cache_clear()


def test_listing_is_by_address_and_limited(bench: Bench) -> None:
    blocks = sorted(bench.alloc(10) for _ in range(4))
    bench.memory.register(blocks[1], 10, bench.two.id)
    assert [row["phy_addr"] for row in bench.memory.listing(3)] == blocks[:3]
    assert bench.memory.listing(0) == []
    assert bench.memory.listing(100)[1] == {
        "phy_addr": blocks[1],
        "size_bytes": 10,
        "client": bench.one.id,
        "site": "",
        "use": "",
        "cached": False,
        "imported": False,
        "registered_by": [bench.two.id],
    }


def test_op_goes_on_with_memory_that_its_caller_freed(start: Start) -> None:
    """On a real board: the op maps the block only after it was freed, writes, and hurts nobody."""
    running = start()
    board = running.attach()
    block, target = board.alloc(64), board.alloc(64)
    flags = block.view()
    flags[8:16] = target.phy_addr.to_bytes(8, "little")
    task = board.submit(running.TOUCH, block)
    running.until(lambda: flags[0], "the op's start")
    target.free()
    other = board.alloc(64)
    assert other.phy_addr != target.phy_addr
    flags[1] = 1
    assert task.exception() is None
    running.until(lambda: running.ask("mem", most=100)["summary"]["blocks"] == 2, "the block's end")
    assert bytes(other.view()) == bytes(64)
    assert running.ask("status")["findings"] == []


def test_client_that_ends_with_blocks_is_a_finding(start: Start) -> None:
    running = start()
    board = running.attach()
    for size_bytes in (100, 200):  # as hbSysAllocMem: nothing but the program frees them
        board.session.blocks.alloc(size_bytes)
    board.close()
    running.until(lambda: running.ask("status")["findings"], "a finding")
    (finding,) = running.ask("status")["findings"]
    assert finding["kind"] == "leak"
    assert finding["text"].startswith(f"Process {os.getpid()} (")
    assert ") ended with 2 blocks (300 bytes) not freed. Allocated at " in finding["text"]
    line = f"{__file__}:{test_client_that_ends_with_blocks_is_a_finding.__code__.co_firstlineno + 4}"
    assert [(place["site"], place["size_bytes"]) for place in finding["places"]] == [(line, 100), (line, 200)]
    assert (finding["severity"], finding["count"]) == ("warning", 1)
    assert running.ask("mem", most=10)["summary"]["blocks"] == 0


def test_a_daemon_that_hangs_keeps_no_client_from_its_end(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arm_client.session.session._DETACH_MS", 50)
    running = start()
    board = running.attach()
    kept = [board.alloc(100), board.alloc(200)]
    os.kill(running.pid, signal.SIGSTOP)
    try:
        closing = threading.Thread(target=board.close, daemon=True)
        closing.start()
        closing.join(20)
        assert not closing.is_alive()
    finally:
        os.kill(running.pid, signal.SIGCONT)
    assert len(kept) == 2


@pytest.mark.parametrize("is_dropped", [False, True])
def test_what_frees_itself_is_no_leak_of_a_client_that_ends(start: Start, is_dropped: bool) -> None:  # noqa: FBT001
    running = start()
    board, other = running.attach(), running.attach()
    kept = [board.alloc(100), board.empty(4)]
    if is_dropped:
        kept.clear()
    board.close()
    running.until(lambda: running.ask("mem", most=10)["summary"]["blocks"] == 0, "the blocks' end")
    other.session.blocks.alloc(300)
    other.close()
    running.until(lambda: running.ask("status")["findings"], "the other's finding")
    (finding,) = running.ask("status")["findings"]
    assert ") ended with 1 block (300 bytes) not freed." in finding["text"]
