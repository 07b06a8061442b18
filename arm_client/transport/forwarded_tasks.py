"""The tasks of a process that does not queue them itself: what inline, relay and remote mode share.

A mode implements ``_publish``, and ``_let_go`` where a task that is released early is not in the board's own table.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hbrt.attach.task_slots import TaskSlots

if TYPE_CHECKING:
    from hbrt.attach.link import Link


class ForwardedTasks(TaskSlots):
    """The tasks of this process on one board; ``_publish`` brings each to the core that runs it."""

    reaches_accelerators = False

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        super().__init__(link, spins=spins)
        # A slot's handle and state, between the threads that release and the one that takes in ends. Reentrant, since a
        # finalizer or a signal's handler may release another slot's task in the middle, in the same thread.
        self.table = threading.RLock()

    def _forget(self, slot: int, handle: int) -> bool:
        with self.table:
            return super()._forget(slot, handle)

    def abandon_in_child(self) -> None:
        """In a fork's child: as ``TaskSlots.abandon_in_child``."""
        super().abandon_in_child()
        self.table = threading.RLock()
