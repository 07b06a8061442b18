"""The tasks of a process that does not queue them itself: what inline, relay and remote mode share.

A mode implements ``_publish``, and ``_let_go`` where a task that is released early is not in the board's own table.
"""

from __future__ import annotations

import struct
import threading
from abc import abstractmethod
from time import monotonic_ns
from typing import TYPE_CHECKING

from hbrt.attach.task_slots import TaskSlots
from hbrt.board.forked import mark
from hbrt.mailbox.handle import make
from hbrt.mailbox.submission import UNSERVED
from hbrt.mailbox.table import SUBMISSION
from hbrt.mailbox.wake_targets import is_served

if TYPE_CHECKING:
    from hbrt.attach.link import Link
    from hbrt.mailbox.wake_targets import Targets


class ForwardedTasks(TaskSlots):
    """The tasks of this process on one board; ``_publish`` brings each to the core that runs it."""

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        super().__init__(link, spins=spins)
        # A slot's handle and state, between the threads that release and the one that takes in ends. Reentrant, since a
        # finalizer or a signal's handler may release another slot's task in the middle, in the same thread.
        self.table = threading.RLock()

    @abstractmethod
    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        """Note the handle of a task in ``handles`` and hand the task over; 0, or a status, and the slot is not in use.

        Args:
            slot: A reserved slot.
            handle: The task's handle.
            request: Its fields, as ``SUBMISSION`` packs them.
        """

    def _is_served(self, targets: Targets) -> bool:
        """Whether a core may run a task of these targets."""
        return is_served(self.map, targets)

    def submit(self, *given: int) -> int:
        """Check a task, and hand it over; as ``TaskSlots.submit``."""
        cmd, priority, core_mask, custom_id, *blocks = given
        targets, known, us = self.targets.get(core_mask), self.known, self.client_id
        if (
            targets is None
            or self.link.fault
            or not mark[0]
            or known.get(blocks[0], -1) < blocks[1]
            or known.get(blocks[2], -1) < blocks[3]
        ):
            if (found := self.refusal(*given)) is not None:
                return self.refuse(*found)
            targets = self.targets[core_mask]
        if not self._is_served(targets):
            return self.refuse(*UNSERVED)
        self._sequence = max(monotonic_ns(), self._sequence + 1)
        try:
            request = SUBMISSION.pack(self._sequence, custom_id, cmd, priority, core_mask, us, us, *blocks)
        except struct.error:
            return self.refuse_unpacked(*given)
        slot = self.reserve()
        if slot < 0:
            return slot
        self._serial += 1
        handle = make(us, self._serial, slot)
        try:
            return self._publish(slot, handle, request) or handle
        except BaseException:
            if self.handles[slot] == handle:
                self.release(handle)  # a signal's handler has raised: nobody will ever know this handle
            raise

    def _forget(self, slot: int, handle: int) -> bool:
        with self.table:
            return super()._forget(slot, handle)

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``TaskSlots.abandon_in_child``."""
        super().abandon_in_child()
        self.table = threading.RLock()
