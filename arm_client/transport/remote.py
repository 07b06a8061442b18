"""Remote mode: a board on another machine runs the tasks, through the relay there.

The task table is this process's own, laid out like the board's: publishing marks a slot there READY and sends the
descriptor; the task's end is written into the slot as a core would write into the board's. Code that reads tasks
(futures, callbacks, the C names) finds them there and sees no difference.
"""

from __future__ import annotations

import time
from os import eventfd_write
from typing import TYPE_CHECKING, cast

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.remote_link import BOARD_LOST
from hbrt.attach.tasks import Carrier
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.errors import RefusedError
from hbrt.mailbox.handle import SLOT_MASK, slot_of
from hbrt.mailbox.table import ANSWER, FIRST_END, SUBMISSION, Answer, State
from hbrt.profiles.work import WORK
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import TASK_END, TASK_NUMBER, RemoteFrame, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from arm_client.transport.remote_link import RemoteLink
    from hbrt.attach.tasks import Tasks
    from hbrt.remote.send_window import FrameSource

_ENDS = frozenset(state for state in State if state >= FIRST_END)
_EMPTY, _READY, _DONE = int(State.EMPTY), int(State.READY), int(FIRST_END)


class Remote(Carrier):
    """Carries tasks over the connection to one remote board.

    Args:
        on_ended: Called by the connection's thread with the handle of each finished task.
    """

    _link: RemoteLink

    def __init__(self, on_ended: Callable[[int], None] = lambda _: None) -> None:
        self.on_ended = on_ended

    def carry(self, tasks: Tasks) -> None:
        """See ``Carrier.carry``."""
        super().carry(tasks)
        self._link = cast("RemoteLink", tasks.link)
        self._link.on_end = self._on_end

    def publish(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - the record has all
        """Send this process's writes to the board, then a task."""
        tasks, slot = self.tasks, handle & SLOT_MASK
        record = tasks.records + slot * SLOT_RECORD_BYTES
        request = tasks.map[record : record + SUBMISSION.size]
        tasks.map[tasks.states + slot] = _READY
        self._link.submit(TASK_NUMBER.pack(handle) + request)
        return handle

    def state(self, handle: int, found: State) -> State:
        """Like ``Carrier.state``; queries the relay about an unfinished task."""
        if found is not State.READY or self._link.fault:
            return found
        there = self._ask_of(RemoteFrame.ASK, handle)
        found = State(self.tasks.map[self.tasks.states + slot_of(handle)])
        return there if found is State.READY and there is State.RUNNING else found

    def cancel(self, slot: int) -> bool:
        """Like ``Carrier.cancel``; sends a request to the relay."""
        tasks = self.tasks
        at = tasks.states + slot
        if tasks.map[at] != _READY or self._link.fault:
            return False
        self._ask_of(RemoteFrame.CANCEL, tasks.handles[slot])
        return tasks.map[at] == State.CANCELLED

    def drop(self, slot: int, handle: int) -> None:
        """See ``Carrier.drop``."""
        tasks = self.tasks
        tasks.map[tasks.states + slot] = _EMPTY
        self._ask_of(RemoteFrame.DROP, handle)  # wait for it: from here on a queued task must not run
        tasks.waiters.wake()
        tasks.slots.free.append(slot)

    def _ask_of(self, kind: RemoteFrame, handle: int) -> State | None:
        """Return a task's state at the relay after the frame's request; None if the connection is gone."""

        def frames_for(number: int) -> FrameSource:
            yield 0, encode(kind, number, handle)

        try:
            return State(self._link.ask(frames_for, what=kind.name.lower()))
        except RequestRefusedError:
            return None

    def _on_end(self, raw: bytes, text: bytes) -> None:
        """Handle the relay's report that a task has ended and its writes have arrived; in the connection's thread.

        Raises:
            RefusedError: no core got it, since the board is lost. MalformedMessageError: not the end of a task.
        """
        tasks = self.tasks
        handle, state, packed, work = TASK_END.unpack(raw)
        if state not in _ENDS or slot_of(handle) >= len(tasks.handles):
            raise MalformedMessageError(f"It says that task {handle:#x} ended in state {state}.")
        slot, answer, now_ns = slot_of(handle), Answer(*ANSWER.unpack(packed)), time.monotonic_ns()
        if answer.core < 0 and answer.result in BOARD_LOST:  # an op may return any status
            raise RefusedError(answer.result, text.decode("utf-8", "replace"))
        # A task released now keeps its slot until this thread has answered DROP.
        if tasks.handles[slot] == handle and tasks.map[tasks.states + slot] < _DONE:
            answer = by_local_clock(answer, self._link.ahead_ns, tasks.mailbox.request(slot).sequence, now_ns)
            tasks.mailbox.write_work(slot, WORK.unpack(work))
            tasks.mailbox.write_answer(slot, answer, text.decode("utf-8", "replace"))
            tasks.map[tasks.states + slot] = state
            eventfd_write(self._link.doorbell, 1)
        self.on_ended(handle)


def by_local_clock(answer: Answer, ahead_ns: int, submitted_ns: int, now_ns: int) -> Answer:
    """Convert an answer's times to this machine's clock; 0 stays 0.

    The clock difference is known to within half a round trip, which is long on a busy machine.
    The task ran between its submission and now, so all its times are shifted together into that range.

    Args:
        answer: The board's answer, in nanoseconds of its monotonic clock.
        ahead_ns: Estimate of how far the board's clock is ahead of this machine's.
        submitted_ns: When this machine submitted the task.
        now_ns: When the end message arrived.
    """
    times = [time_ns for time_ns in (answer.claim_ns, answer.start_ns, answer.done_ns) if time_ns]
    if times:
        ahead_ns = max(min(ahead_ns, min(times) - submitted_ns), max(times) - now_ns)

    def local(time_ns: int) -> int:
        return max(1, time_ns - ahead_ns) if time_ns else 0

    return answer._replace(
        claim_ns=local(answer.claim_ns), start_ns=local(answer.start_ns), done_ns=local(answer.done_ns)
    )
