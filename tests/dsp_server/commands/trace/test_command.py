"""``hbrt trace save``: the tasks of a board as a timeline."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

from dsp_server.commands.trace.timeline import BOARD_PID, timeline
from tests.conftest import Shell

CALLS = """
from arm_client import connect
with connect() as board:
    tasks = [board.submit(0, priority=n % 2, core=1 + n % 2) for n in range(20)]
    for task in tasks:
        task.result()
    board.submit(0x999).exception()
"""


def task(**given: Any) -> dict[str, Any]:
    return {
        "cmd": 0x400,
        "name": "softmax",
        "state": "done",
        "result": 0,
        "core": 0,
        "priority": 3,
        "custom_id": 0,
        "pid": 77,
        "program": "p.py",
        "input_phy": 0x8000,
        "input_bytes": 64,
        "output_phy": 0,
        "output_bytes": 0,
        "submitted_ns": 1000,
        "claimed_ns": 2000,
        "started_ns": 3000,
        "ended_ns": 8000,
        "waited_ns": 1000,
        "ran_ns": 5000,
        "modelled_cycles": 81,
        "modelled_ns": 125,
        **given,
    }


def of_kind(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == kind]


def test_a_task_is_a_submission_an_op_and_an_arrow() -> None:
    document = timeline("b", [task()])
    submitted, op = of_kind(document, "X")
    assert (submitted["pid"], submitted["ts"], submitted["name"]) == (77, 1.0, "submit softmax")
    assert (op["pid"], op["tid"], op["ts"], op["dur"]) == (BOARD_PID, 1, 3.0, 5.0)
    assert (op["args"]["modelled_us"], op["args"]["waited_us (measured)"]) == (0.125, 1.0)
    [begin], [end] = of_kind(document, "s"), of_kind(document, "f")
    assert (begin["id"], begin["pid"], begin["ts"]) == (end["id"], 77, 1.0)
    assert (end["pid"], end["ts"]) == (BOARD_PID, 3.0)
    names = {(event["name"], event["args"]["name"]) for event in of_kind(document, "M")}
    assert names == {("process_name", "board b"), ("thread_name", "core 0"), ("process_name", "p.py")}


def test_the_queue_is_counted_by_priority() -> None:
    later = task(submitted_ns=1500, claimed_ns=8000)
    document = timeline("b", [task(), later, task(priority=9, submitted_ns=1600, claimed_ns=1700)])
    counts = [(event["ts"], event["name"], event["args"]["tasks"]) for event in of_kind(document, "C")]
    low, high = "waiting, priority 3", "waiting, priority 9"
    assert counts == [(1.0, low, 1), (1.5, low, 2), (1.6, high, 1), (1.7, high, 0), (2.0, low, 1), (8.0, low, 0)]


def test_a_task_that_no_core_ran_is_an_error_alone() -> None:
    lost = task(core=-1, state="lost", result=-5, claimed_ns=0, started_ns=0, ran_ns=0)
    document = timeline("b", [lost])
    assert [event["name"] for event in of_kind(document, "X")] == ["submit softmax"]
    assert not of_kind(document, "s")
    assert [event["name"] for event in of_kind(document, "i")] == ["softmax lost: -5"]


def test_a_board_is_saved(shell: Shell) -> None:
    shell.good("start")
    shell.python("-c", CALLS)
    assert shell.good("trace", "save", "board.json") == "Wrote board.json: 21 tasks.\n"
    document = json.loads((shell.cwd / "board.json").read_text())
    ops = [event for event in of_kind(document, "X") if event["pid"] == BOARD_PID]
    assert len(ops) == 21
    assert len(of_kind(document, "s")) == len(of_kind(document, "f")) == 21
    assert len(of_kind(document, "i")) == 1
    for core in (1, 2):  # one op at a time on each core
        spans = sorted((op["ts"], op["ts"] + op["dur"]) for op in ops if op["tid"] == core)
        assert len(spans) >= 10
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
    last = Counter({event["name"]: event["args"]["tasks"] for event in of_kind(document, "C")})
    assert set(last.values()) == {0}
    assert "1 task" in shell.good("trace", "save", "--last", "1", "board.json")


def test_a_file_that_cannot_be_written_is_a_sentence(shell: Shell) -> None:
    shell.good("start")
    answer = shell.hbrt("trace", "save", "nowhere/board.json")
    assert answer.returncode == 2
    assert "nowhere/board.json cannot be written: No such file or directory." in answer.stderr
