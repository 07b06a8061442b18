"""A core of the board as the supervisor sees it: its life, its processes, and what it writes into the DDR file."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from dsp_server.lifecycle import health
from dsp_server.lifecycle.child import CoreChild
from dsp_server.lifecycle.life import STATES, Core
from dsp_server.process.proc_state import BUSY, STOPPED, state_of
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import (
    ACTIVITY_OFFLINE,
    ACTIVITY_STALLED,
    CORE_ACTIVITY,
    CORE_BEAT_THREAD,
    CORE_EPOCH,
    CORE_HEARTBEAT,
    CORE_PID,
    CORE_STATE,
    CORE_TASKS,
)

_COUNTERS = struct.Struct("<QQQ")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class BoardCore:
    """One core of the board, as others see it: its life, its processes, and its record in the DDR file."""

    def __init__(self, index: int, ddr: Ddr, life: Core, children: Mapping[int, CoreChild]) -> None:
        """``children`` are the board's processes by their number."""
        self.index = index
        self.life = life  # as lifecycle.py last decided
        self._children = children
        self._map = ddr.map
        self._record = ddr.layout.core(index)
        self.activity_at = self._record + CORE_ACTIVITY  # offset in the DDR file
        self.publish(ACTIVITY_OFFLINE)

    @property
    def child(self) -> CoreChild | None:
        """The process that serves."""
        return self._children.get(self.life.process.id) if self.life.process else None

    @property
    def candidate(self) -> CoreChild | None:
        """The process that is to take over."""
        return self._children.get(self.life.candidate.id) if self.life.candidate else None

    def counters(self) -> dict[str, int]:
        """Counters that the core's processes keep in its record."""
        tasks, busy_ns, cycles = _COUNTERS.unpack_from(self._map, self._record + CORE_TASKS)
        return {"tasks": tasks, "busy_ns": busy_ns, "cycles": cycles}

    def heartbeat_ns(self) -> int:
        """CLOCK_MONOTONIC of the last beat; a process that has just begun to serve counts as beating."""
        beat: int = _U64.unpack_from(self._map, self._record + CORE_HEARTBEAT)[0]
        return max(beat, int(self.child.served_since * 1e9)) if self.child is not None else beat

    def health(self, now_ns: int) -> health.CoreHealth:
        """Health by the last beat; ``now_ns`` is CLOCK_MONOTONIC."""
        return health.of_core(self.life.state, self.heartbeat_ns(), now_ns, self._is_starved)

    @property
    def is_stopped(self) -> bool:
        """Whether its process is stopped by a signal or a debugger."""
        return self.child is not None and state_of(self.child.pid) in STOPPED

    def is_stalled(self, now_ns: int) -> bool:
        """Whether it does not beat, although it has a CPU."""
        return self.health(now_ns).word == "stalled" and not self._is_starved()

    def mark_stalled(self) -> None:
        """Have nobody ring the core.

        It may go on at this moment: then its own word replaces the mark, or its next beat takes it away.
        """
        self._map[self.activity_at] = ACTIVITY_STALLED

    def _is_starved(self) -> bool:
        """Whether the thread that beats, or the main one as long as it is not known, waits for a CPU."""
        if self.child is None:
            return False
        thread: int = _U32.unpack_from(self._map, self._record + CORE_BEAT_THREAD)[0]
        state = (thread and state_of(self.child.pid, thread)) or state_of(self.child.pid)
        return state in BUSY

    def publish(self, activity: int | None = None) -> None:
        """Write the core's state into its record; ``activity`` only while no process of the core writes it."""
        mm, record = self._map, self._record
        mm[record + CORE_STATE] = STATES.index(self.life.state)
        mm[record + CORE_PID : record + CORE_PID + 4] = (self.child.pid if self.child else 0).to_bytes(4, "little")
        mm[record + CORE_EPOCH : record + CORE_EPOCH + 8] = self.life.epoch.to_bytes(8, "little")
        if activity is not None:
            mm[record + CORE_ACTIVITY] = activity
