"""The restart policy: whether a core that died restarts immediately, later, or not at all. Rules only.

1. A core that was stable (it served for STEADY_SECONDS, or finished a task) restarts immediately.
2. A core that died earlier waits first, twice as long each time, up to MAX_PAUSE_SECONDS.
3. A core that dies early MAX_IDLE_DEATHS times in a row without a running task stays crashed: its image cannot run. A
death with a running task never counts here: it fails the task, and the core restarts.

Emulator: remoteproc restarts immediately, forever; the pauses and the limit are the emulator's choice.
"""

from __future__ import annotations

from typing import NamedTuple

STEADY_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 0.8
MAX_IDLE_DEATHS = 5


class Death(NamedTuple):
    """One death: seconds of service (0 for none), number of finished tasks, whether a task was running."""

    served_s: float
    tasks_ended: int
    had_task: bool


class History(NamedTuple):
    """A core's consecutive deaths: early ones, and early ones without a running task."""

    early: int = 0
    idle: int = 0


def after(history: History, death: Death) -> tuple[History, float | None]:
    """Return the new history, and the seconds until the restart; None if the core stays crashed."""
    is_steady = death.served_s >= STEADY_SECONDS or death.tasks_ended > 0
    early = 0 if is_steady else history.early + 1
    idle = 0 if is_steady or death.had_task else history.idle + 1
    new = History(early, idle)
    if idle >= MAX_IDLE_DEATHS:
        return new, None
    if early <= 1:
        return new, 0.0
    return new, min(FIRST_PAUSE_SECONDS * 2 ** (early - 2), MAX_PAUSE_SECONDS)
