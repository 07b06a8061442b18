"""The mailbox slots that this process leases: unused ones, and those of tasks that were released before they ended."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from hbrt.attach.question import Question
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD
from hbrt.mailbox.table import CORE_MASK, CORE_MASK_AT, FIRST_END, State
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link
    from hbrt.attach.refusals import Refusals

SLOTS_AT_ONCE = 64
# Plain integers: comparing with an enum member costs a call.
_EMPTY, _RUNNING, _DONE = int(State.EMPTY), int(State.RUNNING), int(FIRST_END)


class _FreeSlots(list[int]):
    """The unused slots: those in this list, safe from signal handlers, and those in C."""

    def __init__(self, client: Any, lib: Any) -> None:
        super().__init__()
        self._client, self._lib = client, lib

    def __len__(self) -> int:
        count: int = self._lib.hbrt_slot_count(self._client)
        return super().__len__() + count

    def pop(self) -> int:  # type: ignore[override]  # takes the last one
        try:
            return super().pop()
        except IndexError:
            slot: int = self._lib.hbrt_slot_take(self._client)
            if slot < 0:
                raise
            return slot


class Slots:
    """The slots of one attachment.

    Args:
        link: This process's attachment.
        refusals: Receives the message when there is no slot.
        lib: The functions in C.
        client: The attachment in C.

    Attributes:
        free: The unused ones.
    """

    def __init__(self, link: Link, refusals: Refusals, lib: Any, client: Any) -> None:
        self._refusals = refusals
        self._link, self._map, self._layout = link, link.mailbox.map, link.ddr.layout
        self.free = _FreeSlots(client, lib)
        # Released while queued or running: emptied when ended. The thread that takes a slot out owns it.
        self._dropped: dict[int, None] = {}
        self._lock = threading.RLock()  # a signal handler may submit in the middle of a submission
        lib.hbrt_slots_give(client, link.first_slots[::-1], len(link.first_slots))

    def take(self) -> int:
        """Take an unused slot, leased from the daemon if necessary; or return a status (< 0)."""
        from hbrt.errors import RequestRefusedError

        link = self._link
        with self._lock:
            while True:
                try:
                    return self.free.pop()
                except IndexError:
                    pass  # none, or other threads took all of them, which needs no lock
                if not link.leases_slots:
                    return self._refusals.refuse(
                        Status.HB_DSP_TASK_NUM_EXCEED_LIMIT,
                        f"Client {link.client_id} has {len(link.first_slots)} tasks, the maximum for one "
                        "process; release finished tasks with hbDSPReleaseTask.",
                    )
                # Slots that arrive too late for an interrupted request are added by a later one, also in a single C
                # call.
                asked = Question(undo=functools.partial(functools.partial, self.free.extend))
                try:
                    self.free.extend(link.request("slots", asked, count=SLOTS_AT_ONCE))
                except RequestRefusedError as error:
                    return self._refusals.refuse(error.status, str(error))

    def release(self, slot: int) -> None:
        """Empty the slot of a task that has ended, or that nobody has."""
        self._map[self._layout.states + slot] = _EMPTY
        self.free.append(slot)

    def has_ended(self, slot: int) -> bool:
        """Whether the task in a slot has ended."""
        return self._map[self._layout.states + slot] >= _DONE

    def is_held(self, slot: int) -> bool:
        """Whether another board runs the task in a slot, where it stays SENT until its end."""
        mask: int
        (mask,) = CORE_MASK.unpack_from(self._map, self._layout.records + slot * SLOT_RECORD_BYTES + CORE_MASK_AT)
        return mask == OF_ANOTHER_BOARD

    def release_later(self, slot: int) -> None:
        """Empty the slot of a task without a handle once it has ended."""
        self._dropped[slot] = None
        self._regain(slot)

    def release_ended(self, cancel: Callable[[int], bool]) -> None:
        """Empty the slots of ``release_later`` whose tasks have ended; ``cancel`` those still queued."""
        for slot in list(self._dropped):
            if self._map[self._layout.states + slot] < _RUNNING:
                cancel(slot)  # the claim lock was unavailable when it was dropped
            self._regain(slot)

    def _regain(self, slot: int) -> None:
        """Reclaim the slot of a finished dropped task, once: interrupts come only at calls.

        So an interrupt may lose a slot until this process ends, but never frees one twice, for two tasks to share.
        """
        at, mm, dropped = self._layout.states + slot, self._map, self._dropped
        try:
            del dropped[slot]
        except KeyError:
            return  # taken by another thread
        if mm[at] >= _DONE:
            mm[at] = _EMPTY
            self.free.append(slot)
        else:
            dropped[slot] = None

    def detach_in_child(self) -> None:
        """In a forked child: the parent's thread may have held the lock."""
        self._lock = threading.RLock()
