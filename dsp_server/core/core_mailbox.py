"""One core's part of the mailbox; its queue, claims, answers and waits are in native/mailbox/core.c.

Python handles only what C cannot: a claim lock held by another process, an owner whose doorbell is not known yet,
and announcements that the heartbeat repairs. ``Host`` is the core as its parts see it.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from hbrt import settings
from hbrt.ddr.claim_lock import ClaimLockHeldError
from hbrt.ddr.layout import CLIENT_COUNT, CLIENT_NUMBER
from hbrt.mailbox.doorbell import ring
from hbrt.mailbox.native import LOCKED, native
from hbrt.mailbox.schedule import may_run
from hbrt.mailbox.spin import poll_budget_ns, usable_cpus
from hbrt.mailbox.table import Mailbox, State

if TYPE_CHECKING:
    from dsp_server.core.progress import Run
    from dsp_server.hardware.cycles import CycleCounter
    from dsp_server.hardware.descriptors import Idma
    from dsp_server.hardware.engines import Engines
    from dsp_server.hardware.tile_manager import TileManager
    from dsp_server.registry import Registration
    from hbrt.ddr.file import Ddr

_NUMBER = struct.Struct("<I")
_ENDING = struct.Struct("=2I2i4Q")  # hbrt_ending


def attachment_number(ddr: Ddr, client: int) -> int:
    """Number of the attachment that currently owns a client id."""
    number: int = _NUMBER.unpack_from(ddr.map, ddr.layout.client(client) + CLIENT_NUMBER)[0]
    return number


class CoreMailbox:
    """One core's work in the mailbox.

    Args:
        index: Index of the core on its board.
        ddr: The board's DDR.
        doorbells: Doorbells of all cores, each an eventfd.
        control_fd: Becomes readable when the supervisor has sent a message.
        listen: Handles one message from the supervisor without blocking; returns False if there is none.
        client_doorbells: Doorbells of attached clients, keyed by attachment number; filled by ``listen``.
    """

    def __init__(
        self,
        index: int,
        ddr: Ddr,
        doorbells: list[int],
        control_fd: int,
        listen: Callable[[], bool],
        client_doorbells: dict[int, int],
    ) -> None:
        self.index, self.ddr, self.table = index, ddr, Mailbox(ddr)
        self.doorbells, self.client_doorbells, self.listen = doorbells, client_doorbells, listen
        self.unrung: set[int] = set()  # owners whose doorbell was unknown here when one of their tasks ended
        self._epoll = select.epoll()
        # Edge-triggered: each ring wakes once, and the counter need not be read.
        self._epoll.register(doorbells[index], select.EPOLLIN | select.EPOLLET)
        self._epoll.register(control_fd, select.EPOLLIN)
        module, layout = native(), ddr.layout
        self.ffi, self.lib = module.ffi, module.lib
        self._place = self.ffi.from_buffer(ddr.map)  # keeps the mapping alive while C may use it
        core = self.lib.hbrt_core_new(
            self._place,
            layout.file_bytes,
            layout._replace(core_count=len(doorbells)).pack_header(),
            index,
            doorbells,
            self._epoll.fileno(),
            control_fd,
            usable_cpus() == 1,
        )
        if core == self.ffi.NULL:
            raise MemoryError("The mailbox could not allocate memory for this core.")
        self.core = self.ffi.gc(core, self.lib.hbrt_core_free)
        self.lib.hbrt_core_age(core, settings.integer("HBRT_AGING_MS") * 1_000_000)
        self.lib.hbrt_core_polls(core, poll_budget_ns())

    def claim(self, least_priority: int = 0, gives_up: Callable[[], bool] | None = None) -> int:
        """Claim the best task that this core may run, and return its slot; negative if there is none.

        Args:
            least_priority: Lowest priority to claim; 0 for any.
            gives_up: Whether to stop waiting for a lock held by another process; None waits for a short while.
        """
        slot: int = self.lib.hbrt_core_claim(self.core, least_priority)
        return self.claim_locked(least_priority, gives_up) if slot == LOCKED else slot

    def claim_locked(self, least_priority: int, gives_up: Callable[[], bool] | None) -> int:
        """Do what ``claim`` does when another process holds the lock."""
        lock = self.table.claim_lock
        if refusal := lock.try_acquire(lock.handle):
            try:
                lock.acquire_slowly(refusal, gives_up)
            except ClaimLockHeldError:
                return -1
        try:
            slot: int = self.lib.hbrt_core_claim(self.core, least_priority)  # the lock is recursive
        finally:
            lock.release(lock.handle)
        return slot

    def best_rank(self) -> int:
        """Rank of the best announced task: its priority if urgent; if there is no task, less than any rank."""
        rank: int = self.lib.hbrt_core_first_rank(self.core)
        return rank

    def unannounced(self) -> list[int]:
        """Slots that are READY for this core but not in its queue yet."""
        is_queued, core_count = self.lib.hbrt_core_is_queued, self.ddr.layout.core_count
        return [
            slot
            for slot in self.table.slots_in(State.READY)
            if not is_queued(self.core, slot) and may_run(self.index, self.table.request(slot).core_mask, core_count)
        ]

    def announce_all(self) -> None:
        """Announce all tasks whose state byte is READY, so that a lost announce byte never loses a task."""
        announced = self.ddr.layout.announced(self.index)
        for slot in self.unannounced():
            self.ddr.map[announced + slot] = 1

    def answer(self, owner: int, slot: int, *ending: int) -> None:
        """Publish a task's answer, write LOOKING, wake the owner if it sleeps; ``ending`` has hbrt_ending's fields."""
        if self.lib.hbrt_core_answer(self.core, _ENDING.pack(slot, owner, *ending)) != 1:
            self.ring_late(owner)

    def ring_late(self, owner: int) -> None:
        """Ring an owner whose doorbell C does not know; it may be in a message that this core has not read yet.

        If the daemon could not send that message because this core's socket was full, the heartbeat rings.
        """
        number = attachment_number(self.ddr, owner)  # read once: the id may get another owner meanwhile
        while number not in self.client_doorbells and self.listen():
            pass
        doorbell = self.client_doorbells.get(number)
        if doorbell is None:
            self.unrung.add(owner)
            return
        ring(doorbell)
        self.lib.hbrt_core_client(self.core, owner, number, doorbell)

    def doorbell_of(self, client: int) -> int | None:
        """Doorbell of an id's current owner; None until its message has been read."""
        return self.client_doorbells.get(attachment_number(self.ddr, client))

    def take_unrung(self) -> set[int]:
        """Return, and clear, the owners that seemed awake when a task of theirs ended, or had no doorbell here."""
        found = self.ffi.new("uint32_t[]", CLIENT_COUNT)
        count = self.lib.hbrt_core_unrung(self.core, found, CLIENT_COUNT)
        owners, self.unrung = self.unrung, set()
        return {*self.ffi.unpack(found, count), *owners}

    def discard_client(self, client: int) -> None:
        """Forget the doorbell, soon to be closed, of a client that is gone.

        ``unrung`` keeps the id: its new owner may be waiting already, and an extra ring only wakes it for nothing.
        """
        self.lib.hbrt_core_client(self.core, client, 0, -1)

    def close(self) -> None:
        """Close what this object has opened."""
        self._epoll.close()


