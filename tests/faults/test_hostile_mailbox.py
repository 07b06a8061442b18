"""A client that writes whatever it likes into the DDR file that it maps: it gets a refusal, and the board serves on.

Each case is one slot that the client leases, filled by hand and set READY. A core answers it with the status that it
has, or lets it lie; it never dies of it, and nobody else's call is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

from hbrt.ddr.layout import (
    BLOCK_FREED,
    BLOCK_RECORD_BYTES,
    CLIENT_COUNT,
    DDR_BASE,
    SLOT_COUNT,
    SLOT_RECORD_BYTES,
    SLOT_TEXT,
    SLOT_TEXT_BYTES,
)
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, FIRST_END, REQUEST, Request, State
from hbrt.status import Status
from tests.faults import ops
from tests.faults.world import World
from tests.waiting import until

U16, U32, U64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1
ADDRESS, UNALIGNED = Status.HB_DSP_INVALID_ADDRESS, Status.HB_DSP_UNALIGNED_ADDRESS
FULL = (1 << 64) - 2  # of an eventfd's counter


class Hostile:
    """A client with a block of 4096 bytes, a neighbor's block, one that was freed, and its hands on every byte."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.session = world.attach()
        self.other = world.attach()
        self.link = self.session.link
        self.mailbox = self.link.mailbox
        self.map = self.mailbox.map
        self.slot = self.link.first_slots[-1]  # the last that this session would take itself
        self.own = self.session.blocks.alloc(4096).phy_addr
        self.second = self.session.blocks.alloc(4096).phy_addr
        self.foreign = self.other.blocks.alloc(4096).phy_addr
        self.freed = self.session.blocks.alloc(4096).phy_addr
        self.session.blocks.free(self.freed)
        self.pids = [world.core_pid(index) for index in range(world.cores)]

    def request(self, **fields: int) -> Request:
        """A good request, but for the fields that are given."""
        client = self.link.client_id
        good = Request(1, 0, ops.TOUCH, 0, 0, client, client, self.own, 64, self.second, 64)
        return good._replace(**fields)

    def write(self, request: Request, slot: int | None = None) -> None:
        """Write a record."""
        REQUEST.pack_into(self.map, self.mailbox.layout.record(self.slot if slot is None else slot), *request)

    def be(self, state: int, slot: int | None = None) -> None:
        """Set a state byte."""
        self.map[self.mailbox.states + (self.slot if slot is None else slot)] = state

    def announce(self, slot: int | None = None) -> None:
        """Announce a slot to every core, and ring all of them."""
        for core in range(self.world.cores):
            self.map[self.mailbox.layout.announced(core) + (self.slot if slot is None else slot)] = 1
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(self.link.core_doorbells[core], 1)

    def post(self, request: Request) -> None:
        """Submit it as no program would."""
        self.write(request)
        self.be(State.READY)
        self.announce()

    def outcome(self) -> tuple[int, str]:
        """Status and text of the slot when it has ended; it is empty afterwards."""
        until(lambda: self.map[self.mailbox.states + self.slot] >= FIRST_END, "the end of a hostile task")
        answer, text = self.mailbox.answer(self.slot), self.mailbox.text(self.slot)
        self.be(State.EMPTY)
        return answer.result, text

    def live_blocks(self) -> dict[int, tuple[bytes, int]]:
        """What the tables say of each live block, by its id: its record, and how many pages it has."""
        layout = self.mailbox.layout
        table = np.frombuffer(self.map[layout.pages : layout.blocks], np.uint32)
        ids, counts = np.unique(table[(table > 0) & (table < BLOCK_FREED)], return_counts=True)
        starts = {int(one): layout.blocks + int(one) * BLOCK_RECORD_BYTES for one in ids}
        return {
            one: (bytes(self.map[start : start + BLOCK_RECORD_BYTES]), int(count))
            for (one, start), count in zip(starts.items(), counts, strict=True)
        }

    def nobody_was_harmed(self) -> None:
        """The same cores run, each answers the neighbor, and its bytes are what it wrote."""
        assert self.world.serves() == []
        assert [self.world.core_pid(index) for index in range(self.world.cores)] == self.pids

    def close(self) -> None:
        self.be(State.EMPTY)
        for session, phy_addr in ((self.session, self.own), (self.session, self.second), (self.other, self.foreign)):
            session.blocks.free(phy_addr)
        self.session.close()
        self.other.close()


@pytest.fixture
def hostile(world: World) -> Iterator[Hostile]:
    """Such a client; afterwards the board is whole."""
    made = Hostile(world)
    yield made
    made.close()
    world.settle()


