"""Whether a board is healthy, by the heartbeats of its cores and the progress of their ops: rules only.

A core writes a heartbeat every BEAT_SECONDS. A late heartbeat means that the core hangs, or is in C code that keeps the
interpreter lock; either way it serves no task. On a busy machine a heartbeat is late too: while its thread waits for a
CPU, the limit is STALE_SECONDS. A core that should run and does not is not healthy.

A core that runs an op is busy. It is stuck when the op runs beyond its stated latency, or stands still (the core's
heartbeat looks, see dsp_server/core/progress.py) for USUAL_TIMES times its longest run so far. A wait must also stand
still for WAITS_SECONDS, and one call that computes for COMPUTES_SECONDS: it may have more data than usual.
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
    """One core and its beat's age.

    The word is ``ok``, ``busy``, ``stuck``, ``stalled``, its state when it does not run, or ``starting`` before it
    serves for the first time.
    """

    word: str
    beat_age_s: float | None


class OpRun(NamedTuple):
    """The op that a core runs.

    Attributes:
        op: Such as "softmax (command 0x400)".
        took_s: Since its task was claimed.
        stated_s: Its stated latency, 0 for none.
        still_s: How long its stack has stood still.
        cpu_s: How long its thread had a CPU in that time.
        longest_s: Its longest run so far, 0 before it has run several times.
    """

    op: str
    took_s: float
    stated_s: float = 0.0
    still_s: float = 0.0
    cpu_s: float = 0.0
    longest_s: float = 0.0

    @property
    def computes(self) -> bool:
        """Whether it uses a CPU where it stands still."""
        return self.cpu_s > self.still_s / 2

    @property
    def is_late(self) -> bool:
        """Whether it runs beyond its stated latency."""
        return 0 < self.stated_s < self.took_s

    @property
    def is_stuck(self) -> bool:
        """Whether it is not expected to end by itself."""
        floor_s = COMPUTES_SECONDS if self.computes else WAITS_SECONDS
        return self.is_late or 0 < self.longest_s * USUAL_TIMES < self.still_s > floor_s


def of_core(
    state: str, heartbeat_ns: int, now_ns: int, is_starved: Callable[[], bool], run: OpRun | None = None
) -> CoreHealth:
    """Health of a core.

    Args:
        state: offline, running or crashed.
        heartbeat_ns: CLOCK_MONOTONIC of its last heartbeat, 0 for none.
        now_ns: The same clock now.
        is_starved: Whether the heartbeat's thread waits for a CPU; called only when the result depends on it.
        run: The op that it runs, or None.
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
    """A sentence on a core that is not healthy, empty for one that is.

    Args:
        core: Its name, such as "Core 0 (process 123)".
        health: Its health.
        run: The op that it runs, or None.
        last_crash: Sentence on its last crash; empty when there was none.
        is_stopped: Whether its process is stopped.
        comes_back: Whether it restarts by itself.
    """
    if health.word in HEALTHY:
        return ""
    if health.word == "stuck" and run is not None:
        return f"{core} is stuck: {why_stuck(run)}"
    if health.word == "crashed":
        then = "it starts again by itself" if comes_back else "it stays down until somebody restarts it"
        return f"{core} has crashed; {then}. {last_crash}".rstrip()
    if health.word != "stalled":
        return f"{core} is {health.word}."
    doing = f"while it runs {run.op}" if run else "and runs no op"
    if is_stopped:
        why = "its process is stopped, by a signal (SIGSTOP) or a debugger"
    elif run:
        why = "the op is in C code that does not release Python's global interpreter lock"
    else:
        why = "something in its process keeps Python's global interpreter lock"
    return f"{core} has not beaten for {health.beat_age_s or 0.0:.1f} s {doing}: {why}."


def why_stuck(run: OpRun) -> str:
    """A sentence on an op that is stuck."""
    if run.is_late:
        return f"{run.op} has run for {span(run.took_s)}; its stated latency is {span(run.stated_s)}."
    how = "has computed in one call" if run.computes else "has waited in one place"
    return f"{run.op} {how} for {span(run.still_s)}; its longest run so far took {span(run.longest_s)}."
