"""The watchdog never mixes up two tasks, nor a task with what somebody wrote by hand: rules without processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from dsp_server.clients import Clients
from dsp_server.lifecycle import events
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.life import STOP_GRACE_SECONDS, Core
from dsp_server.lifecycle.snapshots import Image
from dsp_server.lifecycle.task_ends import TaskReaper
from dsp_server.lifecycle.watchdog import Watchdog
from dsp_server.process.event_loop import Loop
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import CLIENT_GONE, CORE_ACTIVITY, PAGE_BYTES
from hbrt.mailbox.table import ANSWER, ANSWER_OFFSET, REQUEST, Answer, Mailbox, Request, State
from hbrt.status import Status

ASLEEP, RUNNING = 0, 2


class Table(Mailbox):
    """A task table in which a slot is used again while somebody reads it."""

    slips = False

    def put(self, slot: int, state: State, sequence: int, core: int = 0, input_phy: int = 0) -> None:
        """Another task in a slot."""
        REQUEST.pack_into(self.map, self.layout.record(slot), sequence, 0, 0x1000, 0, 0, 1, 1, input_phy, 0, 0, 0)
        ANSWER.pack_into(self.map, self.layout.record(slot) + ANSWER_OFFSET, core, 0, 0, 0, 5, 5, 0, 0)
        self.map[self.states + slot] = state

    def answer(self, slot: int) -> Answer:
        """As it is; then the slot is used again."""
        found = super().answer(slot)
        if self.slips:
            self.put(slot, State.READY, 99)
        return found


CLIENT, MODEL_CORE = 1, 2  # of a board with two DSP cores


@pytest.fixture
def table() -> Iterator[Table]:
    ddr = Ddr.create(1 << 20, 2)
    yield Table(ddr)
    ddr.close()


@pytest.fixture
def reaper(table: Table) -> TaskReaper:
    return TaskReaper(table, Clients(table))


def watchdog(
    table: Table,
    reaper: TaskReaper,
    cores: Sequence[BoardCore] = (),
    handle: Callable[[events.Event], None] = lambda _: None,
) -> Watchdog:
    return Watchdog(table, reaper, list(cores), handle, lambda _: False, Loop(), 0)


def test_a_running_task_is_seen_whole(table: Table, reaper: TaskReaper) -> None:
    table.put(3, State.RUNNING, 7)
    seen = watchdog(table, reaper)._read_running(3)
    assert seen is not None
    assert (seen[0].sequence, seen[1].claim_ns) == (7, 5)


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_one_that_has_ended_is_not_seen(table: Table, reaper: TaskReaper, state: State) -> None:
    table.put(3, state, 7)
    assert watchdog(table, reaper)._read_running(3) is None


def test_a_slot_that_is_used_again_meanwhile_is_not_seen(table: Table, reaper: TaskReaper) -> None:
    table.put(3, State.RUNNING, 7)
    table.slips = True
    assert watchdog(table, reaper)._read_running(3) is None


@pytest.mark.parametrize(
    ("activity", "has_process", "is_phantom"), [(RUNNING, True, False), (ASLEEP, True, True), (RUNNING, False, True)]
)
def test_a_phantom_is_told_by_its_core(
    table: Table,
    reaper: TaskReaper,
    activity: int,
    has_process: bool,  # noqa: FBT001
    is_phantom: bool,  # noqa: FBT001
) -> None:
    table.put(3, State.RUNNING, 7, core=1)
    at = table.layout.core(1) + CORE_ACTIVITY
    table.map[at] = activity
    assert reaper.fail_phantom(3, {1: at} if has_process else {}) is is_phantom
    assert table.state(3) is (State.LOST if is_phantom else State.RUNNING)
    assert not is_phantom or table.answer(3).result == Status.HB_DSP_CORE_LOST


def test_only_the_task_that_was_meant_is_ended(table: Table, reaper: TaskReaper) -> None:
    """Between the look and the lock its owner may have taken it back and queued another one, for another core."""
    table.put(3, State.READY, 7)
    before: Request = table.request(3)
    assert not reaper._fail(3, Status.HB_DSP_NOT_RUNNING, "", sequence=before.sequence + 1)
    assert table.state(3) is State.READY
    assert reaper._fail(3, Status.HB_DSP_NOT_RUNNING, "", sequence=before.sequence)
    assert table.state(3) is State.LOST


@pytest.mark.parametrize("core", [0, MODEL_CORE])
@pytest.mark.parametrize("how", ["released", "gone", ""])
def test_a_run_that_nobody_wants_ends_its_core_when_it_does_not_end(
    table: Table, reaper: TaskReaper, monkeypatch: pytest.MonkeyPatch, core: int, how: str
) -> None:
    """Of a model alone: an op on a DSP core has its own time limit."""
    ddr = table._ddr
    assert isinstance(ddr, Ddr)
    block = ddr.layout.phy_base
    DdrTables(ddr).add(1, block, 64, PAGE_BYTES, CLIENT)
    table.put(3, State.RUNNING, 7, core, input_phy=block)
    ddr.map[ddr.offset_of(block)] = how == "released"
    ddr.map[ddr.layout.client(CLIENT) + CLIENT_GONE] = how == "gone"
    image = Image(Path("image.py"), Path("image.py"), 0.0)
    said: list[events.Event] = []
    monkeypatch.setattr(reaper, "fail_phantom", lambda *_: False)  # the core has no process here
    cores = [BoardCore(index, ddr, Core(image), {}) for index in range(MODEL_CORE + 1)]
    dog = watchdog(table, reaper, cores, said.append)
    dog._poll()
    assert said == []
    for task in dog._unwanted_since:
        dog._unwanted_since[task] -= int((STOP_GRACE_SECONDS + 1) * 1e9)
    dog._poll()
    assert [type(one) for one in said] == ([events.Hangs] if how and core == MODEL_CORE else [])
