"""What a core claims and what it leaves, step by step, on a task table of the test's own; no process, no supervisor."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from dsp_server import runtime
from dsp_server.core.fault_log import FaultLog
from dsp_server.core.loop import Core
from dsp_server.hardware import cycles, descriptors
from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import CLIENT_ASLEEP, CLIENT_NUMBER, CORE_ACTIVITY, CORE_TASKS, PAGE_BYTES
from hbrt.mailbox.schedule import ASLEEP, LOOKING, RUNNING
from hbrt.mailbox.table import REQUEST, Mailbox, State
from hbrt.status import Status

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

CLIENT, NUMBER = 3, 1030  # of its attachment
GOOD, BAD, RAISES, LEAVES_TCM = range(0x1000, 0x1004)


def good(input: memoryview, output: memoryview, tm: object) -> int:
    output[: len(input)] = input
    return 0


def bad(input: memoryview, output: memoryview, tm: object) -> int:
    return -42


def raises(input: memoryview, output: memoryview, tm: object) -> int:
    raise KeyError("no such plane")


def leaves_tcm(input: memoryview, output: memoryview, tm: object) -> int:
    from dsp_server import xvAllocateBuffer

    xvAllocateBuffer(tm, 1000, 0, 64)  # type: ignore[arg-type]
    return 0


class Bench:
    """A core of two on a real DDR file, a client, and its block of 256 bytes."""

    def __init__(self) -> None:
        self.ddr = Ddr.create(8 * PAGE_BYTES, 2)
        self.mailbox = Mailbox(self.ddr)
        struct.pack_into("<I", self.ddr.map, self.ddr.layout.client(CLIENT) + CLIENT_NUMBER, NUMBER)
        self.block = self.ddr.layout.phy_base
        DdrTables(self.ddr).add(1, self.block, 256, PAGE_BYTES, CLIENT)
        self.bells = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(3)]
        self.client_bell = os.eventfd(0, os.EFD_NONBLOCK)
        self.control, self.peer = socket.socketpair()
        for cmd, op in ((GOOD, good), (BAD, bad), (RAISES, raises), (LEAVES_TCM, leaves_tcm)):
            runtime.context.registry.register(cmd, op)
        self.core = Core(
            0,
            self.ddr,
            self.bells[:2],
            self.control.fileno(),
            lambda: False,
            {NUMBER: self.client_bell},
            FaultLog(lambda _: None),
        )
        self.sequence = 0

    def submit(
        self, slot: int, cmd: int = GOOD, priority: int = 0, custom_id: int = 0, mask: int = 0, size_bytes: int = 8
    ) -> int:
        self.sequence += 1
        request = (self.sequence, custom_id, cmd, priority, mask, CLIENT, CLIENT, self.block, size_bytes)
        output = (self.block + 128, size_bytes)
        REQUEST.pack_into(self.ddr.map, self.ddr.layout.record(slot), *request, *output)
        self.set_state(slot, State.READY)
        for core in range(2):
            if mask == 0 or mask >> core & 1:
                self.ddr.map[self.ddr.layout.announced(core) + slot] = 1
        return slot

    def set_state(self, slot: int, state: State) -> None:
        self.ddr.map[self.ddr.layout.states + slot] = state

    def activity(self, core: int, doing: int | None = None) -> int:
        at = self.ddr.layout.core(core) + CORE_ACTIVITY
        if doing is not None:
            self.ddr.map[at] = doing
        return self.ddr.map[at]

    def claim_all(self) -> list[int]:
        claimed = []
        while (slot := self.core.mailbox.claim()) >= 0:
            claimed.append(slot)
        return claimed

    def run(self, slot: int) -> tuple[State, int, str]:
        assert self.core.mailbox.claim() == slot
        self.core.run(slot)
        return self.mailbox.state(slot), self.mailbox.answer(slot).result, self.mailbox.text(slot)

    def is_rung(self, bell: int) -> bool:
        try:
            os.eventfd_read(bell)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        for fd in (*self.bells, self.client_bell):
            os.close(fd)
        self.control.close()
        self.peer.close()
        self.core.close()
        self.ddr.close()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(runtime, "context", runtime.CoreContext())
    counter, idma = cycles.current(), descriptors.current()
    bench = Bench()
    yield bench
    bench.close()
    cycles.install(counter)
    descriptors.install(idma)


def test_claim_clears_what_an_earlier_task_left_in_the_slot(bench: Bench) -> None:
    earlier = bench.mailbox.answer(1)._replace(has_work=1, claim_ns=1, start_ns=2, done_ns=3, cycles=4)
    bench.mailbox.write_answer(1, earlier, "")
    bench.submit(1)
    assert bench.core.mailbox.claim() == 1
    answer = bench.mailbox.answer(1)
    assert answer.claim_ns > 1
    assert (answer.has_work, answer.start_ns, answer.done_ns, answer.cycles) == (0, 0, 0, 0)


def test_task_for_another_core_is_left(bench: Bench) -> None:
    bench.submit(1, mask=2)
    bench.submit(2, mask=1)
    bench.submit(3, mask=3)
    assert bench.claim_all() == [2, 3]
    assert bench.mailbox.state(1) is State.READY


@pytest.mark.parametrize("is_collected", [False, True])
def test_hint_of_an_earlier_task_brings_none_that_is_for_another_core(
    bench: Bench,
    is_collected: bool,  # noqa: FBT001
) -> None:
    bench.submit(1)  # for any core: the other one runs it, and its owner uses the slot again
    if is_collected:
        bench.core.mailbox.best_rank()
    bench.submit(1, mask=2)
    assert bench.claim_all() == []
    assert bench.mailbox.state(1) is State.READY


def test_only_an_urgent_task_interrupts(bench: Bench) -> None:
    bench.submit(1, priority=255)
    bench.submit(2, priority=254)
    bench.core.mailbox.best_rank()
    bench.set_state(1, State.CANCELLED)
    assert bench.core.mailbox.claim(255) < 0
    assert bench.claim_all() == [2]


def test_time_of_an_interruption_counts_once(bench: Bench) -> None:
    def interrupted(input: memoryview, output: memoryview, tm: object) -> int:
        bench.submit(2, priority=255)
        bench.core.preemption.preempt()
        return 0

    runtime.context.registry.register(0x1004, interrupted)
    assert bench.run(bench.submit(1, 0x1004))[0] is State.DONE
    inside, around = bench.mailbox.answer(2), bench.mailbox.answer(1)
    assert around.start_ns <= inside.start_ns <= inside.done_ns <= around.done_ns
    at = bench.ddr.layout.core(0) + CORE_TASKS
    tasks, busy_ns = struct.unpack_from("<QQ", bench.ddr.map, at)
    assert (tasks, busy_ns) == (2, around.done_ns - around.start_ns)


@pytest.mark.parametrize("state", [State.RUNNING, State.CANCELLED, State.EMPTY, State.DONE])
def test_task_that_somebody_else_moved_meanwhile_is_left(bench: Bench, state: State) -> None:
    bench.submit(1)
    bench.core.mailbox.best_rank()
    bench.set_state(1, state)
    assert bench.claim_all() == []
    assert bench.mailbox.state(1) is state


def test_slot_that_is_used_again_is_claimed_once_and_in_its_new_place(bench: Bench) -> None:
    bench.submit(1, priority=5)
    bench.submit(2, priority=3)
    bench.core.mailbox.best_rank()  # and then the owner cancels 1 and submits anew
    bench.submit(1, priority=0)
    assert bench.claim_all() == [2, 1]


def test_task_whose_hint_was_lost_is_found_by_its_state(bench: Bench) -> None:
    for slot, mask in ((1, 0), (2, 1), (3, 2)):
        bench.submit(slot, mask=mask)
        for core in range(2):
            bench.ddr.map[bench.ddr.layout.announced(core) + slot] = 0
    assert bench.claim_all() == []
    bench.core.mailbox.announce_all()
    assert bench.claim_all() == [1, 2]


def test_hint_of_a_task_that_is_not_there_is_harmless(bench: Bench) -> None:
    for slot in (0, 7, 4095):
        bench.ddr.map[bench.ddr.layout.announced(0) + slot] = 1
    assert bench.claim_all() == []
    assert bench.ddr.map.find(b"\1", bench.ddr.layout.announced(0), bench.ddr.layout.announced(1)) < 0


@pytest.mark.parametrize(
    ("mask", "other", "is_rung"),
    # A task for the other core alone is not seen here: who submitted it has seen that core asleep, and rung.
    [(0, ASLEEP, True), (2, ASLEEP, False), (1, ASLEEP, False), (0, LOOKING, False), (0, RUNNING, False)],
)
def test_core_that_is_busy_now_wakes_a_sleeper_for_what_it_leaves(
    bench: Bench, mask: int, other: int, *, is_rung: bool
) -> None:
    bench.activity(1, other)
    bench.submit(1, priority=9, mask=1)
    bench.submit(2, mask=mask)
    assert bench.core.mailbox.claim() == 1
    assert bench.activity(0) == RUNNING
    assert bench.is_rung(bench.bells[1]) == is_rung


def test_answer_of_a_good_op(bench: Bench) -> None:
    bench.ddr.view(bench.block, 8)[:] = b"question"
    bench.submit(4)
    assert bench.run(4) == (State.DONE, 0, "")
    assert bytes(bench.ddr.view(bench.block + 128, 8)) == b"question"
    answer = bench.mailbox.answer(4)
    assert answer.claim_ns <= answer.start_ns <= answer.done_ns
    assert bench.activity(0) == LOOKING


def test_answers_of_ops_that_fail_and_the_core_goes_on(bench: Bench) -> None:
    for slot, cmd in enumerate((BAD, RAISES, 0x2000)):
        bench.submit(slot, cmd)
    state, result, text = bench.run(0)
    assert (state, result) == (State.FAILED, -42)
    assert text == "bad (command 0x1001) returned -42."
    state, result, text = bench.run(1)
    assert (state, result) == (State.FAILED, Status.HB_DSP_RUN_TASK_FAILED)
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("KeyError: 'no such plane'")
    assert "in raises" in text
    state, result, text = bench.run(2)
    assert (state, result) == (State.FAILED, Status.HB_DSP_UNKNOWN_COMMAND)
    assert text == (
        "No op is registered for command 0x2000. The image registered 4 ops; the nearest are 0x1001 bad, "
        "0x1002 raises, 0x1003 leaves_tcm. 'hbrt ops' (board.ops() in Python) lists all."
    )
    bench.submit(5)
    assert bench.run(5)[0] is State.DONE


@pytest.mark.parametrize(("cmd", "macro"), [(0x400, "NN"), (0xFFF, "CV"), (0x2000, None)])
def test_who_left_out_a_macro_s_parentheses_is_told(bench: Bench, cmd: int, macro: str | None) -> None:
    said = f" To register the packaged ops, call HB_DSP_REGISTER_{macro}_ALL() in main(), with parentheses."
    bench.submit(0, cmd)
    assert bench.run(0)[2].endswith(said) == (macro is not None)
    for number in (0x401, 0x800):
        runtime.context.registry.register_lazy(number, "packaged", "dsp_server.ops.nn.softmax:hb_dsp_softmax")
    bench.submit(1, cmd)
    assert "parentheses" not in bench.run(1)[2]


def test_ranges_are_looked_at_again_by_the_core(bench: Bench) -> None:
    bench.submit(1, size_bytes=257)
    state, result, text = bench.run(1)
    assert (state, result) == (State.FAILED, Status.HB_DSP_INVALID_ADDRESS)
    assert "runs 1 byte past the end of its block" in text
    DdrTables(bench.ddr).set_owner(1, CLIENT + 1, ())
    bench.submit(2)
    assert bench.run(2)[1] == Status.HB_DSP_INVALID_ADDRESS
    DdrTables(bench.ddr).set_owner(1, CLIENT + 1, (CLIENT,))
    bench.submit(3)
    assert bench.run(3)[1] == 0


def test_sleeping_owner_is_rung_once_for_its_answers(bench: Bench) -> None:
    asleep = bench.ddr.layout.client(CLIENT) + CLIENT_ASLEEP
    bench.submit(1)
    bench.run(1)
    assert not bench.is_rung(bench.client_bell)
    bench.ddr.map[asleep] = 1
    bench.submit(2)
    bench.run(2)
    assert bench.is_rung(bench.client_bell)
    assert bench.ddr.map[asleep] == 0


def test_what_an_op_leaves_in_tcm_is_swept_and_said(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.submit(1, LEAVES_TCM)
    assert bench.run(1)[0] is State.DONE
    assert bench.core.engines.tile_manager.live_count == 0
    assert (
        "leaves_tcm (command 0x1003) returned on core -1 without freeing TCM: 1000 bytes at 0x3ffc"
        in capfd.readouterr().err
    )


def test_last_task_before_a_stop_is_counted(start: Start) -> None:
    running = start(cores=1)
    held = running.hold(running.attach())
    held.let_go()
    assert held.task.exception() is None
    running.ask("stop_core", core=0)
    assert running.core(0)["tasks"] == 1


def test_owner_whose_doorbell_has_not_come_is_rung_by_the_heartbeat_when_it_has(bench: Bench) -> None:
    """The daemon's message waits in a full socket: the core keeps running, and loses no wake-up."""
    bench.core.mailbox.client_doorbells.clear()
    bench.ddr.map[bench.ddr.layout.client(CLIENT) + CLIENT_ASLEEP] = 1
    assert bench.run(bench.submit(4)) == (State.DONE, 0, "")
    for _ in range(2):  # beats before the message
        bench.core._repairs.rescan()
    assert not bench.is_rung(bench.client_bell)
    bench.core.mailbox.client_doorbells[NUMBER] = bench.client_bell
    bench.core._repairs.rescan()
    assert bench.is_rung(bench.client_bell)
    bench.core._repairs.rescan()
    assert not bench.is_rung(bench.client_bell)
