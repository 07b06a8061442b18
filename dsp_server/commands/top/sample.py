"""A sample of a board for ``hbrt top``, from two of its states and the tasks that ended between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SORTS = {"c": "calls_per_s", "r": "ran_p50_ns", "w": "waited_p50_ns", "f": "failed"}
"""The column that each key sorts the commands by."""


class Sample(NamedTuple):
    """The work of a board in a time span, and its state at the end."""

    board: str
    seconds: float
    calls_per_s: float
    ready: int
    running: int
    waiting: list[dict[str, int]]  # priority and tasks, the highest first
    oldest_waiting: dict[str, Any] | None
    memory: dict[str, Any]
    cores: list[dict[str, Any]]
    commands: list[dict[str, Any]]
    programs: list[dict[str, Any]]


def newest_of(tasks: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """The newest op of each core among tasks in the order of their ends."""
    return {task["core"]: task for task in tasks if task["started_ns"]}


def sample_of(
    status: Mapping[str, Any],
    before: Mapping[str, Any],
    ended: Sequence[Mapping[str, Any]],
    seconds: float,
    newest: Mapping[int, Mapping[str, Any]],
) -> Sample:
    """A sample.

    Args:
        status: The answer of the request ``status`` now.
        before: Its answer at the beginning of the span.
        ended: Tasks that ended in the span, as the request ``tasks`` lists them; of very many the newest.
        seconds: The span.
        newest: As of ``newest_of``, also of tasks that ended before the span.
    """
    counts = {core["core"]: core for core in before["cores"]}
    running = {one["core"]: one for one in reversed(status["running"])}  # of two, the interrupted one
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
    # When more tasks have ended than a board keeps, each kept one counts for several.
    share = calls_per_s / len(ended) if ended else 0.0
    by_command: dict[int, list[Mapping[str, Any]]] = {}
    for task in ended:
        by_command.setdefault(task["cmd"], []).append(task)
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
        [_command(cmd, tasks, len(tasks) * share) for cmd, tasks in sorted(by_command.items())],
        status["clients"],
    )


def _last(task: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What an op was, and what it takes on the board."""
    if task is None:
        return None
    return {key: value for key, value in task.items() if key in {"cmd", "name"} or key.startswith("modelled_")}


def _busy(core: Mapping[str, Any], before: Mapping[str, Any], runs: Mapping[str, Any] | None, seconds: float) -> float:
    """Share of the span in ops, 0 to 1; a core counts an op when it ends."""
    ended_s: float = max(0, core["busy_ns"] - before["busy_ns"]) / 1e9
    now_s: float = runs["age_s"] if runs else 0.0
    return min(1.0, max(ended_s, now_s) / seconds)


def _command(cmd: int, tasks: Sequence[Mapping[str, Any]], calls_per_s: float) -> dict[str, Any]:
    waited, ran = (sorted(task[key] for task in tasks) for key in ("waited_ns", "ran_ns"))
    return {
        "cmd": cmd,
        "name": tasks[-1]["name"],
        "calls_per_s": calls_per_s,
        "waited_p50_ns": percentile(waited, 50),
        "waited_p99_ns": percentile(waited, 99),
        "ran_p50_ns": percentile(ran, 50),
        "ran_p99_ns": percentile(ran, 99),
        "failed": sum(task["state"] != "done" for task in tasks),
    }


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that so many per cent of the values do not pass: nearest rank.

    Args:
        ordered: The values, ascending; at least one.
        percent: 1..100.
    """
    return ordered[-(-len(ordered) * percent // 100) - 1]
