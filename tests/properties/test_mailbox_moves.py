"""Two owners, two cores, a relay and a supervisor on one task table, each in its own mapping, in any order.

Bad moves are mixed in, and what is sent to the relay may come late, twice or never.

Checked after every step: a task that was submitted ends at most once, everybody sees the state that the actor whose
move it was said, and a move that nobody may make raises and changes nothing. The relay queues a task only while its
slot holds it, whoever has used the slot meanwhile.
"""

from __future__ import annotations

import itertools
import os
from types import SimpleNamespace
from typing import Any, NamedTuple

from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from dsp_server.relay.dispatch import RelayDispatcher, Result
from hbrt.ddr.file import Ddr
from hbrt.mailbox.table import FIRST_END, MOVES, REQUEST, Actor, Answer, IllegalMoveError, Mailbox, State
from hbrt.protocol.relay import SUBMIT, SUBMIT_HEAD
from hbrt.status import Status

SLOTS = {0: (0, 1, 2), 1: (3, 4, 5)}  # by owner
CORES = (0, 1)
SUPERVISORS_ENDS = {
    State.SENT: (State.CANCELLED, State.LOST),
    State.READY: (State.CANCELLED, State.LOST),
    State.RUNNING: (State.TIMED_OUT, State.LOST),
}


class Task(NamedTuple):
    """One submission."""

    slot: int
    sequence: int


class FakeLink:
    """What the relay needs of an attachment."""

    def __init__(self, ddr: Ddr) -> None:
        self.ddr, self.mailbox, self.core_count = ddr, Mailbox(ddr), len(CORES)
        self.client_id, self.doorbell = 1 + len(SLOTS), os.eventfd(0)
        self.core_doorbells, self.urgent_bells = ([os.eventfd(0, os.EFD_NONBLOCK) for _ in CORES] for _ in range(2))

    def close(self) -> None:
        for bell in (self.doorbell, *self.core_doorbells, *self.urgent_bells):
            os.close(bell)


