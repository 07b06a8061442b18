"""A core's heartbeat: a thread that says the core lives, repairs a lost wake-up, and hears the urgent bell.

The core and its callers sleep without a time limit: arming and disarming a timer for each sleep costs more than the
rest of the sleep. Two processes that look at each other's flags across CPUs may, very rarely, each miss what the other
just wrote; the next beat finds that, at most BEAT_SECONDS later, and rings again.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import threading
import time
from collections.abc import Callable

from hbrt.ddr.layout import BEAT_SECONDS, CORE_BEAT_THREAD, CORE_HEARTBEAT

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
# Held by the beat's thread while it uses the clients' doorbells, and by whoever closes one: else a descriptor's number
# could be somebody's file by the time that it is rung.
doorbells_in_use = threading.Lock()


class Beat:
    """The beat of one core."""

    def __init__(
        self, shared: memoryview, record: int, look: Callable[[], None], urgent_bell: int, interrupt: Callable[[], None]
    ) -> None:
        """Beat for one core.

        Args:
            shared: The DDR file's bytes.
            record: Offset of the core's record.
            look: Called once a beat, in this thread; must be short.
            urgent_bell: An eventfd, rung for a task that may interrupt what the core runs.
            interrupt: Called in this thread when it was rung.
        """
        self._shared = shared
        self._record = record
        self._look = look
        self._urgent_bell = urgent_bell
        self._interrupt = interrupt
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._note()
        self._thread.start()

    def _run(self) -> None:
        _U32.pack_into(self._shared, self._record + CORE_BEAT_THREAD, threading.get_native_id())
        poller = select.poll()
        poller.register(self._urgent_bell, select.POLLIN)
        next_beat = time.monotonic() + BEAT_SECONDS
        while True:
            if poller.poll(max(0.0, next_beat - time.monotonic()) * 1000):
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._urgent_bell)
                self._interrupt()
            if time.monotonic() >= next_beat:
                next_beat += BEAT_SECONDS
                self._note()
                self._look()

    def _note(self) -> None:
        _U64.pack_into(self._shared, self._record + CORE_HEARTBEAT, time.monotonic_ns())
