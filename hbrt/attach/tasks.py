"""The tasks of a process that queues them itself: the slot is filled in shared memory, and a sleeping core is rung."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hbrt.attach.task_slots import TaskSlots
from hbrt.ddr.fence import Fence
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox import wake_targets
from hbrt.mailbox.submission import unserved
from hbrt.mailbox.table import ORDER, PRIORITY_URGENT, State
from hbrt.mailbox.wake_targets import Served

if TYPE_CHECKING:
    from hbrt.attach.link import Link


class DirectTasks(TaskSlots):
    """The tasks of this process on one board, queued by this process itself, in Python."""

    reaches_accelerators = True

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        super().__init__(link, spins=spins)
        self._fence = Fence()

    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        """As ``TaskSlots._publish``: record, state, announcements, and then the ring of a core."""
        mm, record = self.map, self.records + slot * SLOT_RECORD_BYTES
        mm[record : record + len(request)] = request
        self.handles[slot] = handle
        mm[self.states + slot] = State.READY
        _, _, _, priority, core_mask = ORDER.unpack_from(request)
        targets = self.targets[core_mask]
        for announced in targets.announced:
            mm[announced + slot] = 1
        self._fence.full()
        served = wake_targets.ring(mm, targets)
        if served is Served.LATER and priority >= PRIORITY_URGENT:
            wake_targets.ring_urgently(targets)
        elif served is Served.NEVER and self._cancel(slot):  # a core that has started meanwhile has claimed it
            self.release(handle)
            return self.refuse(*unserved(self.link.core_count))
        return 0
