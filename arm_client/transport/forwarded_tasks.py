"""The tasks of a process that does not queue them itself: what inline, relay and remote mode share.

A mode implements ``_publish``, and ``_let_go`` where a task that is released early is not in the board's own table.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hbrt.attach.task_slots import TaskSlots
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.table import SUBMISSION

if TYPE_CHECKING:
    from hbrt.attach.link import Link


class ForwardedTasks(TaskSlots):
    """The tasks of this process on one board; ``_publish`` brings each to the core that runs it."""

    reaches_accelerators = False
    _SUBMIT = "prepare"

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        super().__init__(link, spins=spins)
        # A slot's handle and state, between the threads that release and the one that takes in ends. Reentrant, since a
        # finalizer or a signal's handler may release another slot's task in the middle, in the same thread.
        self.table = threading.RLock()

    def _queue_task(self, *given: int) -> int:
        if (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        before = self._last_serial()
        try:
            handle = self._reserve(*given)
            if handle < 0:
                return handle
            slot = handle & SLOT_MASK
            if self._note is not None:
                self._note(slot)
            record = self.records + slot * SLOT_RECORD_BYTES
            return self._publish(slot, handle, self.map[record : record + SUBMISSION.size]) or handle
        except BaseException:
            self._release_newest(*given, since=before)
            raise

    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        """Bring a task to its core: 0, or a status, and its handle is not in use anymore.

        Args:
            slot: Its slot, which is SENT.
            handle: Its handle.
            request: Its fields, as ``SUBMISSION`` packs them.
        """
        raise NotImplementedError

    def lend(self) -> int:
        """As ``TaskSlots.lend``: C queues no task."""
        return 0

    def _hand_over(self, client: Any, handle: int) -> int:  # noqa: ARG002 - another process queues it
        return handle

    def _forget(self, slot: int, handle: int) -> bool:
        with self.table:
            return super()._forget(slot, handle)

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``TaskSlots.abandon_in_child``."""
        super().abandon_in_child()
        self.table = threading.RLock()
