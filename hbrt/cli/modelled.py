"""Modelled times as the verbs show them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hbrt.cli.tables import short_time

PARTS: Final = ("vector", "scalar", "ddr", "wait")


def modelled_time(task: Mapping[str, Any]) -> str:
    """The modelled time of a task of the history: with ~ when it is estimated, - for none."""
    if not task["modelled_cycles"]:
        return "-"
    return f"{'~' if task['modelled_is_estimated'] else ''}{short_time(task['modelled_ns'])}"


def shares(task: Mapping[str, Any]) -> str:
    """What the modelled cycles of a task are for, the most first, as in ``vector 71% wait 20%``; none under 1 %."""
    counts = {name: task[f"modelled_{name}"] for name in PARTS}
    total = sum(counts.values())
    most_first = sorted(PARTS, key=lambda name: -counts[name])
    return " ".join(f"{name} {counts[name] / total:.0%}" for name in most_first if 100 * counts[name] > total)


def overlapped(task: Mapping[str, Any]) -> str:
    """The modelled time of a task's copies, and the share of it that passed while the core computed; - for none."""
    cycles = task["modelled_dma"]
    if not cycles or not task["modelled_cycles"]:
        return "-"
    busy_ns = cycles * task["modelled_ns"] / task["modelled_cycles"]
    return f"{short_time(busy_ns)}, {task['modelled_overlap'] / cycles:.0%} hidden"
