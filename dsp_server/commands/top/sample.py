"""Samples of a board for ``hbrt top`` and ``hbrt web``, from two states and the tasks that ended in between."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

SORTS = {"c": "calls_per_s", "r": "ran_p50_ns", "w": "waited_p50_ns", "f": "failed"}
"""For each key, the column that it sorts the commands by."""
MAX_TASKS = 2000  # per time span, for the percentiles: more would keep the daemon busy
OF_DAEMON = 16  # tasks in a span that no core has counted: failed by the daemon, or ended since the last sample


class Sample(NamedTuple):
    """A board's work during a time span, and its state at the end."""

    board: str
    seconds: float
    calls_per_s: float
    ready: int
    running: int
    waiting: list[dict[str, int]]  # priority and number of tasks, highest priority first
    oldest_waiting: dict[str, Any] | None
    memory: dict[str, Any]
    cores: list[dict[str, Any]]
    commands: list[dict[str, Any]]
    programs: list[dict[str, Any]]


def newest_of(tasks: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Return each core's newest op, given tasks in the order in which they ended."""
    return {task["core"]: task for task in tasks if task["started_ns"]}


def sample_of(
    status: Mapping[str, Any],
    before: Mapping[str, Any],
    ended: Sequence[Mapping[str, Any]],
    seconds: float,
    newest: Mapping[int, Mapping[str, Any]],
) -> Sample:
    """Compute a sample.

    Args:
        status: The answer to the request ``status`` now.
        before: The answer to it at the beginning of the span.
        ended: Tasks that ended in the span, as the request ``tasks`` lists them; only the newest if there are many.
        seconds: Length of the span.
        newest: The result of ``newest_of``, including tasks that ended before the span.
    """
    counts = {core["core"]: core for core in before["cores"]}
    running = {one["core"]: one for one in reversed(status["running"])}  # if there are two, the interrupted one
    cores = []
    for core in status["cores"]:
        first = counts.get(core["core"], core)
        cores.append(
            {
                "core": core["core"],
                "kind": core["kind"],
                "state": core["state"],
                "health": core["health"],
                "tasks_per_s": max(0, core["tasks"] - first["tasks"]) / seconds,
                "busy": _busy(core, first, running.get(core["core"]), seconds),
                "runs": running.get(core["core"]),
                "tcm": core["tcm"],
                "last": _last(newest.get(core["core"])),
            }
        )
    calls_per_s = sum(core["tasks_per_s"] for core in cores)
    # If more tasks have ended than a board keeps, each task that was kept counts as several.
    share = calls_per_s / len(ended) if ended else 0.0
    by_command: dict[tuple[int, str, str], list[Mapping[str, Any]]] = {}
    for task in ended:
        by_command.setdefault(key_of(task), []).append(task)
    return Sample(
        status["board"],
        seconds,
        calls_per_s,
        status["tasks"]["ready"],
        status["tasks"]["running"],
        status["waiting"],
        status["oldest_waiting"],
        status["memory"],
        cores,
        [_command(tasks, len(tasks) * share) for _, tasks in sorted(by_command.items())],
        status["clients"],
    )


def key_of(task: Mapping[str, Any]) -> tuple[int, str, str]:
    """Key to group a task's times by: its command, the name of its op or model, and the kind of its core."""
    return task["cmd"], task["name"], task["kind"]


def _last(task: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Describe an op, and how long it takes on the board."""
    if task is None:
        return None
    return {key: value for key, value in task.items() if key in {"cmd", "name", "kind"} or key.startswith("modeled_")}


def _busy(core: Mapping[str, Any], before: Mapping[str, Any], runs: Mapping[str, Any] | None, seconds: float) -> float:
    """Return the share of the span spent in ops, 0 to 1; a core counts an op when it ends."""
    ended_s: float = max(0, core["busy_ns"] - before["busy_ns"]) / 1e9
    now_s: float = runs["age_s"] if runs else 0.0
    return min(1.0, max(ended_s, now_s) / seconds)


def _command(tasks: Sequence[Mapping[str, Any]], calls_per_s: float) -> dict[str, Any]:
    waited, ran = (sorted(task[key] for task in tasks) for key in ("waited_ns", "ran_ns"))
    return {
        **{key: tasks[-1][key] for key in ("cmd", "name", "kind")},
        "calls_per_s": calls_per_s,
        "waited_p50_ns": percentile(waited, 50),
        "waited_p99_ns": percentile(waited, 99),
        "ran_p50_ns": percentile(ran, 50),
        "ran_p99_ns": percentile(ran, 99),
        "failed": sum(task["state"] != "done" for task in tasks),
    }


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile: the smallest value not exceeded by ``percent`` percent of the values.

    Args:
        ordered: The values, ascending; at least one.
        percent: 1..100.
    """
    return ordered[-(-len(ordered) * percent // 100) - 1]


class Sampler:
    """Takes samples of a board; each covers the time since the previous one.

    Args:
        ask: Sends a request to the board's daemon and returns its answer.

    Attributes:
        status: The answer to the request ``status`` in the last sample.
        tasks: The tasks that ended last, oldest first, as the request ``tasks`` lists them.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self.status: dict[str, Any] = {}
        self.tasks: deque[dict[str, Any]] = deque(maxlen=MAX_TASKS)
        self._newest: dict[int, Mapping[str, Any]] = {}
        self._seen_ns = 0

    def look(self) -> Sample:
        """Take a sample; the first one covers no time span, so nothing has happened in it."""
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
    """Upper limit of the tasks to fetch that have ended since ``before``; each one costs the daemon time."""
    if not before:
        return MAX_TASKS
    ended, ended_before = (sum(int(core["tasks"]) for core in one["cores"]) for one in (status, before))
    return min(MAX_TASKS, max(0, ended - ended_before) + OF_DAEMON)
