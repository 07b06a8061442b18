"""One core's part in the mailbox: native/mailbox/core.c has its queue, claims, answers and waits.

What is left here is what C comes back for: a claim lock that another process keeps, and an owner whose doorbell is not
known yet; and the announcements that the heartbeat repairs. ``Host`` is the core, for its parts.
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
    """Which attachment to the board an id's present owner is."""
    number: int = _NUMBER.unpack_from(ddr.map, ddr.layout.client(client) + CLIENT_NUMBER)[0]
    return number


class CoreMailbox:
    """What one core does in the mailbox.

    Args:
        index: Which core of the board.
        ddr: The board's DDR.
        doorbells: Every core's doorbell, an eventfd each.
        control_fd: Readable when the supervisor has sent a message.
        listen: Handles one message of the supervisor, without waiting; False when there is none.
        client_doorbells: Doorbells of the attached clients by the numbers of their attachments; ``listen`` fills it.
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
        self.unrung: set[int] = set()  # owners without a doorbell here when one of their tasks ended
        self._epoll = select.epoll()
        # Edge-triggered: every ring wakes once, and no read of the counter is needed.
        self._epoll.register(doorbells[index], select.EPOLLIN | select.EPOLLET)
        self._epoll.register(control_fd, select.EPOLLIN)
        module, layout = native(), ddr.layout
        self.ffi, self.lib = module.ffi, module.lib
        self._place = self.ffi.from_buffer(ddr.map)  # keeps the mapping while C may use it
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
            raise MemoryError("The mailbox in C has no memory for this core.")
        self.core = self.ffi.gc(core, self.lib.hbrt_core_free)
        self.lib.hbrt_core_age(core, settings.integer("HBRT_AGING_MS") * 1_000_000)
        self.lib.hbrt_core_polls(core, poll_budget_ns())

    def claim(self, least_priority: int = 0, gives_up: Callable[[], bool] | None = None) -> int:
        """Take the best task that this core may run, of an urgent priority or of any; negative when there is none.

        Args:
            least_priority: 0 for any.
            gives_up: Whether to wait no longer for a lock that another process holds; None for a while.
        """
        slot: int = self.lib.hbrt_core_claim(self.core, least_priority)
        return self.claim_locked(least_priority, gives_up) if slot == LOCKED else slot

    def claim_locked(self, least_priority: int, gives_up: Callable[[], bool] | None) -> int:
        """As ``claim``, while another process holds the lock."""
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
        """Rank of the best announced task: its priority, if that is urgent; one below every rank for none."""
        rank: int = self.lib.hbrt_core_first_rank(self.core)
        return rank

    def unannounced(self) -> list[int]:
        """Slots that are READY for this core and not in its queue yet."""
        is_queued, core_count = self.lib.hbrt_core_is_queued, self.ddr.layout.core_count
        return [
            slot
            for slot in self.table.slots_in(State.READY)
            if not is_queued(self.core, slot) and may_run(self.index, self.table.request(slot).core_mask, core_count)
        ]

    def announce_all(self) -> None:
        """Announce all READY tasks by their state bytes: a lost announce byte never loses a task."""
        announced = self.ddr.layout.announced(self.index)
        for slot in self.unannounced():
            self.ddr.map[announced + slot] = 1

    def answer(self, owner: int, slot: int, *ending: int) -> None:
        """Publish the answer of a task, write LOOKING, wake the owner if it sleeps; ``ending`` as of hbrt_ending."""
        if self.lib.hbrt_core_answer(self.core, _ENDING.pack(slot, owner, *ending)) != 1:
            self.ring_late(owner)

    def ring_late(self, owner: int) -> None:
        """Ring an owner whose doorbell C does not know: it may lie in a message that this core has not read yet.

        Where the daemon could not send it, as this core's socket was full, the heartbeat rings.
        """
        number = attachment_number(self.ddr, owner)  # once: the id may get another owner meanwhile
        while number not in self.client_doorbells and self.listen():
            pass
        doorbell = self.client_doorbells.get(number)
        if doorbell is None:
            self.unrung.add(owner)
            return
        ring(doorbell)
        self.lib.hbrt_core_client(self.core, owner, number, doorbell)

    def doorbell_of(self, client: int) -> int | None:
        """The doorbell of an id's present owner; None while its message is still to be read."""
        return self.client_doorbells.get(attachment_number(self.ddr, client))

    def take_unrung(self) -> set[int]:
        """Owners that seemed awake when one of their tasks ended, or had no doorbell here, since the last time."""
        found = self.ffi.new("uint32_t[]", CLIENT_COUNT)
        count = self.lib.hbrt_core_unrung(self.core, found, CLIENT_COUNT)
        owners, self.unrung = self.unrung, set()
        return {*self.ffi.unpack(found, count), *owners}

    def discard_client(self, client: int) -> None:
        """Forget the doorbell of a client that is gone, which is about to be closed.

        ``unrung`` stays: the id's new owner may wait already, and a ring too many wakes a client for nothing.
        """
        self.lib.hbrt_core_client(self.core, client, 0, -1)

    def close(self) -> None:
        """Close what this object opened."""
        self._epoll.close()


class Running:
    """The op that a core runs now.

    Attributes:
        is_in_op: Whether it is in the op itself, where an urgent task may interrupt it.
        priority: Of its task.
        claim_ns: When its task was claimed.
    """

    __slots__ = ("claim_ns", "is_in_op", "priority")

    def __init__(self) -> None:
        self.is_in_op, self.priority, self.claim_ns = False, 0, 0


class Host(Protocol):
    """What the parts of a core need of it; see ``dsp_server.core.loop.Core``."""

    index: int
    mailbox: CoreMailbox
    engines: Engines
    now: Running
    ops: dict[int, Registration]

    def run(self, slot: int) -> None:
        """Run the op of a claimed slot and answer."""

    def running_op(self) -> Run | None:
        """The op that runs, for another thread."""

    def use_engines(self, tile_manager: TileManager, counter: CycleCounter, idma: Idma) -> None:
        """Have the op use these engines."""

    def returned(self, op: Registration, returned: object) -> tuple[int, str]:
        """Status and text for an op's return value other than 0."""

    def raised(self, op: Registration | None, cmd: int, error: BaseException) -> tuple[int, str]:
        """Status and text for an exception while a command was served."""

    def answer(
        self, slot: int, owner: int, outcome: tuple[int, str], times_ns: tuple[int, int], cycles_before: int
    ) -> None:
        """Publish the answer of a task."""
