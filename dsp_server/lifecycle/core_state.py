"""A core as the supervisor sees it: its state, its processes, and its record in the DDR file."""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from dsp_server.hardware.tcm import as_text
from dsp_server.lifecycle import health
from dsp_server.lifecycle.child import CoreChild, OpRow, name_in
from dsp_server.lifecycle.life import STATES, Core
from dsp_server.process.proc_state import BUSY, STOPPED, state_of
from dsp_server.waits.records import Flag
from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import (
    ACTIVITY_OFFLINE,
    ACTIVITY_STALLED,
    CLIENT_COUNT,
    CLIENT_GONE,
    CORE_ACTIVITY,
    CORE_BEAT_THREAD,
    CORE_EPOCH,
    CORE_HEARTBEAT,
    CORE_PID,
    CORE_PROGRESS,
    CORE_STATE,
    CORE_TASKS,
    CORE_TCM,
    PROGRESS,
    TCM_BITS,
)
from hbrt.mailbox.table import Request
from hbrt.models.run.accelerator import STOP_AT

_MAX_IMAGES = 64  # number of past images whose ops are remembered per core
_LONGEST_VALUE = 8  # size in bytes of the largest flag whose value a sentence shows
_COUNTERS = struct.Struct("<QQQ")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class OpProgress(NamedTuple):
    """What the last beat saw of the running op; times in ns, all 0 without one. See dsp_server/core/progress.py."""

    claim_ns: int  # when its task was claimed, CLOCK_MONOTONIC
    still_ns: int
    cpu_ns: int
    longest_ns: int
    dma_handle: int  # the handle that it polls; 0 for none
    dma_outstanding: int  # number of outstanding descriptors
    flag_offset: int  # of what its loop reads, in the DDR file; 0 if unknown
    flag_bytes: int


