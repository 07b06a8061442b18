"""Looks at a board, one after another, for ``hbrt top`` and ``hbrt web``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from dsp_server.commands.top.sample import Sample, newest_of, sample_of

MAX_TASKS = 2000  # of a span, for the percentiles: more would keep the daemon busy
OF_DAEMON = 16  # tasks of a span that no core has counted: failed by the daemon, or ended since the look


class Sampler:
    """The samples of a board; each is of the time since the look before.

    Args:
        ask: Sends a request to the board's daemon, and returns its answer.

    Attributes:
        status: The answer of the request ``status`` at the last look.
        tasks: The tasks that ended last, in the order of their ends, as the request ``tasks`` lists them.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self.status: dict[str, Any] = {}
        self.tasks: deque[dict[str, Any]] = deque(maxlen=MAX_TASKS)
        self._newest: dict[int, Mapping[str, Any]] = {}
        self._seen_ns = 0

    def look(self) -> Sample:
        """A sample; the first has no time span, so in it nothing has happened."""
        before = self.status
        status: dict[str, Any] = self._ask("status")
        now_ns = time.monotonic_ns()
        listed = self._ask("tasks", last=_most_ended(status, before))
        newest_ns = self.tasks[-1]["ended_ns"] if self.tasks else 0  # by the clock of the board's machine
        ended = [task for task in listed if task["ended_ns"] > newest_ns]
        self.tasks.extend(ended)
        self._newest |= newest_of(ended)
        seconds = max(1e-3, (now_ns - self._seen_ns) / 1e9) if before else 1.0
        self.status, self._seen_ns = status, now_ns
        return sample_of(status, before or status, ended if before else [], seconds, self._newest)


def _most_ended(status: Mapping[str, Any], before: Mapping[str, Any]) -> int:
    """How many tasks have ended since at most, as far as they are of interest: the daemon works for each."""
    if not before:
        return MAX_TASKS
    ended, ended_before = (sum(int(core["tasks"]) for core in one["cores"]) for one in (status, before))
    return min(MAX_TASKS, max(0, ended - ended_before) + OF_DAEMON)
