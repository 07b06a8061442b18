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

from hbrt.ddr.layout import BEAT_SECONDS, CORE_BEAT_THREAD, CORE_HEARTBEAT

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
        _U64.pack_into(self._shared, self._record + CORE_HEARTBEAT, time.monotonic_ns())