class BoardCore:
    """One core: its state, its processes, and its record in the DDR file."""

    def __init__(self, index: int, ddr: Ddr, life: Core, children: Mapping[int, CoreChild]) -> None:
        """``children`` are the board's processes by number."""
        self.index = index
        self.life = life  # as last decided by lifecycle.py
        self._children = children
        # Start time (CLOCK_MONOTONIC, ns) and the ops that it served from then on, latest last.
        self._served: deque[tuple[int, list[OpRow]]] = deque(maxlen=_MAX_IMAGES)
        self._ddr = ddr
        self._map = ddr.map
        self._record = ddr.layout.core(index)
        self.activity_at = self._record + CORE_ACTIVITY  # offset in the DDR file
        self.publish(ACTIVITY_OFFLINE)

    @property
    def child(self) -> CoreChild | None:
        """The process that is serving."""
        return self._children.get(self.life.process.id) if self.life.process else None

    @property
    def candidate(self) -> CoreChild | None:
        """The process that is to serve next."""
        return self._children.get(self.life.candidate.id) if self.life.candidate else None

    def go(self, child: CoreChild) -> None:
        """Let its next process start claiming tasks."""
        if not self._served or self._served[-1][1] != child.ops:
            self._served.append((time.monotonic_ns(), child.ops))
        child.go(self.counters()["tasks"])

    def name_at(self, cmd: int, at_ns: int) -> str:
        """Return the name of a command's op at a given time (CLOCK_MONOTONIC, ns); empty if unknown."""
        ops = next((ops for since_ns, ops in reversed(self._served) if since_ns <= at_ns), None)
        return "" if ops is None else name_in(ops, cmd)

    def counters(self) -> dict[str, int]:
        """The counters that the core's processes keep in its record."""
        tasks, busy_ns, cycles = _COUNTERS.unpack_from(self._map, self._record + CORE_TASKS)
        return {"tasks": tasks, "busy_ns": busy_ns, "cycles": cycles}

    def heartbeat_ns(self) -> int:
        """CLOCK_MONOTONIC of the last heartbeat; starting to serve counts as one."""
        beat: int = _U64.unpack_from(self._map, self._record + CORE_HEARTBEAT)[0]
        return max(beat, int(self.child.served_since * 1e9)) if self.child is not None else beat

    def health(self, now_ns: int, run: health.OpRun | None = None) -> health.CoreHealth:
        """Assess the core's health by its last heartbeat and running op; ``now_ns`` is CLOCK_MONOTONIC."""
        if self.life.is_wanted and not self.life.epoch:
            return health.CoreHealth("starting", None)
        return health.of_core(self.life.state, self.heartbeat_ns(), now_ns, self._is_starved, run)

    def progress(self, claim_ns: int) -> OpProgress:
        """Return what the last beat saw of the task claimed at this time; zeros if it saw another task or none."""
        seen = self.last_progress()
        return seen if seen.claim_ns == claim_ns else OpProgress(0, 0, 0, 0, 0, 0, 0, 0)

    def tcm(self) -> list[str]:
        """Return the TCM in use at the last beat: one text per bank, see ``tcm.as_text``."""
        seen = TCM_BITS.unpack_from(self._map, self._record + CORE_TCM)
        return [as_text(bits if self.child is not None else 0) for bits in seen]

    def is_unwanted(self, run: Request) -> bool:
        """Whether a model run's program has canceled it or is gone. Programs may write anything into a request."""
        has_gone = run.client < CLIENT_COUNT and self._map[self._ddr.layout.client(run.client) + CLIENT_GONE]
        has_block = self._ddr.block_at(run.input_phy) is not None
        return bool(has_gone or (has_block and self._map[self._ddr.offset_of(run.input_phy) + STOP_AT]))

    def last_progress(self) -> OpProgress:
        """Return what the last beat saw, whatever was running then."""
        return OpProgress(*PROGRESS.unpack_from(self._map, self._record + CORE_PROGRESS))

    def flag(self, seen: OpProgress) -> Flag | None:
        """Return the memory that the op polls and its current value; None if unknown."""
        if not seen.flag_bytes:
            return None
        start, size_bytes = seen.flag_offset, seen.flag_bytes
        phy_addr = start - self._ddr.offset_of(0)
        block = self._ddr.block_at(phy_addr)
        if block is None:
            return None  # freed meanwhile, or the record was overwritten by a stray write
        users = {block.owner, *self._ddr.sharers(phy_addr)} - {0}
        # Another library's memory is not in this mapping.
        is_shown = size_bytes <= _LONGEST_VALUE and not self._ddr.imported(phy_addr)
        value = bytes(self._map[start : start + size_bytes]).hex() if is_shown else ""
        return Flag(phy_addr, size_bytes, value, block.phy_addr, block.size_bytes, tuple(sorted(users)))

    @property
    def is_stopped(self) -> bool:
        """Whether its process is stopped by a signal or a debugger."""
        return self.child is not None and state_of(self.child.pid) in STOPPED

    def is_stalled(self, now_ns: int) -> bool:
        """Whether the core has no heartbeat even though it gets a CPU."""
        return self.health(now_ns).word == "stalled" and not self._is_starved()

    def mark_stalled(self) -> None:
        """Mark the core as stalled, so that submitters do not ring it.

        If the core resumes at this very moment, its own write replaces the mark, or its next heartbeat removes it.
        """
        self._map[self.activity_at] = ACTIVITY_STALLED

    def _is_starved(self) -> bool:
        """Whether the heartbeat thread waits for a CPU; as long as that thread is unknown, the main thread."""
        if self.child is None:
            return False
        thread: int = _U32.unpack_from(self._map, self._record + CORE_BEAT_THREAD)[0]
        state = (thread and state_of(self.child.pid, thread)) or state_of(self.child.pid)
        return state in BUSY

    def publish(self, activity: int | None = None) -> None:
        """Write the core's state to its record; ``activity`` only if no process of the core is writing it."""
        mm, record = self._map, self._record
        mm[record + CORE_STATE] = STATES.index(self.life.state)
        mm[record + CORE_PID : record + CORE_PID + 4] = (self.child.pid if self.child else 0).to_bytes(4, "little")
        mm[record + CORE_EPOCH : record + CORE_EPOCH + 8] = self.life.epoch.to_bytes(8, "little")
        if activity is not None:
            mm[record + CORE_ACTIVITY] = activity
