"""A core's heartbeat: a thread that shows that the core lives, repairs lost wake-ups, and waits on the urgent doorbell.

The core and its callers sleep without a time limit: arming and disarming a timer for each sleep costs more than the
rest of the sleep. Two processes that read each other's flags across CPUs may, very rarely, each miss the other's write;
the rescan at the next heartbeat finds the task, at most BEAT_SECONDS later, and rings again.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dsp_server.hardware.tcm import bits_in_use
from hbrt.ddr.layout import (
    BEAT_SECONDS,
    CORE_ACTIVITY,
    CORE_BEAT_THREAD,
    CORE_HEARTBEAT,
    CORE_TASKS,
    CORE_TCM,
    TCM_BITS,
)
from hbrt.mailbox.doorbell import empty, has_room, ring
from hbrt.mailbox.schedule import ASLEEP, LOOKING, RUNNING, STALLED

if TYPE_CHECKING:
    from dsp_server.core.core_mailbox import Host
    from dsp_server.core.ops_in_c import OpsInC
    from dsp_server.core.preemption import Preemption

ANNOUNCED = b"\1"
_FREE = frozenset({ASLEEP, LOOKING})
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
# Held by the heartbeat's thread while it uses the clients' doorbells, and by the thread that closes one: otherwise a
# ring could reach another file with the same descriptor number.
doorbells_in_use = threading.Lock()


class Heartbeat:
    """The heartbeat of one core.

    Args:
        shared: The DDR file's bytes.
        record: Offset of the core's record.
        on_beat: Each is called once a heartbeat, in this thread; they must be short.
        urgent_doorbell: An eventfd, rung for a task that may interrupt the core's op.
        interrupt: Called in this thread when the urgent doorbell rang.
    """

    def __init__(
        self,
        shared: memoryview,
        record: int,
        on_beat: Sequence[Callable[[], None]],
        urgent_doorbell: int,
        interrupt: Callable[[], None],
    ) -> None:
        self._shared = shared
        self._record = record
        # Stored as one word: struct writes zeros first, and a supervisor that sees them takes the core for stalled.
        self._beat_ns = shared[record + CORE_HEARTBEAT : record + CORE_HEARTBEAT + 8].cast("Q")
        self._on_beat = on_beat
        self._urgent_doorbell = urgent_doorbell
        self._interrupt = interrupt
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._write()
        self._thread.start()

    def _run(self) -> None:
        _U32.pack_into(self._shared, self._record + CORE_BEAT_THREAD, threading.get_native_id())
        poller = select.poll()
        poller.register(self._urgent_doorbell, select.POLLIN)
        next_beat = time.monotonic() + BEAT_SECONDS
        while True:
            if poller.poll(max(0.0, next_beat - time.monotonic()) * 1000):
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._urgent_doorbell)
                self._interrupt()
            if time.monotonic() >= next_beat:
                next_beat += BEAT_SECONDS
                self._write()
                for look in self._on_beat:
                    look()

    def _write(self) -> None:
        self._beat_ns[0] = time.monotonic_ns()


class Repairs:
    """What the heartbeat's thread repairs and shows of one core.

    Attributes:
        is_rescan_due: The core is to announce all READY tasks to itself.
    """

    def __init__(self, core: Host, ops_in_c: OpsInC, preemption: Preemption) -> None:
        self._core, self._ops_in_c, self._preemption = core, ops_in_c, preemption
        self._mailbox = core.mailbox
        layout = core.mailbox.ddr.layout
        self._record = layout.core(core.index)
        self._activities = [layout.core(one) + CORE_ACTIVITY for one in range(len(core.mailbox.doorbells))]
        self._ended_at_last_beat = -1  # number of ended tasks when the last heartbeat found this core LOOKING
        self.is_rescan_due = False

    def rescan(self) -> None:
        """Wake sleepers that missed a wake-up."""
        mailbox, preemption, activity = self._mailbox, self._preemption, self._record + CORE_ACTIVITY
        mm, doorbell = mailbox.ddr.map, mailbox.doorbells[self._core.index]
        if self._ops_in_c.take_runs():
            # A signal that came while C ran its ops is not handled yet.
            mailbox.lib.hbrt_core_interrupt(mailbox.core)
            if mm[activity] == ASLEEP:
                preemption.interrupt()
        if mm[activity] == STALLED:  # the supervisor missed heartbeats and marked this core
            mm[activity] = RUNNING if self._core.running_op() else LOOKING
            self.is_rescan_due = True
            ring(doorbell)
        if mm[activity] == ASLEEP and mailbox.unannounced():
            self.is_rescan_due = True
            empty(doorbell)  # a ring of a full counter would wait
            ring(doorbell)
        self._free_stuck_ring()
        if self._is_urgent_missed() or preemption.is_due:
            preemption.is_due = False
            preemption.interrupt()
        with doorbells_in_use:
            for owner in mailbox.take_unrung():
                bell = mailbox.doorbell_of(owner)
                if bell is None:
                    mailbox.unrung.add(owner)  # its message is still to be read
                # Also an owner that seems awake: the core that cleared its flag may have been stopped before its ring.
                elif has_room(bell):
                    ring(bell)

    def _is_urgent_missed(self) -> bool:
        """Whether a task is announced while all cores are busy: an urgent ring may be lost."""
        ddr = self._mailbox.ddr
        if any(ddr.map[at] in _FREE for at in self._activities):
            return False
        announced = ddr.layout.announced(self._core.index)
        return ddr.map.find(ANNOUNCED, announced, announced + ddr.layout.slot_count) >= 0

    def show_tcm(self) -> None:
        """Write which TCM is in use."""
        with contextlib.suppress(RuntimeError):  # the op has changed the list meanwhile; the next beat looks again
            tiles = [*self._ops_in_c.tiles(), *self._core.engines.tile_manager.live()]
            bits = bits_in_use(tiles, 0), bits_in_use(tiles, 1)
            TCM_BITS.pack_into(self._mailbox.ddr.map, self._record + CORE_TCM, *bits)

    def _free_stuck_ring(self) -> None:
        """Empty the full doorbells of clients: a ring of a full one would block this core for ever."""
        ended, mm = -1, self._mailbox.ddr.map
        if mm[self._record + CORE_ACTIVITY] == LOOKING:
            (ended,) = _U64.unpack_from(mm, self._record + CORE_TASKS)
        if ended >= 0 and ended == self._ended_at_last_beat:
            with doorbells_in_use:
                for doorbell in list(self._mailbox.client_doorbells.values()):
                    if not has_room(doorbell):
                        empty(doorbell)
        self._ended_at_last_beat = ended
