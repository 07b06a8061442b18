"""The life of a task on a board of another machine: by way of the relay there.

The task table is this process's own, laid out like the board's: submitting marks a slot there READY and sends the
descriptor; its end is written into it as a core writes into the board's. What looks at tasks (futures, callbacks, the C
names) finds them there and knows no difference.
"""

from __future__ import annotations

import time
from os import eventfd_write

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.forwarded_tasks import ForwardedTasks
from arm_client.transport.remote_link import BOARD_LOST, RemoteLink
from arm_client.transport.remote_times import by_local_clock
from hbrt.ddr.layout import ACTIVITY_OFFLINE, CORE_ACTIVITY
from hbrt.errors import RefusedError
from hbrt.mailbox.handle import slot_of
from hbrt.mailbox.schedule import eligible_cores
from hbrt.mailbox.submission import Refusal, unserved
from hbrt.mailbox.table import ANSWER, FIRST_END, Answer, State
from hbrt.profiles.work import WORK
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import TASK_END, TASK_NUMBER, Kind, encode
from hbrt.remote.send_window import FrameSource
from hbrt.status import Status

MAX_TASKS = 1024  # as many as the slots that one client of a board may lease
_ENDS = frozenset(state for state in State if state >= FIRST_END)
_EMPTY, _READY, _DONE = int(State.EMPTY), int(State.READY), int(FIRST_END)


class RemoteTasks(ForwardedTasks):
    """The tasks of this process on one remote board."""

    link: RemoteLink

    def __init__(self, link: RemoteLink) -> None:
        super().__init__(link, spins=False)
        self.free.extend(reversed(range(MAX_TASKS)))
        link.on_end = self._on_end

    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        """Send a task to the board, and before it what this process wrote."""
        self.map[self.states + slot] = _READY
        self.link.submit(TASK_NUMBER.pack(handle) + request)
        return 0

    def _refusal(self, *given: int) -> Refusal | None:
        if (found := super()._refusal(*given)) is not None:
            return found
        layout, core_count = self.link.ddr.layout, len(self.link.core_doorbells)
        cores = eligible_cores(given[2], core_count, layout.core_count)
        is_served = any(self.map[layout.core(core) + CORE_ACTIVITY] != ACTIVITY_OFFLINE for core in cores)
        return None if is_served else unserved(self.link.core_count)

    def block_refusal(self, what: str, phy_addr: int, size_bytes: int) -> Refusal | None:
        """As ``TaskSlots.block_refusal``; the board knows blocks of others, and says it better."""
        if super().block_refusal(what, phy_addr, size_bytes) is None:
            return None
        try:
            status, why = self.link.check(what, phy_addr, size_bytes)
        except RequestRefusedError as error:
            status, why = error.status, str(error)
        return (status, why) if status else None

    def lease_more(self) -> int:
        """A slot of a task that nobody asks about anymore, or the status: there are MAX_TASKS."""
        self.release_abandoned()
        if self.free:
            return self.free.pop()
        return self.refuse(
            Status.HB_DSP_TASK_NUM_EXCEED_LIMIT,
            f"Client {self.client_id} has {MAX_TASKS} tasks, which is the most of one process; release finished "
            "tasks with hbDSPReleaseTask.",
        )

    def _on_end(self, raw: bytes, text: bytes) -> None:
        """A task has ended, says the relay, and what it wrote has come: in the connection's thread.

        Raises:
            RefusedError: no core has had it, since the board is lost. MalformedMessageError: it is no end of a task.
        """
        handle, state, packed, work = TASK_END.unpack(raw)
        if state not in _ENDS or slot_of(handle) >= len(self.handles):
            raise MalformedMessageError(f"It says that task {handle:#x} ended in state {state}.")
        slot, answer, now_ns = slot_of(handle), Answer(*ANSWER.unpack(packed)), time.monotonic_ns()
        if answer.core < 0 and answer.result in BOARD_LOST:  # an op may return any status
            raise RefusedError(answer.result, text.decode("utf-8", "replace"))
        with self.table:
            if self.handles[slot] != handle or self.map[self.states + slot] >= _DONE:
                return  # it was released meanwhile
            answer = by_local_clock(answer, self.link.ahead_ns, self.mailbox.request(slot).sequence, now_ns)
            self.mailbox.write_work(slot, WORK.unpack(work))
            self.mailbox.write_answer(slot, answer, text.decode("utf-8", "replace"))
            self.map[self.states + slot] = state
        eventfd_write(self.link.doorbell, 1)

    def _ask_of(self, kind: Kind, handle: int) -> State | None:
        """State of a task at the relay, after it has done what the frame asks; None when the connection is gone."""

        def frames_for(number: int) -> FrameSource:
            yield 0, encode(kind, number, handle)

        try:
            return State(self.link.ask(frames_for, what=kind.name.lower()))
        except RequestRefusedError:
            return None

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one; asks the relay about one that has not ended."""
        state = super().state(handle)
        if state is not State.READY or self.link.fault:
            return state
        there = self._ask_of(Kind.ASK, handle)
        state = super().state(handle)
        return there if state is State.READY and there is State.RUNNING else state

    def _cancel(self, slot: int) -> bool:
        at = self.states + slot
        if self.map[at] != _READY or self.link.fault:
            return False
        self._ask_of(Kind.CANCEL, self.handles[slot])
        return self.map[at] == State.CANCELLED

    def _let_go(self, slot: int, handle: int) -> None:
        self.map[self.states + slot] = _EMPTY
        self._ask_of(Kind.DROP, handle)  # and wait for it: a queued task must not run any more from here on
        self.waiters.wake()
        self.free.append(slot)