class MailboxMoves(RuleBasedStateMachine):
    """The model: what each slot holds, and which end each task has had."""

    running = Bundle("running")
    messages = Bundle("messages")

    def __init__(self) -> None:
        super().__init__()
        first = Ddr.create(1 << 16, len(CORES))
        self.ddrs = [first, *(Ddr(os.dup(first.fd)) for _ in range(5))]
        tables = [Mailbox(ddr) for ddr in self.ddrs]
        self.owners, self.cores, self.supervisor = tables[:2], tables[2:4], tables[4]
        self.link = FakeLink(self.ddrs[5])
        peers: Any = {1 + owner: SimpleNamespace(client=owner, last_slot=0) for owner in SLOTS}
        self.dispatcher = RelayDispatcher(self.link, peers, lambda: False)  # type: ignore[arg-type]
        self.sequences = itertools.count(1)
        self.state: dict[int, State] = {slot: State.EMPTY for slots in SLOTS.values() for slot in slots}
        self.current: dict[int, Task] = {}
        self.ends: dict[Task, State] = {}

    def teardown(self) -> None:
        self.link.close()
        for ddr in self.ddrs:
            ddr.close()

    # -- legal moves

    @rule(owner=st.sampled_from((0, 1)), which=st.integers(0, 2))
    def submit(self, owner: int, which: int) -> None:
        slot, table = SLOTS[owner][which], self.owners[owner]
        if self.state[slot] is State.EMPTY:
            self._write(owner, slot)
            table.move(slot, State.READY, Actor.OWNER)
            self.state[slot] = State.READY

    @rule(target=messages, owner=st.sampled_from((0, 1)), which=st.integers(0, 2), is_good=st.booleans())
    def send(self, owner: int, which: int, *, is_good: bool) -> object:
        """Submit by the relay; a task that is not good has a core mask that the board does not have."""
        slot, table = SLOTS[owner][which], self.owners[owner]
        if self.state[slot] is not State.EMPTY:
            return multiple()
        task, request = self._write(owner, slot, 0 if is_good else 1 << 9)
        table.move(slot, State.SENT, Actor.OWNER)
        self.state[slot] = State.SENT
        return owner, task, is_good, SUBMIT.pack(SUBMIT_HEAD, 1 + owner, slot | task.sequence << 12, *request)

    def _write(self, owner: int, slot: int, core_mask: int = 0) -> tuple[Task, tuple[int, ...]]:
        task, table = Task(slot, next(self.sequences)), self.owners[owner]
        request = (task.sequence, -task.sequence, 0x1000, 7, core_mask, owner, owner, 0, 0, 0, 0)
        REQUEST.pack_into(table.map, table.layout.record(slot), *request)
        self.current[slot] = task
        return task, request

    @rule(target=messages, message=messages, is_good=st.booleans())
    def send_another_instead(self, message: tuple[int, Task, bool, bytes], *, is_good: bool) -> object:
        """The owner takes a task back, and sends another one in the same slot: its message becomes a late one."""
        owner, task, _, _ = message
        which = SLOTS[owner].index(task.slot)
        self.cancel(owner, which)
        self.release(owner, which)
        return self.send(owner, which, is_good=is_good)

    @rule(message=messages)
    def place(self, message: tuple[int, Task, bool, bytes]) -> None:
        """The relay gets a message, now, late, or twice."""
        _, task, is_good, raw = message
        is_there = self.state[task.slot] is State.SENT and self.current[task.slot] == task
        found = self.dispatcher.dispatch(raw)
        if not is_there:
            assert found is Result.STALE
        elif is_good:
            assert found is Result.QUEUED
            self.state[task.slot] = State.READY
        else:
            assert found is Result.REFUSED
            self._has_ended(task, State.FAILED)

    @rule(target=running, core=st.sampled_from(CORES), which=st.integers(0, 5))
    def claim(self, core: int, which: int) -> object:
        table = self.cores[core]
        ready = table.slots_in(State.READY)
        if not ready:
            return multiple()
        slot = ready[which % len(ready)]
        with table.claim_lock:
            table.write_answer(slot, Answer(core, 0, 0, 0, 1, 0, 0, 0))
            table.move(slot, State.RUNNING, Actor.CORE)
        self.state[slot] = State.RUNNING
        return core, self.current[slot]

    @rule(running_task=consumes(running), result=st.sampled_from((0, -5)))
    def finish(self, running_task: tuple[int, Task], result: int) -> None:
        core, task = running_task
        if self.state[task.slot] is not State.RUNNING or self.current[task.slot] != task:
            return  # its core died meanwhile, as far as the supervisor is concerned
        table = self.cores[core]
        end = State.FAILED if result else State.DONE
        table.write_answer(task.slot, Answer(core, result, 0, 0, 1, 2, 3, 4), "why" if result else "")
        table.move(task.slot, end, Actor.CORE)
        self._has_ended(task, end)

    @rule(owner=st.sampled_from((0, 1)), which=st.integers(0, 2))
    def cancel(self, owner: int, which: int) -> None:
        slot, table = SLOTS[owner][which], self.owners[owner]
        with table.claim_lock:
            if table.state(slot) not in {State.SENT, State.READY}:
                return
            table.write_answer(slot, Answer(-1, Status.HB_DSP_TASK_CANCELLED, 0, 0, 0, 0, 1, 0))
            table.move(slot, State.CANCELLED, Actor.OWNER)
        self._has_ended(self.current[slot], State.CANCELLED)

    @rule(core=st.sampled_from(CORES), is_late=st.booleans())
    def core_dies(self, core: int, *, is_late: bool) -> None:
        """The supervisor settles what a dead core, or one over its limit, ran."""
        end = State.TIMED_OUT if is_late else State.LOST
        for slot in self.supervisor.slots_in(State.RUNNING):
            if self.supervisor.answer(slot).core == core:
                with self.supervisor.claim_lock:
                    self.supervisor.move(slot, end, Actor.SUPERVISOR)
                self._has_ended(self.current[slot], end)

    @rule(owner=st.sampled_from((0, 1)))
    def owner_dies(self, owner: int) -> None:
        """The supervisor cancels what is queued, lets what runs run, and empties what has ended."""
        with self.supervisor.claim_lock:
            for slot in SLOTS[owner]:
                if self.supervisor.state(slot) in {State.SENT, State.READY}:
                    self.supervisor.move(slot, State.CANCELLED, Actor.SUPERVISOR)
                    self._has_ended(self.current[slot], State.CANCELLED)
        for slot in SLOTS[owner]:
            if self.supervisor.state(slot) >= FIRST_END:
                self.supervisor.move(slot, State.EMPTY, Actor.SUPERVISOR)
                self.state[slot] = State.EMPTY

    @rule(owner=st.sampled_from((0, 1)), which=st.integers(0, 2))
    def release(self, owner: int, which: int) -> None:
        slot = SLOTS[owner][which]
        if self.state[slot] >= FIRST_END:
            self.owners[owner].move(slot, State.EMPTY, Actor.OWNER)
            self.state[slot] = State.EMPTY

    # -- moves that nobody may make

    @rule(slot=st.integers(0, 5), end=st.sampled_from(State), actor=st.sampled_from(Actor), who=st.integers(0, 4))
    def try_what_is_forbidden(self, slot: int, end: State, actor: Actor, who: int) -> None:
        table = [*self.owners, *self.cores, self.supervisor][who]
        actors = MOVES.get((self.state[slot], end), (frozenset(), False))[0]
        if actor in actors:
            return
        try:
            table.move(slot, end, actor)
        except IllegalMoveError as error:
            assert f"slot {slot} {self.state[slot].name} -> {end.name}" in str(error)  # noqa: PT017 - not a test function
        else:
            raise AssertionError(f"{actor.name} moved slot {slot} {self.state[slot].name} -> {end.name}")

    # -- what holds

    @invariant()
    def everybody_sees_the_same(self) -> None:
        for table in (*self.owners, *self.cores, self.supervisor):
            assert {slot: table.state(slot) for slot in self.state} == self.state

    @invariant()
    def record_of_a_task_is_its_own(self) -> None:
        for slot, task in self.current.items():
            assert self.supervisor.request(slot).sequence == task.sequence

    def _has_ended(self, task: Task, end: State) -> None:
        assert task not in self.ends, f"{task} ended as {self.ends[task].name} and again as {end.name}"
        self.ends[task] = end
        self.state[task.slot] = end


TestMailboxMoves = MailboxMoves.TestCase
TestMailboxMoves.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def test_supervisor_may_end_every_task_that_has_not_ended() -> None:
    """So that no task is left without an end when everybody else is gone."""
    for start, ends in SUPERVISORS_ENDS.items():
        for end in ends:
            assert Actor.SUPERVISOR in MOVES[start, end][0]
