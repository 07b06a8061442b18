"""Whether a board is healthy, by the heartbeats of its cores: rules only.

A core writes a heartbeat every BEAT_SECONDS. A late heartbeat means that the core hangs, or is in C code that keeps the
interpreter lock; either way it serves no task. On a busy machine a heartbeat is late too: while its thread waits for a
CPU, the limit is STALE_SECONDS. A core that should run and does not is not healthy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

LATE_SECONDS = 0.1  # a hang is reported within this time
STALE_SECONDS = 0.2
_NS = 1_000_000_000


class CoreHealth(NamedTuple):
    """One core: ``ok``, ``stalled``, or its state when it does not run; and the age of its last heartbeat."""

    word: str
    beat_age_s: float | None


def of_core(state: str, heartbeat_ns: int, now_ns: int, is_starved: Callable[[], bool]) -> CoreHealth:
    """Health of a core.

    Args:
        state: offline, running or crashed.
        heartbeat_ns: CLOCK_MONOTONIC of its last heartbeat, 0 for none.
        now_ns: The same clock now.
        is_starved: Whether the heartbeat's thread waits for a CPU; called only when the result depends on it.
    """
    if state != "running":
        return CoreHealth(state, None)
    age_s = max(0, now_ns - heartbeat_ns) / _NS
    is_stalled = age_s > STALE_SECONDS or (age_s > LATE_SECONDS and not is_starved())
    return CoreHealth("stalled" if is_stalled else "ok", age_s)


def of_board(cores: list[CoreHealth]) -> bool:
    """Whether every core is ``ok``."""
    return bool(cores) and all(core.word == "ok" for core in cores)


def problem(core: str, health: CoreHealth, op: str, last_crash: str, *, is_stopped: bool, comes_back: bool) -> str:
    """A sentence on a core that is not ``ok``, empty for one that is.

    Args:
        core: Its name, such as "Core 0 (process 123)".
        health: Its health.
        op: Its running op, such as "softmax (command 0x400)"; empty for none.
        last_crash: Sentence on its last crash; empty when there was none.
        is_stopped: Whether its process is stopped.
        comes_back: Whether it restarts by itself.
    """
    if health.word == "ok":
        return ""
    if health.word == "crashed":
        then = "it starts again by itself" if comes_back else "it stays down until somebody restarts it"
        return f"{core} has crashed; {then}. {last_crash}".rstrip()
    if health.word != "stalled":
        return f"{core} is {health.word}."
    doing = f"while it runs {op}" if op else "and runs no op"
    if is_stopped:
        why = "its process is stopped, by a signal (SIGSTOP) or a debugger"
    elif op:
        why = "the op is in C code that does not release Python's global interpreter lock"
    else:
        why = "something in its process keeps Python's global interpreter lock"
    return f"{core} has not beaten for {health.beat_age_s or 0.0:.1f} s {doing}: {why}."