class Running:
    """The op that a core is running.

    Attributes:
        is_in_op: Whether the op's own code is running, which an urgent task may interrupt.
        priority: Priority of its task.
        claim_ns: When its task was claimed, in ns.
    """

    __slots__ = ("claim_ns", "is_in_op", "priority")

    def __init__(self) -> None:
        self.is_in_op, self.priority, self.claim_ns = False, 0, 0


class Host(Protocol):
    """What a core's parts need from it; see ``dsp_server.core.loop.Core``."""

    index: int
    mailbox: CoreMailbox
    engines: Engines
    now: Running
    ops: dict[int, Registration]

    def run(self, slot: int) -> None:
        """Run the op of a claimed slot and answer its task."""

    def running_op(self) -> Run | None:
        """Return the running op; for use by another thread."""

    def use_engines(self, tile_manager: TileManager, counter: CycleCounter, idma: Idma) -> None:
        """Make the op use these engines."""

    def returned(self, op: Registration, returned: object) -> tuple[int, str]:
        """Return status and text for an op's return value other than 0."""

    def raised(self, op: Registration | None, cmd: int, error: BaseException) -> tuple[int, str]:
        """Return status and text for an exception raised while a command was served."""

    def answer(
        self, slot: int, owner: int, outcome: tuple[int, str], times_ns: tuple[int, int], cycles_before: int
    ) -> None:
        """Publish a task's answer."""
