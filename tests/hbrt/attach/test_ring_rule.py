"""Whom a submitter rings: tasks and the relay have the rule unrolled, hbrt.mailbox.schedule has it in words."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dsp_server.relay.dispatch import RelayDispatcher, Result
from hbrt.attach.tasks import Tasks
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CORE_ACTIVITY, SLOT_COUNT
from hbrt.mailbox.schedule import (
    ASLEEP,
    LOOKING,
    PRIORITY_PREEMPT,
    PRIORITY_URGENT,
    RUNNING,
    cores_to_wake,
    eligible_cores,
)
from hbrt.mailbox.table import REQUEST, Mailbox, State
from hbrt.protocol.relay import SUBMIT, SUBMIT_HEAD
from hbrt.status import Status

OFFLINE = 3
ACTIVITIES = (ASLEEP, LOOKING, RUNNING, OFFLINE)
CLIENT = 5


class FakeLink:
    """An attachment to a board that has no daemon and no cores: its memory is real, and so are its bells."""

    def __init__(self, core_count: int) -> None:
        self.core_count = core_count
        self.ddr = Ddr.create(1 << 16, core_count)
        self.mailbox = Mailbox(self.ddr)
        self.client_id = CLIENT
        self.first_slots = list(range(16))
        self.fault = 0
        self.lease, self.peer = socket.socketpair()
        self.doorbell, *bells = (os.eventfd(0, os.EFD_NONBLOCK) for _ in range(1 + 2 * core_count))
        self.core_doorbells, self.urgent_bells = bells[:core_count], bells[core_count:]

    def rung(self, bells: list[int]) -> tuple[int, ...]:
        """Cores whose bells were rung, once each, since the last look."""
        found = []
        for core, bell in enumerate(bells):
            try:
                count = os.eventfd_read(bell)
            except BlockingIOError:
                continue
            assert count == 1
            found.append(core)
        return tuple(found)

    def close(self) -> None:
        self.lease.close()
        self.peer.close()
        self.ddr.close()
        for bell in (self.doorbell, *self.core_doorbells, *self.urgent_bells):
            os.close(bell)


@pytest.fixture(params=[1, 2, 3])
def link(request: pytest.FixtureRequest) -> Iterator[FakeLink]:
    link = FakeLink(request.param)
    yield link
    link.close()


@pytest.mark.parametrize("priority", [0, PRIORITY_URGENT - 1, PRIORITY_URGENT, PRIORITY_PREEMPT])
def test_submitter_rings_as_the_schedule_says(link: FakeLink, priority: int) -> None:
    tasks = Tasks(link)  # type: ignore[arg-type]
    cores = link.core_count
    states = link.ddr.layout.states
    for mask, activity in itertools.product(range(1 << cores), itertools.product(ACTIVITIES, repeat=cores)):
        for core, doing in enumerate(activity):
            link.ddr.map[link.ddr.layout.core(core) + CORE_ACTIVITY] = doing
            announced = link.ddr.layout.announced(core)
            link.ddr.map[announced : announced + SLOT_COUNT] = bytes(SLOT_COUNT)
        handle = tasks.submit(0x1000, priority, mask, 0, 0, 0, 0, 0)
        rung, urgent = link.rung(link.core_doorbells), link.rung(link.urgent_bells)
        eligible = [activity[core] for core in eligible_cores(mask, cores)]
        assert rung == cores_to_wake(mask, activity), (mask, activity)
        if all(doing == OFFLINE for doing in eligible):
            assert handle == Status.HB_DSP_NOT_RUNNING
            assert tasks.why().startswith("None of the cores that may run the task is running")
            assert link.mailbox.slots_in(State.READY) == []
            continue
        assert handle > 0
        is_preempting = priority >= PRIORITY_URGENT and set(eligible) <= {RUNNING, OFFLINE}
        assert urgent == (eligible_cores(mask, cores) if is_preempting else ())
        (slot,) = link.mailbox.slots_in(State.READY)
        told = [core for core in range(cores) if link.ddr.map[link.ddr.layout.announced(core) + slot]]
        assert told == list(eligible_cores(mask, cores))
        assert tasks.release(handle) == 0
        assert link.ddr.map[states + slot] == State.EMPTY
    tasks.close()


@pytest.mark.parametrize("priority", [0, PRIORITY_URGENT - 1, PRIORITY_URGENT, PRIORITY_PREEMPT])
def test_relay_rings_as_the_schedule_says(link: FakeLink, priority: int) -> None:
    peers: Any = {3: SimpleNamespace(client=CLIENT, last_slot=0)}
    dispatcher, cores, slot = RelayDispatcher(link, peers, lambda: False), link.core_count, 7  # type: ignore[arg-type]
    layout, mm = link.ddr.layout, link.ddr.map
    for mask, activity in itertools.product(range(1 << cores), itertools.product(ACTIVITIES, repeat=cores)):
        for core, doing in enumerate(activity):
            mm[layout.core(core) + CORE_ACTIVITY] = doing
            mm[layout.announced(core) + slot] = 0
        request = (1, 0, 0x1000, priority, mask, CLIENT, CLIENT, 0, 0, 0, 0)
        REQUEST.pack_into(mm, layout.record(slot), *request)
        mm[layout.states + slot] = State.SENT
        result = dispatcher.dispatch(SUBMIT.pack(SUBMIT_HEAD, 3, slot, *request))
        eligible = [activity[core] for core in eligible_cores(mask, cores)]
        assert link.rung(link.core_doorbells) == cores_to_wake(mask, activity), (mask, activity)
        is_preempting = priority >= PRIORITY_URGENT and set(eligible) <= {RUNNING, OFFLINE} and RUNNING in eligible
        assert link.rung(link.urgent_bells) == (eligible_cores(mask, cores) if is_preempting else ())
        told = [core for core in range(cores) if mm[layout.announced(core) + slot]]
        if all(doing == OFFLINE for doing in eligible):
            assert (result, link.mailbox.state(slot), told) == (Result.REFUSED, State.FAILED, [])
            assert link.mailbox.answer(slot).result == Status.HB_DSP_NOT_RUNNING
        else:
            assert (result, link.mailbox.state(slot)) == (Result.QUEUED, State.READY)
            assert told == list(eligible_cores(mask, cores))


def test_request_is_in_the_slot_before_anybody_is_told(link: FakeLink) -> None:
    tasks = Tasks(link)  # type: ignore[arg-type]
    handle = tasks.submit(0x1234, 200, 1, -7, 0, 0, 0, 0)
    (slot,) = link.mailbox.slots_in(State.READY)
    request = link.mailbox.request(slot)
    assert (request.cmd, request.priority, request.core_mask, request.custom_id) == (0x1234, 200, 1, -7)
    assert (request.owner, request.client) == (CLIENT, CLIENT)
    second = tasks.submit(0x1234, 200, 1, -7, 0, 0, 0, 0)
    sequences = [link.mailbox.request(slot).sequence for slot in link.mailbox.slots_in(State.READY)]
    assert len(set(sequences)) == 2
    for released in (handle, second):
        tasks.release(released)
    tasks.close()
