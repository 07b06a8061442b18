"""The tasks of a process that queues them itself: the slot is filled in shared memory, and a core rung if it sleeps."""

from __future__ import annotations

import struct
from os import eventfd_write
from time import monotonic_ns
from typing import TYPE_CHECKING

from hbrt.attach.task_slots import TaskSlots
from hbrt.board.forked import mark, notice
from hbrt.ddr.fence import Fence
from hbrt.ddr.layout import ACTIVITY_ASLEEP, ACTIVITY_LOOKING, ACTIVITY_OFFLINE, SLOT_RECORD_BYTES
from hbrt.mailbox import wake_targets
from hbrt.mailbox.handle import SLOT_BITS, SLOT_MASK
from hbrt.mailbox.submission import UNSERVED
from hbrt.mailbox.table import FIRST_END, PRIORITY_PREEMPT, SUBMISSION, State

if TYPE_CHECKING:
    from hbrt.attach.link import Link

# Plain integers: comparing with a member of an enum costs a call.
_EMPTY, _READY, _DONE = int(State.EMPTY), int(State.READY), int(FIRST_END)


class DirectTasks(TaskSlots):
    """The tasks of this process on one board, queued by this process itself.

    ``submit`` and ``finish`` say in one place each what ``TaskSlots`` and ``wake_targets.ring`` say in several: a call
    of a function costs a hundredth of a whole task. tests/hbrt/attach/test_ring_rule.py holds them equal.
    """

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        super().__init__(link, spins=spins)
        fence = Fence()
        self._fence_in, self._fence_out = fence.enter, fence.leave

    def submit(  # noqa: C901, PLR0912, PLR0915 - the hot path: its checks and the ring rule are in one place on purpose
        self,
        cmd: int,
        priority: int,
        core_mask: int,
        custom_id: int,
        input_phy: int,
        input_bytes: int,
        output_phy: int,
        output_bytes: int,
        /,
    ) -> int:
        """Queue a task; as ``TaskSlots.submit``."""
        us, mm = self.client_id, self.map
        targets, known = self.targets.get(core_mask), self.known
        if (
            targets is None
            or self.link.fault
            or not mark[0]
            or known.get(input_phy, -1) < input_bytes
            or known.get(output_phy, -1) < output_bytes
        ):
            blocks = (input_phy, input_bytes, output_phy, output_bytes)
            if (found := self.refusal(cmd, priority, core_mask, custom_id, *blocks)) is not None:
                return self.refuse(*found)
            targets = self.targets[core_mask]
        sequence = monotonic_ns()
        if sequence <= self._sequence:
            sequence = self._sequence + 1
        self._sequence = sequence
        try:
            slot = self.free.pop()
        except IndexError:
            slot = self.lease_more()
            if slot < 0:
                return slot
        self._serial += 1
        handle = self._handle_base + (self._serial << SLOT_BITS) + slot
        try:
            SUBMISSION.pack_into(
                mm,
                self.records + slot * SLOT_RECORD_BYTES,
                sequence,
                custom_id,
                cmd,
                priority,
                core_mask,
                us,
                us,
                input_phy,
                input_bytes,
                output_phy,
                output_bytes,
            )
        except BaseException as error:
            self.free.append(slot)
            if isinstance(error, struct.error):
                blocks = (input_phy, input_bytes, output_phy, output_bytes)
                return self.refuse_unpacked(cmd, priority, core_mask, custom_id, *blocks)
            raise
        self.handles[slot] = handle
        mm[self.states + slot] = _READY
        try:
            announced_at, bells, _ = targets
            for announced in announced_at:
                mm[announced + slot] = 1
            try:  # Fence.full, inlined: the hot path
                self._fence_in(False)
            finally:
                try:  # noqa: SIM105 - as below
                    self._fence_out()
                except RuntimeError:
                    pass
            doorbell, offline = -1, 0  # wake_targets.ring, inlined: the hot path
            for activity, bell in bells:
                doing = mm[activity]
                if doing == ACTIVITY_LOOKING:
                    return handle
                if doing == ACTIVITY_ASLEEP:
                    if doorbell < 0:
                        doorbell = bell
                elif doing == ACTIVITY_OFFLINE:
                    offline += 1
            if doorbell >= 0:
                try:  # noqa: SIM105 - the hot path: a context manager costs, this does not
                    eventfd_write(doorbell, 1)
                except BlockingIOError:
                    pass  # somebody has filled its counter: the core's beat finds the task
            elif offline == len(bells):
                return self._take_back(slot, handle)
            elif priority == PRIORITY_PREEMPT:
                wake_targets.ring_urgently(targets)
        except BaseException:
            self.release(handle)  # a signal's handler has raised: nobody will ever know this handle
            raise
        return handle

    def _take_back(self, slot: int, handle: int) -> int:
        """Undo a submission that no core can serve; one that has started meanwhile did claim it."""
        if not self._cancel(slot):
            return handle
        self.release(handle)
        return self.refuse(*UNSERVED)

    def finish(self, handle: int) -> int:
        """Wait for a task without a limit, and release it when it has succeeded; else as ``wait``."""
        if not mark[0]:
            notice()
        slot = handle & SLOT_MASK
        at, mm, handles, waiters = self.states + slot, self.map, self.handles, self.waiters
        if handles[slot] != handle:
            return self.refuse_handle(handle)  # a board that was closed has no memory to look at
        if mm[at] < _DONE:
            if waiters.polls:
                waiters.wait_for(slot, handle, 0)
            else:
                waiters.sleep_alone(slot, handle)
        elif waiters.choice.measures:
            waiters.measure(slot)
        if handles[slot] != handle or mm[at] != _DONE:
            return self.wait(handle, 0)
        handles[slot] = 0
        mm[at] = _EMPTY
        self.free.append(slot)
        return 0
