"""Whether a board is healthy, told from what its cores write: rules only.

A core beats every BEAT_SECONDS. One that has missed STALE_BEATS of them does nothing any more, or is stuck in C code
that keeps the interpreter to itself; either way it answers nobody. A core that should run and does not is not healthy.
"""

from __future__ import annotations

from typing import NamedTuple

BEAT_SECONDS = 0.1
STALE_BEATS = 2
_NS = 1_000_000_000


class CoreHealth(NamedTuple):
    """One core: ``ok``, ``stalled``, or its state when it does not run; and the age of its last beat."""

    word: str
    beat_age_s: float | None


def of_core(state: str, heartbeat_ns: int, now_ns: int) -> CoreHealth:
    """Health of a core.

    Args:
        state: offline, running or crashed.
        heartbeat_ns: CLOCK_MONOTONIC of its last beat, 0 when it never beat.
        now_ns: The same clock now.
    """
    if state != "running":
        return CoreHealth(state, None)
    age_s = max(0, now_ns - heartbeat_ns) / _NS
    return CoreHealth("stalled" if age_s > STALE_BEATS * BEAT_SECONDS else "ok", age_s)


def of_board(cores: list[CoreHealth]) -> bool:
    """Whether every core is ``ok``."""
    return bool(cores) and all(core.word == "ok" for core in cores)
