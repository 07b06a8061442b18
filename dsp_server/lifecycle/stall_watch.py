"""Cores that run no op and do not beat: nobody rings them, and after STALL_SECONDS they are started again.

A submitter rings one core for a task. While that is a core that is stopped, each call waits for another core's beat to
find the task; so the supervisor marks such a core STALLED, which submitters pass by. The core takes the mark away at
its next beat. One that runs an op is the watchdog's.
"""

from __future__ import annotations

from dsp_server.lifecycle.child import CoreChild
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.process.journal import Journal

STALL_SECONDS = 5.0
_MOST_STEP_SECONDS = 1.0  # between two looks: the rest is a time in which the daemon itself did not run


class StallWatch:
    """Looks at the cores' beats.

    Args:
        cores: The board's cores.
        journal: Gets a line for a core that stalls, and a finding for one that is ended.
        limit_ms: The board's time limit for ops, which is one for a stall as well when it is shorter than
            STALL_SECONDS; 0 for none, as for a board whose cores somebody debugs.
    """

    def __init__(self, cores: list[BoardCore], journal: Journal, limit_ms: int) -> None:
        self._cores = cores
        self._journal = journal
        self._limit_s = min(limit_ms / 1000, STALL_SECONDS)
        self._looked_ns = 0
        self._stalled_s: dict[CoreChild, float] = {}  # for how long, of the time in which the daemon looked

    def look(self, now_ns: int) -> bool:
        """Look once; returns whether a core is stalled. ``now_ns`` is CLOCK_MONOTONIC."""
        step_s = min((now_ns - self._looked_ns) / 1e9, _MOST_STEP_SECONDS)
        self._looked_ns = now_ns
        before, self._stalled_s = self._stalled_s, {}
        for core in self._cores:
            child = core.child
            if child is None or child.is_ending or not core.mark_if_stalled(now_ns):
                continue
            name = f"Core {core.index} (process {child.pid})"
            if child not in before:
                self._journal.say(f"{name} has missed its beat and runs no op: others are rung until it beats again.")
            spent_s = before[child] + step_s if child in before else 0.0
            self._stalled_s[child] = spent_s
            if self._limit_s and spent_s > self._limit_s and not child.problem:
                how = "stopped" if core.is_stopped else "stalled"
                self._journal.find("stalled-core", f"{name} ran no op and was {how} for {spent_s:.1f} s; it is ended.")
                child.fail(f"{how} for {spent_s:.1f} s with no op to run")
        return bool(self._stalled_s)
