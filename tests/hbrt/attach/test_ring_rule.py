"""Whom a program, the relay and a core ring, in C: each mask and activity, against the rule in words."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dsp_server.core.core_mailbox import CoreMailbox
from dsp_server.relay.dispatch import RelayDispatcher, Result
from hbrt.attach.tasks import Tasks
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import CORE_ACTIVITY, SLOT_COUNT
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.schedule import (
    ASLEEP,
    LOOKING,
    PRIORITY_PREEMPT,
    PRIORITY_URGENT,
    RUNNING,
    may_run,
)
from hbrt.mailbox.table import REQUEST, Mailbox, State
from hbrt.protocol.relay import SUBMIT, SUBMIT_HEAD
from hbrt.status import Status
from tests.wake_rule import core_to_chain, cores_to_wake

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


class Setting:
    """Each mask with each activity of the cores, and what was rung and announced for a task."""

    def __init__(self, link: FakeLink, mask: int, activity: tuple[int, ...]) -> None:
        self.link, self.mask, self.activity, layout = link, mask, activity, link.ddr.layout
        for core, doing in enumerate(activity):
            link.ddr.map[layout.core(core) + CORE_ACTIVITY] = doing
            announced = layout.announced(core)
            link.ddr.map[announced : announced + SLOT_COUNT] = bytes(SLOT_COUNT)
        self.eligible = tuple(core for core in range(link.core_count) if may_run(core, mask))
        self.doing = {activity[core] for core in self.eligible}

    def is_unserved(self, slot: int, priority: int) -> bool:
        """Check who was rung; returns whether nobody was told, as all cores that may run the task are offline."""
        link, layout = self.link, self.link.ddr.layout
        assert link.rung(link.core_doorbells) == cores_to_wake(self.mask, self.activity), self.activity
        is_preempting = priority >= PRIORITY_URGENT and self.doing <= {RUNNING, OFFLINE} and RUNNING in self.doing
        assert link.rung(link.urgent_bells) == (self.eligible if is_preempting else ())
        told = [core for core in range(link.core_count) if link.ddr.map[layout.announced(core) + slot]]
        if self.doing <= {OFFLINE}:
            return True
        assert told == list(self.eligible)
        return False


def settings_of(link: FakeLink) -> Iterator[Setting]:
    cores = link.core_count
    for mask, activity in itertools.product(range(1 << cores), itertools.product(ACTIVITIES, repeat=cores)):
        yield Setting(link, mask, activity)


@pytest.mark.parametrize("priority", [0, PRIORITY_URGENT - 1, PRIORITY_URGENT, PRIORITY_PREEMPT])
def test_submitter_rings_by_the_rule(link: FakeLink, priority: int) -> None:
    tasks = Tasks(link)  # type: ignore[arg-type]
    for setting in settings_of(link):
        handle = tasks.submit(0x1000, priority, setting.mask, 0, 0, 0, 0, 0)
        slot = handle & SLOT_MASK
        if setting.is_unserved(slot, priority):
            assert handle == Status.HB_DSP_NOT_RUNNING
            assert tasks.why().startswith("None of the cores that may run the task is running")
            assert link.mailbox.slots_in(State.READY) == []
            continue
        assert link.mailbox.slots_in(State.READY) == [slot]
        assert tasks.release(handle) == 0
        assert link.mailbox.state(slot) is State.EMPTY
    tasks.close()


@pytest.mark.parametrize("priority", [0, PRIORITY_URGENT - 1, PRIORITY_URGENT, PRIORITY_PREEMPT])
def test_relay_rings_by_the_rule(link: FakeLink, priority: int) -> None:
    peers: Any = {3: SimpleNamespace(client=CLIENT, last_slot=0)}
    dispatcher, slot = RelayDispatcher(link, peers, lambda: False), 7  # type: ignore[arg-type]
    for setting in settings_of(link):
        request = (1, 0, 0x1000, priority, setting.mask, CLIENT, CLIENT, 0, 0, 0, 0)
        REQUEST.pack_into(link.ddr.map, link.ddr.layout.record(slot), *request)
        link.ddr.map[link.ddr.layout.states + slot] = State.SENT
        result = dispatcher.dispatch(SUBMIT.pack(SUBMIT_HEAD, 3, slot, *request))
        if setting.is_unserved(slot, priority):
            assert (result, link.mailbox.state(slot)) == (Result.REFUSED, State.FAILED)
            assert link.mailbox.answer(slot).result == Status.HB_DSP_NOT_RUNNING
        else:
            assert (result, link.mailbox.state(slot)) == (Result.QUEUED, State.READY)


@pytest.mark.parametrize("claimer", [0, 1])
def test_core_that_claimed_rings_by_the_rule(link: FakeLink, claimer: int) -> None:
    if claimer >= link.core_count:
        return
    layout, mm = link.ddr.layout, link.ddr.map
    masks = [mask for mask in range(1 << link.core_count) if may_run(claimer, mask)]
    for left in itertools.product(masks, repeat=2):
        for activity in itertools.product(ACTIVITIES, repeat=link.core_count):
            for slot, mask in enumerate((1 << claimer, *left)):
                REQUEST.pack_into(mm, layout.record(slot), slot, 0, 0x1000, 0, mask, CLIENT, CLIENT, 0, 0, 0, 0)
                mm[layout.states + slot] = State.READY
                mm[layout.announced(claimer) + slot] = 1
            for core, doing in enumerate(activity):
                mm[layout.core(core) + CORE_ACTIVITY] = doing
            mailbox = CoreMailbox(claimer, link.ddr, link.core_doorbells, link.lease.fileno(), lambda: False, {})
            assert mailbox.claim() == 0
            rung = core_to_chain(claimer, left, activity)
            assert link.rung(link.core_doorbells) == (() if rung is None else (rung,)), (left, activity)
            mailbox.close()


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
