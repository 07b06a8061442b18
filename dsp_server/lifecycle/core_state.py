"""A core of the board as the supervisor sees it: its state, the process that is it, and the one that will be."""

from __future__ import annotations

import struct
import time

from dsp_server.lifecycle import health
from dsp_server.lifecycle.child import CoreChild, Phase
from dsp_server.lifecycle.restart_policy import Death, History
from dsp_server.lifecycle.snapshots import Image
from dsp_server.process.event_loop import Timer
from dsp_server.process.proc_state import BUSY, STOPPED, state_of
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import (
    ACTIVITY_ASLEEP,
    ACTIVITY_LOOKING,
    ACTIVITY_OFFLINE,
    ACTIVITY_RUNNING,
    ACTIVITY_STALLED,
    CORE_ACTIVITY,
    CORE_BEAT_THREAD,
    CORE_EPOCH,
    CORE_HEARTBEAT,
    CORE_PID,
    CORE_STATE,
    CORE_TASKS,
)

OFFLINE, RUNNING, CRASHED = "offline", "running", "crashed"  # the words of Linux remoteproc
STATES = (OFFLINE, RUNNING, CRASHED)
# What may follow what; anything else is a named error that changes nothing.
MOVES = {(OFFLINE, RUNNING), (RUNNING, OFFLINE), (RUNNING, CRASHED), (CRASHED, RUNNING), (CRASHED, OFFLINE)}

# Of a core that no process serves, submitters read one of these: its queue waits for the next process, which looks at
# everything first, so that nobody rings it; or nothing may be queued for it.
ACTIVITY_BETWEEN = ACTIVITY_RUNNING
_COUNTERS = struct.Struct("<QQQ")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class CoreStateError(RuntimeError):
    """A core was asked for something that its state does not allow; nothing was changed."""


class BoardCore:
    """One core of the board: its state, the process that is it, and the one that will be."""

    def __init__(self, index: int, ddr: Ddr, image: Image) -> None:
        self.index = index
        self.image = image  # what it runs, and runs again after a crash
        self.state = OFFLINE
        self.is_wanted = False  # whether it should run, whatever happens to its processes
        self.child: CoreChild | None = None
        self.candidate: CoreChild | None = None
        self.epoch = 0
        self.crashes = 0
        self.last_crash = ""
        self.history = History()
        self.retry: Timer | None = None  # its next start after a crash
        self._map = ddr.map
        self._record = ddr.layout.core(index)
        self.activity_at = self._record + CORE_ACTIVITY  # offset in the DDR file
        self.publish(ACTIVITY_OFFLINE)

    def move(self, to: str) -> None:
        """Change state.

        Raises:
            CoreStateError: the move is not one.
        """
        if (self.state, to) not in MOVES:
            raise CoreStateError(f"Core {self.index} is {self.state}; it cannot become {to}. Nothing was changed.")
        self.state = to

    def promote(self) -> None:
        """Make the ready candidate the core's process and let it claim tasks.

        Raises:
            CoreStateError: there is no ready candidate, or the last process has not ended.
        """
        child, self.candidate = self.candidate, None
        if child is None or child.phase is not Phase.READY or self.child is not None:
            raise CoreStateError(f"Core {self.index} has no process that could take over, or still has its last one.")
        self.child = child
        self.image = child.image
        self.epoch += 1
        if self.state != RUNNING:
            self.move(RUNNING)
        self.publish(ACTIVITY_BETWEEN)
        child.go(self.counters()["tasks"])

    def death_of(self, child: CoreChild, *, had_task: bool) -> Death:
        """What the recovery rules need to know of a process that died."""
        if child.phase is not Phase.SERVING:
            return Death(0.0, 0, had_task=False)
        ended = self.counters()["tasks"] - child.tasks_before
        return Death(time.monotonic() - child.served_since, ended, had_task)

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
        return health.of_core(self.state, self.heartbeat_ns(), now_ns, self._is_starved)

    @property
    def is_stopped(self) -> bool:
        """Whether its process is stopped by a signal or a debugger."""
        return self.child is not None and state_of(self.child.pid) in STOPPED

    def mark_if_stalled(self, now_ns: int) -> bool:
        """Mark an idle core that does not beat, so that nobody rings it; returns whether it is one.

        It may go on at this moment: then its own word replaces the mark, or its next beat takes it away.
        """
        if self.health(now_ns).word != "stalled" or self._is_starved():
            return False
        if self._map[self.activity_at] in {ACTIVITY_ASLEEP, ACTIVITY_LOOKING}:
            self._map[self.activity_at] = ACTIVITY_STALLED
        return self._map[self.activity_at] == ACTIVITY_STALLED

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
        mm[record + CORE_STATE] = STATES.index(self.state)
        mm[record + CORE_PID : record + CORE_PID + 4] = (self.child.pid if self.child else 0).to_bytes(4, "little")
        mm[record + CORE_EPOCH : record + CORE_EPOCH + 8] = self.epoch.to_bytes(8, "little")
        if activity is not None:
            mm[record + CORE_ACTIVITY] = activity
