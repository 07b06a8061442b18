"""Client ids and task slots: who gets which, and what becomes of the tasks of one who goes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from dsp_server.clients import FIRST_SLOTS, MAX_SLOTS, Client, Clients, NoRoomError
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CLIENT_COUNT, CLIENT_PID, SLOT_COUNT
from hbrt.mailbox.table import REQUEST, Mailbox, State


class Table:
    """A task table in a real DDR file, and the clients of it."""

    def __init__(self) -> None:
        self.ddr = Ddr.create(1 << 20, 2)
        self.mailbox = Mailbox(self.ddr)
        self.clients = Clients(self.mailbox)

    def put(self, slot: int, state: State, *, client: int = 1, sequence: int = 1) -> None:
        """A task in a slot, as its owner and a core would have left it."""
        request = (sequence, 0, 0x1000, 0, 0, client, client, 0, 0, 0, 0)
        REQUEST.pack_into(self.ddr.map, self.ddr.layout.record(slot), *request)
        self.ddr.map[self.ddr.layout.states + slot] = state

    def state(self, slot: int) -> State:
        return self.mailbox.state(slot)


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table()
    yield table
    for client in list(table.clients.by_id.values()):
        table.clients.discard(client)
    table.ddr.close()


def test_attached_client_has_id_token_doorbell_slots_and_a_record(table: Table) -> None:
    one, two = table.clients.attach(4711, "one"), table.clients.attach(4712, "two")
    assert (one.id, two.id) == (1, 2)
    assert one.token != two.token
    assert len(one.slots) == len(two.slots) == FIRST_SLOTS
    assert not set(one.slots) & set(two.slots)
    record = table.ddr.layout.client(two.id)
    assert int.from_bytes(table.ddr.map[record + CLIENT_PID : record + CLIENT_PID + 4], "little") == 4712
    table.clients.ring(two.id)
    assert os.eventfd_read(two.doorbell) == 1
    table.clients.ring(77)  # nobody: nothing happens


def test_id_that_was_used_longest_ago_is_used_next(table: Table) -> None:
    first = table.clients.attach(1, "a")
    table.clients.discard(first)
    ids = [table.clients.attach(1, "a").id for _ in range(3)]
    assert ids == [2, 3, 4]


def test_every_id_can_be_attached_at_once_and_one_more_is_refused(table: Table) -> None:
    clients = [table.clients.attach(1, "a") for _ in range(CLIENT_COUNT - 1)]
    assert all(client.slots for client in clients)
    slots = [slot for client in clients for slot in client.slots]
    assert len(set(slots)) == len(slots) <= SLOT_COUNT
    with pytest.raises(NoRoomError, match="already has 1023 clients"):
        table.clients.attach(1, "a")
    table.clients.reclaim_tasks(clients[0])
    table.clients.discard(clients[0])
    assert table.clients.attach(1, "a").id == clients[0].id


def test_one_client_cannot_take_every_slot(table: Table) -> None:
    greedy = table.clients.attach(1, "greedy")
    while len(greedy.slots) < MAX_SLOTS:
        table.clients.lease_slots(greedy, 64)
    with pytest.raises(NoRoomError, match=f"Client 1 holds {MAX_SLOTS} task slots .the maximum is {MAX_SLOTS}."):
        table.clients.lease_slots(greedy, 1)
    others = [table.clients.attach(1, "greedy") for _ in range(4)]
    for other in others:
        with contextlib.suppress(NoRoomError):
            table.clients.lease_slots(other, MAX_SLOTS)
    with pytest.raises(NoRoomError, match=f"the board has 0 of {SLOT_COUNT} left"):
        table.clients.lease_slots(others[-1], 1)
    assert len(table.clients.attach(1, "late").slots) == 1


def test_withdraw_cancels_the_queued_empties_the_ended_and_waits_for_the_running(table: Table) -> None:
    client = table.clients.attach(1, "a")
    queued, running, done, failed, senseless, *_ = client.slots
    for slot, state in ((queued, State.READY), (running, State.RUNNING), (done, State.DONE), (failed, State.FAILED)):
        table.put(slot, state)
    table.ddr.map[table.ddr.layout.states + senseless] = 99
    assert not table.clients.reclaim_tasks(client)
    assert client.slots == [running]
    assert [table.state(slot) for slot in (queued, done, failed, senseless)] == [State.EMPTY] * 4
    assert table.state(running) is State.RUNNING
    table.put(running, State.DONE)
    assert table.clients.reclaim_tasks(client)
    assert client.slots == []
    assert table.state(running) is State.EMPTY
    table.clients.discard(client)
    assert sorted(table.clients.attach(1, "b").slots) == sorted([queued, running, done, failed, senseless, *_])


def test_slots_of_one_who_went_are_not_leased_while_a_core_writes_them(table: Table) -> None:
    client = table.clients.attach(1, "a")
    running = client.slots[3]
    table.put(running, State.RUNNING)
    table.clients.reclaim_tasks(client)
    others: list[Client] = []
    while len(others) < 50:
        others.append(table.clients.attach(1, "b"))
    assert running not in {slot for other in others for slot in other.slots}


def test_running_tasks_are_those_that_may_use_a_clients_memory(table: Table) -> None:
    one, two = table.clients.attach(1, "one"), table.clients.attach(2, "two")
    own, queued, disguised = one.slots[:3]
    table.put(own, State.RUNNING, client=one.id, sequence=11)
    table.put(queued, State.READY, client=one.id, sequence=12)
    table.put(disguised, State.RUNNING, client=two.id, sequence=13)  # its writer says that it is for another
    assert table.clients.running_tasks(one.id) == {(own, 11), (disguised, 13)}
    assert table.clients.running_tasks(two.id) == {(disguised, 13)}
    assert table.clients.is_running((own, 11))
    assert not table.clients.is_running((own, 10))
    table.put(own, State.DONE, client=one.id, sequence=11)
    assert not table.clients.is_running((own, 11))