class Case(NamedTuple):
    """Fields of the request, and what comes back."""

    fields: dict[str, int] | Callable[[Hostile], dict[str, int]]
    status: int
    text: str = ""


CASES: dict[str, Case] = {
    "address below the DDR": Case({"input_phy": 0x1000}, ADDRESS, "is outside this board's DDR"),
    "address of the system area": Case({"input_phy": DDR_BASE}, ADDRESS, "is outside this board's DDR"),
    "address of the task table": Case(
        lambda h: {"output_phy": DDR_BASE + h.mailbox.states}, ADDRESS, "is outside this board's DDR"
    ),
    "address past the DDR": Case(lambda h: {"output_phy": h.mailbox.layout.phy_end}, ADDRESS, "is outside this board"),
    "address of -8": Case({"input_phy": U64 - 7}, ADDRESS, "0xfffffffffffffff8+0x40 is outside"),
    "virtual address": Case({"input_phy": 0x7F12_3456_7000}, ADDRESS, "pass mem.phyAddr, not mem.virAddr"),
    "size that wraps to 0": Case(
        lambda h: {"input_bytes": (1 << 64) - h.own}, ADDRESS, "bytes past the end of its block"
    ),
    "size of -1": Case({"output_bytes": U64}, ADDRESS, "bytes past the end of its block"),
    "one byte too many": Case({"input_bytes": 4097}, ADDRESS, "runs 1 byte past the end"),
    "end past the end": Case(lambda h: {"input_phy": h.own + 4088, "input_bytes": 16}, ADDRESS, "runs 8 bytes past"),
    "guard page": Case(lambda h: {"input_phy": h.own + 4096}, ADDRESS, "is not in a live block"),
    "two blocks at once": Case(lambda h: {"input_bytes": h.second - h.own + 64}, ADDRESS, "bytes past the end"),
    "freed": Case(lambda h: {"input_phy": h.freed}, ADDRESS, "is in freed memory: the block"),
    "never allocated": Case(lambda h: {"output_phy": h.mailbox.layout.phy_end - 8192}, ADDRESS, "never allocated"),
    "unaligned by 1": Case(lambda h: {"input_phy": h.own + 1}, UNALIGNED, "must start at a multiple of 8 bytes"),
    "unaligned by 4": Case(lambda h: {"output_phy": h.second + 4}, UNALIGNED, "must start at a multiple of 8 bytes"),
    "no address, some bytes": Case({"input_phy": 0}, ADDRESS, "is outside this board's DDR"),
    "no bytes of nothing": Case(lambda h: {"input_phy": h.freed, "input_bytes": 0}, ADDRESS, "is in freed memory"),
    "input of another client": Case(lambda h: {"input_phy": h.foreign}, ADDRESS, "register it first"),
    "output of another client": Case(lambda h: {"output_phy": h.foreign}, ADDRESS, "register it first"),
    "as a client that is not there": Case({"client": CLIENT_COUNT - 1}, ADDRESS, ", not to client 1023;"),
    "as nobody": Case({"client": 0}, ADDRESS, ", not to client 0;"),
    "as client 2^32-1": Case({"client": U32}, ADDRESS, "not to client 4294967295;"),
    "owner that is not there": Case({"owner": CLIENT_COUNT - 1}, 0),
    "owner behind the table": Case({"owner": CLIENT_COUNT}, 0),
    "owner in somebody's memory": Case(
        lambda h: {"owner": (h.mailbox.layout.heap - h.mailbox.layout.clients) // 64}, 0
    ),
    "owner 2^32-1": Case({"owner": U32}, 0),
    "owner is somebody else": Case(lambda h: {"owner": h.other.link.client_id}, 0),
    "unknown command": Case({"cmd": 0x1FFF}, Status.HB_DSP_UNKNOWN_COMMAND, "command 0x1fff"),
    "command 2^32-1": Case({"cmd": U32}, Status.HB_DSP_UNKNOWN_COMMAND, "command 0xffffffff"),
    "listing into another's block": Case(
        lambda h: {"cmd": 0xFFFF, "output_phy": h.foreign}, ADDRESS, "register it first"
    ),
    "ping with nonsense": Case({"cmd": 0, "input_phy": U64, "input_bytes": U64}, 0),
    "priority 256": Case({"priority": 256}, 0),
    "priority 2^16-1": Case({"priority": U16}, 0),
    "smallest customId": Case({"custom_id": -(1 << 63)}, 0),
    "greatest customId": Case({"custom_id": (1 << 63) - 1}, 0),
    "sequence 0": Case({"sequence": 0}, 0),
    "sequence 2^64-1": Case({"sequence": U64}, 0),
    "mask of all cores that could be": Case({"core_mask": U16}, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_record_written_by_hand(hostile: Hostile, name: str) -> None:
    case = CASES[name]
    tables = hostile.live_blocks()
    hostile.post(hostile.request(**(case.fields if isinstance(case.fields, dict) else case.fields(hostile))))
    status, text = hostile.outcome()
    assert (status, case.text in text) == (case.status, True), text
    assert hostile.live_blocks() == tables
    assert hostile.other.link.ddr.view(hostile.foreign, 64) == bytes(64)
    hostile.nobody_was_harmed()


def test_a_mask_of_cores_that_do_not_exist_lies_until_its_writer_goes(world: World) -> None:
    hostile = Hostile(world)
    hostile.write(hostile.request(core_mask=1 << 15))
    hostile.be(State.READY)
    hostile.nobody_was_harmed()
    assert hostile.mailbox.state(hostile.slot) is State.READY
    assert world.ask("status")["oldest_waiting"]["client"] == hostile.link.client_id
    hostile.session.close()
    hostile.other.close()
    world.settle()


def test_announced_and_not_ready(hostile: Hostile) -> None:
    hostile.write(hostile.request())
    hostile.announce()
    hostile.nobody_was_harmed()
    assert hostile.mailbox.state(hostile.slot) is State.EMPTY
    assert hostile.session.link.ddr.view(hostile.own, 1)[0] == 0


def test_ready_and_never_announced_is_found_within_a_beat(hostile: Hostile) -> None:
    hostile.write(hostile.request())
    hostile.be(State.READY)
    assert hostile.outcome()[0] == 0
    hostile.nobody_was_harmed()


def test_every_slot_announced_to_every_core(hostile: Hostile) -> None:
    layout = hostile.mailbox.layout
    for core in range(8):  # also those that the board does not have
        hostile.map[layout.announced(core) : layout.announced(core) + SLOT_COUNT] = b"\1" * SLOT_COUNT
    hostile.announce()
    hostile.nobody_was_harmed()


@pytest.mark.parametrize("byte", [8, 77, 255])
def test_state_out_of_range_is_a_lost_task(hostile: Hostile, byte: int) -> None:
    hostile.be(byte)
    hostile.announce()
    hostile.nobody_was_harmed()
    assert hostile.mailbox.state(hostile.slot) is State.LOST
    assert hostile.world.ask("status")["tasks"] == {"ready": 0, "running": 0}


def test_state_of_a_waited_task_out_of_range_lets_its_caller_go(hostile: Hostile) -> None:
    call = hostile.world.call(1, gate_open=False).start_waiting()
    until(lambda: call.block.view[0], "a running op")
    hostile.be(200, call.slot)
    call.open_gate()
    call.end()  # whatever its status says: nobody waits forever, and nothing raises
    until(lambda: call.runs, "the end of the op")  # which polls the gate in the block that is freed next
    call.let_go()
    hostile.nobody_was_harmed()


@pytest.mark.parametrize("core", [0, 1, 7, 77, -1, -(1 << 31)])
def test_running_that_no_core_runs_is_settled(hostile: Hostile, core: int) -> None:
    """Long over any limit too, by what it says: no core is ended for it."""
    hostile.write(hostile.request())
    ANSWER.pack_into(
        hostile.map, hostile.mailbox.layout.record(hostile.slot) + ANSWER_OFFSET, core, 0, 0, 0, 1, 1, 0, 0
    )
    hostile.be(State.RUNNING)
    status, text = hostile.outcome()
    assert status == Status.HB_DSP_CORE_LOST
    assert text == "No core is running the task, although its slot says so: something other than a core wrote there."
    hostile.nobody_was_harmed()


def test_client_that_goes_and_leaves_a_running_slot_that_no_core_runs_is_forgotten(world: World) -> None:
    hostile = Hostile(world)
    hostile.write(hostile.request())
    ANSWER.pack_into(hostile.map, hostile.mailbox.layout.record(hostile.slot) + ANSWER_OFFSET, 5, 0, 0, 0, 1, 1, 0, 0)
    hostile.be(State.RUNNING)
    hostile.session.close()
    hostile.other.close()
    world.settle()


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.CANCELLED, State.TIMED_OUT, State.LOST])
def test_an_end_written_by_hand_is_its_writers_own(hostile: Hostile, state: State) -> None:
    record = hostile.mailbox.layout.record(hostile.slot)
    ANSWER.pack_into(hostile.map, record + ANSWER_OFFSET, 99, -1, U32, U32, U64, U64, U64, U64)
    hostile.map[record + SLOT_TEXT : record + SLOT_RECORD_BYTES] = b"\xff" * (SLOT_RECORD_BYTES - SLOT_TEXT)
    hostile.be(state)
    hostile.announce()
    assert len(hostile.mailbox.text(hostile.slot)) == SLOT_TEXT_BYTES
    hostile.nobody_was_harmed()
    hostile.be(State.EMPTY)


@pytest.mark.parametrize("state", list(State))
def test_another_clients_free_slot_is_written(hostile: Hostile, state: State) -> None:
    """Its owner's next call in that slot is as good as any."""
    call = hostile.world.call(1)
    assert call.end() == 0
    call.let_go()
    slot = call.slot
    hostile.write(hostile.request(), slot)
    hostile.be(state, slot)
    hostile.announce(slot)
    if state in {State.READY, State.RUNNING}:
        until(lambda: hostile.map[hostile.mailbox.states + slot] >= FIRST_END, "its end")
    hostile.nobody_was_harmed()


def test_another_clients_running_slot_is_emptied(hostile: Hostile) -> None:
    call = hostile.world.call(1, gate_open=False).start_waiting()
    until(lambda: call.block.view[0], "a running op")
    hostile.be(State.EMPTY, call.slot)
    call.open_gate()
    assert call.end() == 0
    call.let_go()
    hostile.nobody_was_harmed()


def test_address_stays_foreign_until_registered_and_after(hostile: Hostile) -> None:
    blocks = hostile.session.blocks
    request = hostile.request(input_phy=hostile.foreign, output_phy=0, output_bytes=0)
    blocks.register(hostile.foreign, 64)
    hostile.post(request)
    assert hostile.outcome()[0] == 0
    blocks.unregister(hostile.foreign)
    hostile.post(request)
    assert hostile.outcome()[0] == ADDRESS
    assert hostile.other.link.ddr.view(hostile.foreign, 1)[0] == 1
    hostile.nobody_was_harmed()


@pytest.mark.parametrize("size", [0, 4096, 1 << 40])
def test_length_of_the_file_is_sealed(hostile: Hostile, size: int) -> None:
    with pytest.raises(OSError, match="Operation not permitted") as caught:
        os.ftruncate(hostile.link.ddr.fd, size)
    assert caught.value.errno == errno.EPERM
    hostile.nobody_was_harmed()


def fill(doorbell: int) -> None:
    """Make a doorbell take no more rings: whoever holds a descriptor of it can."""
    if select.select([doorbell], [], [], 0)[0]:
        os.eventfd_read(doorbell)
    os.eventfd_write(doorbell, FULL)


def test_full_doorbell_of_its_own_keeps_no_core(hostile: Hostile) -> None:
    """A core rings it after a task, and waits for room, until its heart beats."""
    for _ in range(3):
        fill(hostile.link.doorbell)
        hostile.map[hostile.mailbox.layout.client(hostile.link.client_id)] = 1  # it says that it sleeps
        hostile.post(hostile.request())
        assert hostile.outcome()[0] == 0
        hostile.nobody_was_harmed()


def test_full_doorbell_of_a_client_keeps_no_daemon(world: World) -> None:
    """The daemon rings clients when a core has died."""
    hostile = Hostile(world)
    fill(hostile.link.doorbell)
    os.kill(hostile.pids[0], signal.SIGKILL)
    until(lambda: world.core_pid(0) != hostile.pids[0], "another process of core 0")
    assert world.serves() == []
    hostile.close()
    world.settle()


@pytest.mark.parametrize("bells", ["core_doorbells", "urgent_bells"])
def test_full_doorbells_of_the_cores_lose_no_call(hostile: Hostile, bells: str) -> None:
    for bell in getattr(hostile.link, bells):
        fill(bell)
    for priority in (0, 255):
        call = hostile.world.call(priority=priority)
        assert call.end() == 0
        call.let_go()
    hostile.nobody_was_harmed()


def test_client_of_a_session_that_closed_is_nobody(world: World) -> None:
    """What it mapped is still its; the slots are not."""
    hostile = Hostile(world)
    shared = memoryview(hostile.map)
    slot, layout = hostile.slot, hostile.mailbox.layout
    request = hostile.request()
    hostile.session.close()
    world.settle_clients(1 + 1)
    REQUEST.pack_into(shared, layout.record(slot), *request)
    shared[layout.states + slot] = State.READY
    until(lambda: shared[layout.states + slot] >= FIRST_END, "the refusal of a slot that nobody leases")
    assert world.mailbox.answer(slot).result == ADDRESS
    shared[layout.states + slot] = State.EMPTY
    shared.release()
    hostile.other.close()
    world.settle()
