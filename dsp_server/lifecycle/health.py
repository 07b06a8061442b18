"""Whether a board is healthy, judged by its cores' heartbeats and their ops' progress: rules only.

A core writes a heartbeat every BEAT_SECONDS. A late heartbeat means that the core hangs, or is in C code that keeps the
interpreter lock; either way it serves no tasks. Heartbeats are also late on a busy machine: while the thread waits for
a CPU, the limit is STALE_SECONDS. A core that should be running but is not is unhealthy.

A core that runs an op is busy. It is stuck if the op exceeds its stated latency, or has made no progress (which the
core's heartbeat samples, see dsp_server/core/progress.py) for USUAL_TIMES times its longest run so far; also, for at
least WAITS_SECONDS if it waits, or COMPUTES_SECONDS if it computes in one call: it may have more data than usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dsp_server.waits.span import span

LATE_SECONDS = 0.1  # a hang is reported within this time
STALE_SECONDS = 0.2
USUAL_TIMES = 10
WAITS_SECONDS = 1.0
COMPUTES_SECONDS = 5.0
HEALTHY = frozenset({"ok", "busy", "starting"})
_NS = 1_000_000_000


class CoreHealth(NamedTuple):
    """One core's health and the age of its last beat.

    The word is ``ok``, ``busy``, ``stuck``, ``stalled``, its state if it is not running, or ``starting`` before it
    first serves.
    """

    word: str
    beat_age_s: float | None


class OpRun(NamedTuple):
    """The op that a core is running.

    Attributes:
        op: Name of the op, such as "softmax (command 0x400)".
        took_s: Time since its task was claimed.
        stated_s: Its stated latency; 0 for none.
        still_s: How long its stack has not changed.
        cpu_s: How long its thread had a CPU during that time.
        longest_s: Its longest run so far; 0 before it has run several times.
    """

    op: str
    took_s: float
    stated_s: float = 0.0
    still_s: float = 0.0
    cpu_s: float = 0.0
    longest_s: float = 0.0

    @property
    def computes(self) -> bool:
        """Whether it uses a CPU while its stack does not change."""
        return self.cpu_s > self.still_s / 2

    @property
    def is_late(self) -> bool:
        """Whether it has exceeded its stated latency."""
        return 0 < self.stated_s < self.took_s

    @property
    def is_stuck(self) -> bool:
        """Whether it is not expected to end by itself."""
        floor_s = COMPUTES_SECONDS if self.computes else WAITS_SECONDS
        return self.is_late or 0 < self.longest_s * USUAL_TIMES < self.still_s > floor_s


def of_core(
    state: str, heartbeat_ns: int, now_ns: int, is_starved: Callable[[], bool], run: OpRun | None = None
) -> CoreHealth:
    """Assess a core's health.

    Args:
        state: offline, running or crashed.
        heartbeat_ns: CLOCK_MONOTONIC of its last heartbeat; 0 for none.
        now_ns: CLOCK_MONOTONIC now.
        is_starved: Whether the heartbeat thread waits for a CPU; called only if the result depends on it.
        run: The op that it is running, or None.
    """
    if state != "running":
        return CoreHealth(state, None)
    age_s = max(0, now_ns - heartbeat_ns) / _NS
    is_stalled = age_s > STALE_SECONDS or (age_s > LATE_SECONDS and not is_starved())
    if is_stalled:
        return CoreHealth("stalled", age_s)
    return CoreHealth("ok" if run is None else "stuck" if run.is_stuck else "busy", age_s)


def of_board(cores: list[CoreHealth]) -> bool:
    """Whether no core is known to be unwell."""
    return all(core.word in HEALTHY for core in cores)


def problem(
    core: str, health: CoreHealth, run: OpRun | None, last_crash: str, *, is_stopped: bool, comes_back: bool
) -> str:
    """Return a sentence about a core that is not healthy; empty for a healthy one.

    Args:
        core: Its name, such as "Core 0 (process 123)".
        health: Its health.
        run: The op that it is running, or None.
        last_crash: A sentence about its last crash; empty if there was none.
        is_stopped: Whether its process is stopped.
        comes_back: Whether it restarts automatically.
    """
    if health.word in HEALTHY:
        return ""
    if health.word == "stuck" and run is not None:
        return f"{core} is stuck: {why_stuck(run)}"
    if health.word == "crashed":
        then = "it restarts automatically" if comes_back else "it stays down until you restart it"
        return f"{core} has crashed; {then}. {last_crash}".rstrip()
    if health.word != "stalled":
        return f"{core} is {health.word}."
    doing = f"while it runs {run.op}" if run else "and runs no op"
    if is_stopped:
        why = "its process is stopped, by a signal (SIGSTOP) or a debugger"
    elif run:
        why = "the op is in C code that does not release Python's global interpreter lock"
    else:
        why = "something in its process holds Python's global interpreter lock"
    return f"{core} has had no heartbeat for {health.beat_age_s or 0.0:.1f} s {doing}: {why}."


def why_stuck(run: OpRun) -> str:
    """Return a sentence about an op that is stuck."""
    if run.is_late:
        return f"{run.op} has run for {span(run.took_s)}; its stated latency is {span(run.stated_s)}."
    how = "has computed in one call" if run.computes else "has waited in one place"
    return f"{run.op} {how} for {span(run.still_s)}; its longest run so far took {span(run.longest_s)}."
