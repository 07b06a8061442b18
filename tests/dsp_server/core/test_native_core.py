"""What the core in C decides for itself about an op in C: which blocks it may use, and who answers."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dsp_server import runtime
from dsp_server.core import core_mailbox
from dsp_server.core.fault_log import FaultLog
from dsp_server.core.loop import Core
from dsp_server.core.views import RangeRefused, Views
from dsp_server.hardware import cycles, descriptors
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import CLIENT_ASLEEP, CLIENT_CHECKS, CLIENT_NUMBER, PAGE_BYTES
from hbrt.mailbox.native import native
from hbrt.mailbox.table import REQUEST, Mailbox, State

CLIENT, OTHER, CMD, SLOT = 3, 4, 0x1000, 7
NUMBER = 1030  # of the client's attachment
PAGES = 16
RAN = -9
INTERRUPTED = -3


class CoreInC:
    """A core with one op in C, and four blocks: of the client, shared with it, of another, and freed."""

    def __init__(self) -> None:
        self.ddr = Ddr.create(PAGES * PAGE_BYTES, 1)
        self.base = self.ddr.layout.phy_base
        struct.pack_into("<I", self.ddr.map, self.ddr.layout.client(CLIENT) + CLIENT_NUMBER, NUMBER)
        self.tables = DdrTables(self.ddr)
        for block, (pages, size_bytes, owner) in enumerate(
            [(2, PAGE_BYTES + 100, CLIENT), (1, 64, OTHER), (1, 8, OTHER), (1, 200, CLIENT)], 1
        ):
            self.tables.add(block, self.base + 3 * (block - 1) * PAGE_BYTES, size_bytes, pages * PAGE_BYTES, owner)
        self.tables.set_owner(2, OTHER, (CLIENT,))
        self.tables.remove(4, PAGE_BYTES, CLIENT, "here.py:1")
        self.mailbox = Mailbox(self.ddr)
        self.bells = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(3)]
        self.control, self.peer = socket.socketpair()
        self.core = Core(
            0,
            self.ddr,
            self.bells[:1],
            self.control.fileno(),
            lambda: False,
            {NUMBER: self.bells[2]},
            FaultLog(lambda _: None),
        )
        self.blocks: list[tuple[int, int]] = []
        self.result = 0
        module = native()
        self.ffi, self.lib = module.ffi, module.lib
        self.is_core = bytearray(b"\1")
        self._call = self.ffi.callback("hbrt_call", self.call)
        self.lib.hbrt_core_calls(self.core.mailbox.core, self._call, self.ffi.from_buffer(self.is_core))
        self.lib.hbrt_core_op(self.core.mailbox.core, CMD, self.ffi.cast("void *", 1))
        self.lib.hbrt_core_client(self.core.mailbox.core, CLIENT, NUMBER, self.bells[2])

    def call(self, _code: Any, input: Any, output: Any, *given: Any) -> int:
        *_, result, spent = given
        self.blocks.append((int(self.ffi.cast("uintptr_t", input)), int(self.ffi.cast("uintptr_t", output))))
        result[0], spent[0] = self.result, 11
        self.lib.hbrt_core_interrupt(self.core.mailbox.core)  # else it would wait for the next task
        return 0

    def next(self, *blocks: int, client: int = CLIENT) -> int:
        """Submit a task, and have C serve: what it answers."""
        self.submit(SLOT, *blocks, client=client)
        self.blocks.clear()
        return self.serve()

    def submit(self, slot: int, *blocks: int, client: int = CLIENT) -> None:
        REQUEST.pack_into(self.ddr.map, self.ddr.layout.record(slot), 1, 0, CMD, 0, 0, CLIENT, client, *blocks)
        self.ddr.map[self.ddr.layout.states + slot] = State.READY
        self.ddr.map[self.ddr.layout.announced(0) + slot] = 1

    def serve(self) -> int:
        found: int = self.lib.hbrt_core_next(self.core.mailbox.core)
        return found

    def close(self) -> None:
        for fd in self.bells:
            os.close(fd)
        self.control.close()
        self.peer.close()
        self.core.close()
        self.ddr.close()


@pytest.fixture
def on_one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_mailbox, "usable_cpus", lambda: 1)


@pytest.fixture
def in_c_core(monkeypatch: pytest.MonkeyPatch) -> Iterator[CoreInC]:
    monkeypatch.setattr(runtime, "context", runtime.CoreContext())
    counter, idma = cycles.current(), descriptors.current()
    core = CoreInC()
    yield core
    core.close()
    cycles.install(counter)
    descriptors.install(idma)


NEAR = st.builds(lambda page, by: page * PAGE_BYTES + by, st.integers(-1, PAGES), st.integers(-16, 216))
SIZES = st.one_of(st.integers(0, 2 * PAGE_BYTES), st.sampled_from([8, 64, 65, 100, 2**63, 2**64 - 1]))
CLIENTS = st.sampled_from([CLIENT, CLIENT, OTHER, 0, 1024, 2**32 - 1])


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=NEAR, size_bytes=SIZES, client=CLIENTS, is_output=st.booleans())
def test_c_serves_the_blocks_that_python_grants(
    in_c_core: CoreInC, at: int, size_bytes: int, client: int, *, is_output: bool
) -> None:
    phy = in_c_core.base + at
    blocks = (0, 0, phy, size_bytes) if is_output else (phy, size_bytes, 0, 0)
    found = in_c_core.next(*blocks, client=client)
    try:
        granted = Views(in_c_core.ddr).get(phy, size_bytes, client)
    except RangeRefused:
        granted = None
    # What C leaves to Python is a little more: a block of no bytes, and clients that cannot be.
    is_served = granted is not None and size_bytes > 0 and 0 < client < 1024
    assert (found, bool(in_c_core.blocks)) == ((INTERRUPTED, True) if is_served else (SLOT, False))
    if is_served:
        address = in_c_core.ddr.address + phy - in_c_core.ddr.layout.ddr_base
        assert in_c_core.blocks == [(0, address) if is_output else (address, 0)]


def test_task_that_is_checked_is_pythons(in_c_core: CoreInC) -> None:
    in_c_core.ddr.map[in_c_core.ddr.layout.client(CLIENT) + CLIENT_CHECKS] = 1
    assert in_c_core.next(0, 0, 0, 0) == SLOT
    assert not in_c_core.blocks


def test_answer_of_an_op_in_c_is_counted_and_rings_a_sleeper(in_c_core: CoreInC) -> None:
    in_c_core.ddr.map[in_c_core.ddr.layout.client(CLIENT) + CLIENT_ASLEEP] = 1
    assert in_c_core.next(0, 0, 0, 0) == INTERRUPTED
    answer = in_c_core.mailbox.answer(SLOT)
    assert in_c_core.mailbox.state(SLOT) is State.DONE
    assert (answer.core, answer.result, answer.cycles) == (0, 0, 11)
    assert 0 < answer.claim_ns <= answer.start_ns <= answer.done_ns
    assert os.eventfd_read(in_c_core.bells[2]) == 1
    assert in_c_core.lib.hbrt_core_cycles(in_c_core.core.mailbox.core) == 11
    assert in_c_core.lib.hbrt_core_running(in_c_core.core.mailbox.core) < 0


@pytest.mark.usefixtures("on_one_cpu")
def test_on_one_cpu_an_owner_does_not_wait_for_an_op_that_hangs_later(in_c_core: CoreInC) -> None:
    in_c_core.ddr.map[in_c_core.ddr.layout.client(CLIENT) + CLIENT_ASLEEP] = 1
    for slot in (SLOT, SLOT + 1):
        in_c_core.submit(slot, 0, 0, 0, 0)
    assert in_c_core.serve() == INTERRUPTED
    # The next op has not begun, and may be the one that does not end: the heartbeat is to ring.
    assert CLIENT in in_c_core.core.mailbox.take_unrung()


@pytest.mark.parametrize("why", ["result", "fork"])
def test_op_in_c_that_fails_or_forks_is_pythons_to_answer(in_c_core: CoreInC, why: str) -> None:
    if why == "result":
        in_c_core.result = -42
    else:
        in_c_core.is_core[0] = 0
    assert in_c_core.next(0, 0, 0, 0) == RAN
    assert in_c_core.mailbox.state(SLOT) is State.RUNNING
    assert in_c_core.lib.hbrt_core_running(in_c_core.core.mailbox.core) == SLOT
    assert in_c_core.lib.hbrt_core_adopt(in_c_core.core.mailbox.core) == SLOT
    assert in_c_core.lib.hbrt_core_running(in_c_core.core.mailbox.core) < 0
