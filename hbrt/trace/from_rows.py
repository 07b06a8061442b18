"""A recording of tasks that a daemon has listed: of a board on another machine, whose files are not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hbrt.mailbox.history import EndedTask
from hbrt.mailbox.table import Answer, Request, State
from hbrt.trace.timeline import Recording


def recording_of_rows(board: str, rows: Sequence[Mapping[str, Any]]) -> Recording:
    """A recording of the tasks in the rows of the daemon's verb ``tasks``."""
    cores = sorted({row["core"] for row in rows})
    tasks = [[_task(row) for row in rows if row["core"] == core] for core in cores]
    return Recording(
        board,
        [lambda of_core=of_core: iter(of_core) for of_core in tasks],  # type: ignore[misc]  # bound now
        (),
        {row["cmd"]: row["name"] for row in rows},
        {row["pid"]: row["program"] for row in rows},
    )


def _task(row: Mapping[str, Any]) -> EndedTask:
    request = Request(
        row["submitted_ns"],
        row["custom_id"],
        row["cmd"],
        row["priority"],
        0,
        0,
        row["pid"] & 0x3FF,  # tells the tasks of programs apart
        row["input_phy"],
        row["input_bytes"],
        row["output_phy"],
        row["output_bytes"],
    )
    times = (row["claimed_ns"], row["started_ns"], row["ended_ns"])
    answer = Answer(row["core"], row["result"], 0, 0, *times, row["modelled_cycles"])
    return EndedTask(State[row["state"].upper()], row["pid"], request, answer)
