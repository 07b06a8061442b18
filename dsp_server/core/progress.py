"""Whether the running op makes progress: a core's heartbeat samples its stack, at no cost to the op.

An op is stuck as long as each sample finds every frame of its thread at the same instruction, with the same local
variables. Samples always catch a Python loop where it jumps back, so its instruction alone shows no progress. Time
that the thread spends waiting for a CPU or in a debugger does not count. The daemon judges the result: see
dsp_server/lifecycle/health.py.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from dsp_server.process.proc_state import BUSY, state_of
from dsp_server.registry import Registration
from dsp_server.waits.flags import Flags
from hbrt.ddr.layout import BEAT_SECONDS, CORE_PROGRESS, PROGRESS
from hbrt.protocol.frame_values import variables

FEWEST_RUNS = 5  # with fewer runs, the usual duration of an op is not known
MAX_STEP_NS = int(2 * BEAT_SECONDS * 1e9)  # between two samples; if longer, this process was stopped or had no CPU
VALUES_AFTER_NS = 500_000_000  # earlier, only an op's instructions are compared
_MAX_FRAMES = 64
_LOOP = "dsp_server.core.loop"  # the frames below the op's
_PLAIN = frozenset({int, float, bool})  # compared by value, as a new object may reuse the address of a freed one
_DEBUGGERS = frozenset({"bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy"})
Place: TypeAlias = tuple[tuple[int, int], ...]
Values: TypeAlias = list[list[tuple[str, object]]]


class Run(NamedTuple):
    """The running op: claim time of its task, its registration, and its iDMA engine."""

    claim_ns: int
    op: Registration
    idma: Polled


class Polled(Protocol):
    """The parts of an iDMA engine that samples read."""

    polled: int

    @property
    def outstanding(self) -> int:
        """Number of descriptors that have not completed."""


def usable_ns(wall_ns: int, cpu_ns: int, delay_ns: int, *, is_runnable: bool) -> int:
    """How much of a time span a thread could have used: all of it except the time it waited for a CPU.

    Args:
        wall_ns: Length of the time span.
        cpu_ns: How long the thread had a CPU during it.
        delay_ns: How long it waited for a CPU during it, as far as the kernel reports this.
        is_runnable: Whether it has a CPU, or is waiting for one, at the end.
    """
    return min(wall_ns, cpu_ns if is_runnable else max(cpu_ns, wall_ns - delay_ns))


class Progress:
    """Samples of one core's ops.

    Args:
        shared: The DDR file's bytes.
        record: Offset of the core's record.
        thread: Id of the thread that runs the ops; it calls this constructor.
        running: Returns the running op, or None.
        ops: Registered ops by command number.
    """

    def __init__(
        self,
        shared: memoryview,
        record: int,
        thread: int,
        running: Callable[[], Run | None],
        ops: dict[int, Registration],
    ) -> None:
        self._shared = shared
        self._at = record + CORE_PROGRESS
        self._thread, self._native = thread, os.getpid()  # ops run in the main thread
        self._clock = time.pthread_getcpuclockid(thread)
        self._running = running
        self._ops = ops
        self._longest_ns: dict[int, int] = {}  # by command
        self._seen_runs: dict[int, int] = {}
        self._run: Run | None = None  # at the last sample
        self._looked_ns = self._cpu_ns = self._delay_ns = self._still_ns = self._still_cpu_ns = 0
        self._place: Place | None = None
        self._values: Values | None = None
        self._flags = Flags(shared)
        self._flag: tuple[int, int] | None = None  # offset in the DDR file, and size, of the memory that the op polls

    def look(self) -> None:
        """Take a sample; the heartbeat thread calls this every BEAT_SECONDS."""
        last, self._run = self._run, self._running()
        self._learn(last)
        if self._run is None:
            if last is not None:
                self._write(0, 0, 0, 0, 0, 0, 0, 0)
            return
        run = self._run
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the only way to see another thread
        place = _place_of(frame)
        values = _values_of(frame) if self._still_ns > VALUES_AFTER_NS else None
        now_ns, cpu_ns, delay_ns = time.monotonic_ns(), time.clock_gettime_ns(self._clock), self._run_delay_ns()
        has_moved = place is None or place != self._place or (bool(self._values) and values != self._values)
        if last is None or run.claim_ns != last.claim_ns or has_moved:
            self._still_ns = self._still_cpu_ns = 0
            self._flag = None
        else:
            used_ns = cpu_ns - self._cpu_ns
            is_runnable = state_of(os.getpid(), self._native) in BUSY
            wall_ns = min(now_ns - self._looked_ns, MAX_STEP_NS)
            self._still_ns += usable_ns(wall_ns, used_ns, delay_ns - self._delay_ns, is_runnable=is_runnable)
            self._still_cpu_ns += used_ns
        self._place, self._values = place, values if self._still_ns else None
        self._looked_ns, self._cpu_ns, self._delay_ns = now_ns, cpu_ns, delay_ns
        handle, run.idma.polled = run.idma.polled, 0
        if values is not None and self._still_ns and self._flag is None:
            self._flag = self._flags.read_by(frame)
        longest_ns = self._longest_ns.get(run.op.cmd, 0) if run.op.runs >= FEWEST_RUNS else 0
        still = (self._still_ns, self._still_cpu_ns)
        self._write(run.claim_ns, *still, longest_ns, handle, run.idma.outstanding, *(self._flag or (0, 0)))

    def _learn(self, last: Run | None) -> None:
        """Learn the durations of ops since the last sample, except first runs, which import and compile."""
        for cmd, op in list(self._ops.items()):
            if op.runs != self._seen_runs.get(cmd, 0):
                self._seen_runs[cmd] = op.runs
                if op.runs > 1:
                    self._note(cmd, op.last_ns)
        if last is not None and last.op.runs > 1 and (self._run is None or self._run.claim_ns != last.claim_ns):
            self._note(last.op.cmd, self._looked_ns - last.claim_ns)  # shorter ones may have followed

    def _note(self, cmd: int, took_ns: int) -> None:
        self._longest_ns[cmd] = max(took_ns, self._longest_ns.get(cmd, 0))

    def _run_delay_ns(self) -> int:
        """How long the thread has waited for a CPU, from /proc/PID/schedstat; 0 if the kernel does not report it."""
        try:
            return int(Path(f"/proc/self/task/{self._native}/schedstat").read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def _write(self, *fields: int) -> None:
        PROGRESS.pack_into(self._shared, self._at, *fields)


def _place_of(frame: Any) -> Place | None:
    """Code and instruction of each frame of a stack; None in a debugger."""
    place: list[tuple[int, int]] = []
    while frame is not None and len(place) < _MAX_FRAMES:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _DEBUGGERS:
            return None
        place.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(place)


def _values_of(frame: Any) -> Values:
    """The local variables of an op's frames: numbers by value, other objects by identity."""
    values: Values = []
    while frame is not None and len(values) < _MAX_FRAMES and frame.f_globals.get("__name__") != _LOOP:
        values.append([(name, it if type(it) in _PLAIN else id(it)) for name, it in variables(frame).items()])
        frame = frame.f_back
    return values
