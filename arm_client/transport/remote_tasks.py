"""The life of a task on a board of another machine: as ``hbrt.attach.tasks``, by way of the relay there.

The task table is this process's own, laid out like the board's: submitting marks a slot there READY and sends the
descriptor; its end is written into it as a core writes into the board's. What looks at tasks (futures, callbacks, the C
names) finds them there and knows no difference.
"""

from __future__ import annotations

import struct
import threading
from os import eventfd_write
from time import monotonic_ns

from arm_client.cabi.last_error import RequestRefusedError
from arm_client.transport.remote_link import RemoteLink
from hbrt.attach.tasks import Tasks
from hbrt.mailbox.handle import make, slot_of
from hbrt.mailbox.table import ANSWER, FIRST_END, SUBMISSION, Answer, State
from hbrt.mailbox.wake_targets import is_served
from hbrt.protocol.remote import TASK_END, TASK_NUMBER, Kind, encode
from hbrt.remote.send_window import Job
from hbrt.status import Status

MOST_TASKS = 1024  # as many as the slots that one client of a board may lease
_EMPTY, _READY, _DONE = int(State.EMPTY), int(State.READY), int(FIRST_END)


class RemoteTasks(Tasks):
    """The tasks of this process on one remote board."""

    def __init__(self, link: RemoteLink) -> None:
        super().__init__(link, spins=False)
        self._remote = link
        self._free = list(reversed(range(MOST_TASKS)))
        # A slot's handle and state, between who releases and the connection's thread. A finalizer may release another
        # slot's task in the middle, by the same thread.
        self._table = threading.RLock()
        link.on_end = self._on_end

    def submit(
        self,
        cmd: int,
        priority: int,
        core_mask: int,
        custom_id: int,
        input_phy: int,
        input_bytes: int,
        output_phy: int,
        output_bytes: int,
    ) -> int:
        """Send a task to the board, and before it what this process wrote; as ``Tasks.submit``."""
        targets = self._targets.get(core_mask)
        if targets is None or self._link.fault:
            return self._refuse_submit(cmd, priority, core_mask, custom_id)
        refused = self._refuse_range("input", input_phy, input_bytes) or self._refuse_range(
            "output", output_phy, output_bytes
        )
        if refused:
            return refused
        if not is_served(self._map, targets):
            return self._say_no_core()
        us = self._client_id
        blocks = (input_phy, input_bytes, output_phy, output_bytes)
        try:
            request = SUBMISSION.pack(monotonic_ns(), custom_id, cmd, priority, core_mask, us, us, *blocks)
        except struct.error:
            return self._refuse_submit(cmd, priority, core_mask, custom_id)
        try:
            slot = self._free.pop()
        except IndexError:
            slot = self._more_slots()
            if slot < 0:
                return slot
        self._serial += 1
        handle = make(self._client_id, self._serial, slot)
        try:
            self._handles[slot] = handle
            self._map[self._states + slot] = _READY
            self._remote.submit(TASK_NUMBER.pack(handle) + request)
        except BaseException:
            self._handles[slot] = 0
            self._free.append(slot)
            raise
        return handle

    def _refuse_range(self, what: str, phy_addr: int, size_bytes: int) -> int:
        if self._known.get(phy_addr, -1) >= size_bytes or not super()._refuse_range(what, phy_addr, size_bytes):
            return 0
        try:  # the board knows blocks of others, and says it better
            status, why = self._remote.check(what, phy_addr, size_bytes)
        except RequestRefusedError as error:
            status, why = error.status, str(error)
        return self._say(status, why) if status else 0

    def _more_slots(self) -> int:
        self.release_abandoned()
        if self._free:
            return self._free.pop()
        return self._say(
            Status.HB_DSP_TASK_NUM_EXCEED_LIMIT,
            f"Client {self._client_id} has {MOST_TASKS} tasks, which is the most of one process; release finished "
            "tasks with hbDSPReleaseTask.",
        )

    def _on_end(self, raw: bytes, text: bytes) -> None:
        """A task has ended, says the relay, and what it wrote has come: in the connection's thread."""
        handle, state, packed = TASK_END.unpack(raw)
        slot, to_local = slot_of(handle), self._remote.to_local_ns
        answer = Answer(*ANSWER.unpack(packed))
        answer = answer._replace(
            claim_ns=to_local(answer.claim_ns), start_ns=to_local(answer.start_ns), done_ns=to_local(answer.done_ns)
        )
        with self._table:
            if self._handles[slot] != handle or self._map[self._states + slot] >= _DONE or state < _DONE:
                return  # it was released meanwhile
            self.mailbox.write_answer(slot, answer, text.decode("utf-8", "replace"))
            self._map[self._states + slot] = state
        eventfd_write(self._link.doorbell, 1)

    def _ask_of(self, kind: Kind, handle: int) -> State | None:
        """What the relay says of a task, once it has done what it was told; None when the way to it is gone."""

        def job(number: int) -> Job:
            yield 0, encode(kind, number, handle)

        try:
            return State(self._remote.ask(job, what=kind.name.lower()))
        except RequestRefusedError:
            return None

    def state(self, handle: int) -> State | None:
        """State of a task, None when the handle is not a live one; asks the relay about one that has not ended."""
        state = super().state(handle)
        if state is not State.READY or self._link.fault:
            return state
        told = self._ask_of(Kind.ASK, handle)
        state = super().state(handle)
        return told if state is State.READY and told is State.RUNNING else state

    def _cancel(self, slot: int) -> bool:
        at = self._states + slot
        if self._map[at] != _READY or self._link.fault:
            return False
        self._ask_of(Kind.CANCEL, self._handles[slot])
        return self._map[at] == State.CANCELLED

    def finish(self, handle: int) -> int:
        """Wait for a task, and release it when it has succeeded; as ``Tasks.finish``."""
        return self.wait(handle, 0) or self.release(handle)

    def release(self, handle: int) -> int:
        """Let a task go; as ``Tasks.release``."""
        slot = slot_of(handle)
        if self._handles[slot] != handle:
            return self._refuse_handle(handle)
        with self._table:
            if self._handles[slot] != handle:
                return self._refuse_handle(handle)
            has_ended = self._map[self._states + slot] >= _DONE
            self._handles[slot] = 0
            self._map[self._states + slot] = _EMPTY
        if not has_ended and not self._link.fault:
            self._ask_of(Kind.DROP, handle)  # and wait for it: a queued task must not run any more from here on
            self.waiters.wake()
        self._free.append(slot)
        return 0

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``Tasks.abandon_in_child``."""
        super().abandon_in_child()
        self._table = threading.RLock()
