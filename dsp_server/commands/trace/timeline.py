"""The history of a board as events of a timeline, in Chrome's JSON format, which Perfetto's UI opens. Pure.

Source: Trace Event Format, Event Descriptions, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

BOARD_PID = 0
"""Of the track group of the board; no program has it."""
SUBMIT_US = 1.0
"""Length of a submission on its program's track: an arrow needs a slice to begin at."""
_NS_IN_US = 1000


def timeline(board: str, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A document for a viewer of timelines.

    A track for each core has the ops, measured; a track for each program has its submissions, and an arrow from each to
    its op; a counter has how many tasks of each priority wait. The time is CLOCK_MONOTONIC, in microseconds.

    Args:
        board: Name of the board.
        tasks: As the verb ``tasks`` of the daemon has them.
    """
    cores = sorted({task["core"] for task in tasks if task["started_ns"]})
    programs = {task["pid"]: task["program"] for task in tasks if task["pid"]}
    events = [_name("process_name", BOARD_PID, 0, f"board {board}")]
    events += [_name("thread_name", BOARD_PID, core + 1, f"core {core}") for core in cores]
    events += [_name("process_name", pid, 0, name or "a program") for pid, name in programs.items()]
    for number, task in enumerate(tasks):
        events += _task(number, task)
    return {"traceEvents": [*events, *_waiting(tasks)], "displayTimeUnit": "ns"}


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _task(number: int, task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Submission, op, the arrow between them, and an instant for one that failed."""
    op = task["name"] or f"{task['cmd']:#x}"
    submitted = {"pid": task["pid"], "tid": task["pid"], "ts": task["submitted_ns"] / _NS_IN_US}
    events: list[dict[str, Any]] = []
    if task["pid"]:
        events.append({"ph": "X", "cat": "submit", "name": f"submit {op}", "dur": SUBMIT_US, **submitted})
    if task["started_ns"]:
        on_core = {"pid": BOARD_PID, "tid": task["core"] + 1, "ts": task["started_ns"] / _NS_IN_US}
        events.append(
            {"ph": "X", "cat": "op", "name": op, "dur": task["ran_ns"] / _NS_IN_US, "args": _facts(task), **on_core}
        )
        if task["pid"]:
            arrow = {"cat": "task", "name": "task", "id": number}
            events += [{"ph": "s", **arrow, **submitted}, {"ph": "f", "bp": "e", **arrow, **on_core}]
    if task["state"] != "done":
        where = {"pid": BOARD_PID, "tid": max(task["core"], -1) + 1, "ts": task["ended_ns"] / _NS_IN_US}
        what = f"{op} {task['state']}: {task['result']}"
        events.append({"ph": "i", "s": "t", "cat": "error", "name": what, "args": _facts(task), **where})
    return events


def _facts(task: Mapping[str, Any]) -> dict[str, Any]:
    """What a viewer shows of an op that is selected."""
    return {
        "command": f"{task['cmd']:#x}",
        "priority": task["priority"],
        "customId": task["custom_id"],
        "result": task["result"],
        "waited_us (measured)": task["waited_ns"] / _NS_IN_US,
        "modelled_cycles": task["modelled_cycles"],
        "modelled_us": task["modelled_ns"] / _NS_IN_US,
        "input": f"{task['input_phy']:#x}+{task['input_bytes']:#x}",
        "output": f"{task['output_phy']:#x}+{task['output_bytes']:#x}",
    }


def _waiting(tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many tasks of each priority wait, whenever that changes."""
    steps = [(task["submitted_ns"], 1, task["priority"]) for task in tasks]
    steps += [(task["claimed_ns"] or task["ended_ns"], -1, task["priority"]) for task in tasks]
    count: Counter[int] = Counter()
    events = []
    for at_ns, step, priority in sorted(steps):
        count[priority] += step
        events.append(
            {
                "ph": "C",
                "name": f"waiting, priority {priority}",
                "pid": BOARD_PID,
                "tid": 0,
                "ts": at_ns / _NS_IN_US,
                "args": {"tasks": count[priority]},
            }
        )
    return events
