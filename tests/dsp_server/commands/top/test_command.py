"""``hbrt top``: rates and percentiles of an interval, and the screen of a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from dsp_server.commands.top.sample import Sample, newest_of, percentile, sample_of
from dsp_server.commands.top.screen import History, screen_of
from tests.dsp_server.images import halts
from tests.nursery import Client
from tests.shared import Shell

if TYPE_CHECKING:
    from rich.text import Text

CALLS = """
import sys
from arm_client import connect
with connect() as board:
    print("on", flush=True)
    while True:
        board.call(0)
"""


def status(tasks: int, busy_ns: int, **given: Any) -> dict[str, Any]:
    return {
        "board": "b",
        "cores": [
            {
                "core": 0,
                "kind": "dsp",
                "state": "running",
                "health": "busy",
                "tasks": tasks,
                "busy_ns": busy_ns,
                "tcm": ["**..", "...."],
            }
        ],
        "tasks": {"ready": 3, "running": 1},
        "waiting": [{"priority": 9, "tasks": 2}, {"priority": 0, "tasks": 1}],
        "oldest_waiting": {
            "age_s": 0.5,
            "cmd": 0x400,
            "name": "",
            "kind": "dsp",
            "priority": 0,
            "custom_id": 0,
            "client": 1,
        },
        "running": [],
        "memory": {"used_bytes": 1 << 20, "size_bytes": 1 << 30},
        "clients": [
            {
                "id": 1,
                "pid": 77,
                "name": "program.py",
                "age_s": 5.0,
                "tasks": 4,
                "blocks": 2,
                "model_blocks": 0,
                "bytes": 1 << 20,
            }
        ],
        **given,
    }


def ended(cmd: int, ran_ns: int, state: str = "done") -> dict[str, Any]:
    parts = {"vector": 600, "scalar": 0, "ddr": 0, "wait": 48, "dma": 324, "overlap": 276}
    modeled = {"cycles": 648, "ns": 1000, "is_estimated": False} | parts
    return {
        "cmd": cmd,
        "name": f"op{cmd}",
        "kind": "dsp",
        "core": 0,
        "started_ns": 1,
        "waited_ns": 10,
        "ran_ns": ran_ns,
        "state": state,
        **{f"modeled_{key}": value for key, value in modeled.items()},
    }


def test_rates_are_of_the_interval() -> None:
    tasks = [*(ended(1, ran) for ran in range(1, 101)), *(ended(2, 5, "failed") for _ in range(100))]
    sample = sample_of(status(1400, 3_000_000_000), status(1000, 2_000_000_000), tasks, 2.0, {})
    assert sample.calls_per_s == 200.0
    assert sample.cores[0]["busy"] == 0.5
    one, two = sample.commands
    assert (one["calls_per_s"], one["ran_p50_ns"], one["ran_p99_ns"], one["failed"]) == (100.0, 50, 99, 0)
    assert (two["calls_per_s"], two["failed"]) == (100.0, 100)


def test_a_core_is_busy_with_an_op_that_has_not_ended() -> None:
    runs = [{"core": 0, "cmd": 1, "name": "long", "client": 1, "age_s": 60.0}]
    sample = sample_of(status(5, 0, running=runs), status(5, 0), [], 1.0, {})
    assert (sample.cores[0]["busy"], sample.cores[0]["runs"], sample.calls_per_s) == (1.0, runs[0], 0.0)


def test_percentiles_are_nearest_rank() -> None:
    assert [percentile([7], 1), percentile([1, 2], 50), percentile([1, 2], 51), percentile([1, 2, 3], 100)] == [
        7,
        1,
        2,
        3,
    ]


def test_the_screen_has_all_and_sorts_by_what_is_chosen() -> None:
    tasks = [ended(1, 10), ended(1, 10), ended(2, 900)]
    sample = sample_of(status(3, 0), status(0, 0), tasks, 1.0, newest_of(tasks))
    by_calls, by_time = (shown(sample, sort, 1000).plain.splitlines() for sort in "cr")
    assert "2 of priority 9, 1 of priority 0" in by_calls[1]
    assert "command 0x400, priority 0, of client 1, for 500 ms" in by_calls[2]
    assert [line.split()[1] for line in by_calls if line.lstrip().startswith("0x")] == ["op1", "op2"]
    assert [line.split()[1] for line in by_time if line.lstrip().startswith("0x")] == ["op2", "op1"]
    assert "0 op2 1.00 µs 0.500 µs, 85% hidden vector 93% wait 7%" in [" ".join(line.split()) for line in by_calls]
    assert any("program.py" in line and "1.0 MiB" in line for line in by_calls)


def test_a_sample_of_a_board_that_works(shell: Shell) -> None:
    shell.good("start")
    caller = Client(
        [sys.executable, "-c", CALLS],
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == "on\n"
    try:
        while not (sample := shell.json("top", "--json", "--interval", 0.2))["commands"]:
            pass
    finally:
        caller.kill()
        caller.communicate()
    (ping,) = sample["commands"]
    assert ping["cmd"] == 0
    assert ping["calls_per_s"] > 0
    assert ping["ran_p50_ns"] <= ping["ran_p99_ns"]
    assert [program["pid"] for program in sample["programs"]] == [caller.pid]


def test_a_terminal_shows_a_core_that_hangs_and_its_return(shell: Shell) -> None:
    shell.good("start", "--image", halts.__file__)
    ours, theirs = pty.openpty()
    top = subprocess.Popen(
        [sys.executable, "-m", "hbrt", "top", "--interval", "0.1"],
        env={**shell.environment, "TERM": "xterm", "COLUMNS": "150", "LINES": "40"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)

    def until(word: bytes) -> None:
        shown = b""
        while word not in shown:
            shown = (shown + os.read(ours, 65536))[-100_000:]

    until(b"tasks/s")
    shell.good("stop", "--core", 0)
    until(b"offline")
    shell.good("start", "--core", 0)
    until(b"running")
    os.write(ours, b"rq")
    with contextlib.suppress(OSError):  # the terminal is gone with its last user
        while os.read(ours, 65536):
            pass
    _, errors = top.communicate()
    os.close(ours)
    assert (top.returncode, errors) == (0, b"")


def test_without_a_terminal_one_sample_is_printed(shell: Shell) -> None:
    shell.good("start")
    said = shell.good("top", "--interval", 0.1)
    assert said.startswith("Board default: 0 tasks/s; 0 running, 0 ready.\n")
    assert "\nNo tasks ended in this interval.\n\nNo clients are attached.\n" in said


def screen(width: int, age_s: float = 0.0) -> Text:
    running = [{"core": 0, "cmd": 1, "name": "op1", "kind": "dsp", "age_s": age_s}] if age_s else []
    made = sample_of(status(10, 0, running=running), status(0, 0), [ended(1, 1000)], 1.0, {})
    return shown(made, "c", width)


def shown(sample: Sample, sort: str, width: int) -> Text:
    history = History()
    for _ in range(3):
        history.add(sample)
    return screen_of(sample, sort, history, width)


def test_the_screen_has_bars_histories_and_the_keys() -> None:
    text = screen(100).plain
    assert "░░░░░░░░░░   0%" in text
    assert "run p50    1.00 µs ███" in text
    assert "Keys: c calls" in text
    assert "<<" not in text


def test_an_op_far_beyond_its_median_stands_out() -> None:
    shown = screen(120, age_s=1.0)
    assert "op1 for 1.00 s << over 100 times its median" in shown.plain
    assert any("red" in str(span.style) for span in shown.spans)
    assert "<<" not in screen(120, age_s=0.00005).plain


def test_an_op_that_never_ended_stands_out_after_ten_seconds_and_one_from_before_by_its_median() -> None:
    history = History()
    runs = {"core": 0, "cmd": 1, "name": "op1", "kind": "dsp", "age_s": 9.0}
    assert not history.limit_passed(runs)
    assert history.limit_passed(runs | {"age_s": 11.0}) == "10 s"
    assert not history.limit_passed(None)
    before = History([ended(1, 1000), ended(1, 2000), ended(1, 3000)])
    assert not before.limit_passed(runs | {"age_s": 0.0001})
    assert before.limit_passed(runs | {"age_s": 0.0003}) == "100 times its median"


def test_it_fits_fifty_columns() -> None:
    lines = screen(50, age_s=1.0).plain.splitlines()
    assert [line for line in lines if len(line) > 50] == []
    assert any("CALLS/S" in line for line in lines)
