"""A core's heartbeat thread: shows that the core is alive, repairs lost wake-ups, waits for the urgent doorbell.

The core and its callers sleep without a timeout, because setting and clearing a timer for each sleep costs more than
the rest of the sleep. Very rarely, two processes that read each other's flags on different CPUs may each miss the
other's write; then the next heartbeat, at most BEAT_SECONDS later, finds the task and rings again.
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
# Held by the heartbeat thread while it uses clients' doorbells, and by a thread that closes one: otherwise a ring
# could go to another file that has reused the descriptor number.
doorbells_in_use = threading.Lock()


class Heartbeat:
    """The heartbeat of one core.

    Args:
        shared: The DDR file's bytes.
        record: Offset of the core's record.
        on_beat: Functions to call at each heartbeat, in this thread; each must be short.
        urgent_doorbell: An eventfd that is rung for tasks that may interrupt the core's op.
        interrupt: Called in this thread when the urgent doorbell has rung.
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
        # Stored as one word: struct writes zeros first, and a supervisor that read those would think the core stalled.
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
    """What the heartbeat thread repairs and publishes for one core.

    Attributes:
        is_rescan_due: Whether the core should announce all READY tasks to itself.
    """

    def __init__(self, core: Host, ops_in_c: OpsInC, preemption: Preemption) -> None:
        self._core, self._ops_in_c, self._preemption = core, ops_in_c, preemption
        self._mailbox = core.mailbox
        layout = core.mailbox.ddr.layout
        self._record = layout.core(core.index)
        self._activities = [layout.core(one) + CORE_ACTIVITY for one in range(len(core.mailbox.doorbells))]
        self._ended_at_last_beat = -1  # count of ended tasks when the last heartbeat saw this core LOOKING
        self.is_rescan_due = False

    def rescan(self) -> None:
        """Wake sleepers that have missed a wake-up."""
        mailbox, preemption, activity = self._mailbox, self._preemption, self._record + CORE_ACTIVITY
        mm, doorbell = mailbox.ddr.map, mailbox.doorbells[self._core.index]
        if self._ops_in_c.take_runs():
            # A signal that arrived while C was running ops has not been handled yet.
            mailbox.lib.hbrt_core_interrupt(mailbox.core)
            if mm[activity] == ASLEEP:
                preemption.interrupt()
        if mm[activity] == STALLED:  # the supervisor saw heartbeats missing and marked this core
            mm[activity] = RUNNING if self._core.running_op() else LOOKING
            self.is_rescan_due = True
            ring(doorbell)
        if mm[activity] == ASLEEP and mailbox.unannounced():
            self.is_rescan_due = True
            empty(doorbell)  # ringing a full counter would block
            ring(doorbell)
        self._free_stuck_ring()
        if self._is_urgent_missed() or preemption.is_due:
            preemption.is_due = False
            preemption.interrupt()
        with doorbells_in_use:
            for owner in mailbox.take_unrung():
                bell = mailbox.doorbell_of(owner)
                if bell is None:
                    mailbox.unrung.add(owner)  # its message has not been read yet
                # Even an owner that seems awake: the core that cleared its flag may have been stopped before its ring.
                elif has_room(bell):
                    ring(bell)

    def _is_urgent_missed(self) -> bool:
        """Whether a task is announced while all cores are busy, so that an urgent ring may have been lost."""
        ddr = self._mailbox.ddr
        if any(ddr.map[at] in _FREE for at in self._activities):
            return False
        announced = ddr.layout.announced(self._core.index)
        return ddr.map.find(ANNOUNCED, announced, announced + ddr.layout.slot_count) >= 0

    def show_tcm(self) -> None:
        """Publish which TCM is in use."""
        with contextlib.suppress(RuntimeError):  # the op changed the list meanwhile; the next beat retries
            tiles = [*self._ops_in_c.tiles(), *self._core.engines.tile_manager.live()]
            bits = bits_in_use(tiles, 0), bits_in_use(tiles, 1)
            TCM_BITS.pack_into(self._mailbox.ddr.map, self._record + CORE_TCM, *bits)

    def _free_stuck_ring(self) -> None:
        """Empty clients' doorbells that are full: ringing a full one would block this core forever."""
        ended, mm = -1, self._mailbox.ddr.map
        if mm[self._record + CORE_ACTIVITY] == LOOKING:
            (ended,) = _U64.unpack_from(mm, self._record + CORE_TASKS)
        if ended >= 0 and ended == self._ended_at_last_beat:
            with doorbells_in_use:
                for doorbell in list(self._mailbox.client_doorbells.values()):
                    if not has_room(doorbell):
                        empty(doorbell)
        self._ended_at_last_beat = ended
