"""When a core that died by itself starts again: at once, later, or not at all. Rules only.

1. A core that had proved itself (it served for STEADY_SECONDS, or ended a task) starts again at once.
2. One that dies again before that waits, twice as long each time, up to MOST_PAUSE_SECONDS.
3. One that dies so MOST_IDLE_DEATHS times in a row with no task to blame stays crashed: its image cannot run. A death
   with a task in hand costs that task and gets the core forward, so that it never counts here.

Emulator: remoteproc restarts at once and for ever; the pauses and the end are the emulator's choice.
"""

from __future__ import annotations

from typing import NamedTuple

STEADY_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.1
MOST_PAUSE_SECONDS = 0.8
MOST_IDLE_DEATHS = 5


class Death(NamedTuple):
    """How a core's process died: seconds it had served (0 when it never did), tasks it had ended, one in hand."""

    served_s: float
    tasks_ended: int
    had_task: bool


class History(NamedTuple):
    """What a core's deaths so far say: how many in a row were early, and how many of these had no task to blame."""

    early: int = 0
    idle: int = 0


def after(history: History, death: Death) -> tuple[History, float | None]:
    """New history, and seconds until the core starts again; None when it stays crashed."""
    is_steady = death.served_s >= STEADY_SECONDS or death.tasks_ended > 0
    early = 0 if is_steady else history.early + 1
    idle = 0 if is_steady or death.had_task else history.idle + 1
    new = History(early, idle)
    if idle >= MOST_IDLE_DEATHS:
        return new, None
    if early <= 1:
        return new, 0.0
    return new, min(FIRST_PAUSE_SECONDS * 2 ** (early - 2), MOST_PAUSE_SECONDS)
