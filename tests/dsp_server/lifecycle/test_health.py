"""What a core's beats say of it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from arm_client.client import Board
from dsp_server.lifecycle import health
from hbrt.ddr.layout import BEAT_SECONDS
from tests.each import each

SECOND = 1_000_000_000


@each(
    "state, heartbeat_ns, word, starved, age_s",
    [
        ("running", 10 * SECOND, "ok", "ok", 0.0),
        ("running", 10 * SECOND - SECOND // 10, "ok", "ok", 0.1),
        ("running", 10 * SECOND - SECOND // 8, "stalled", "ok", 0.125),
        ("running", 10 * SECOND - SECOND // 5, "stalled", "ok", 0.2),
        ("running", 10 * SECOND - SECOND // 4, "stalled", "stalled", 0.25),
        ("running", 0, "stalled", "stalled", 10.0),
        ("running", 11 * SECOND, "ok", "ok", 0.0),
        ("crashed", 10 * SECOND, "crashed", "crashed", None),
        ("offline", 0, "offline", "offline", None),
    ],
)
def test_a_core_is_told_by_its_last_beat(
    state: str, heartbeat_ns: int, word: str, starved: str, age_s: float | None
) -> None:
    """Of one whose heart waits for a CPU a beat may be late."""
    assert health.of_core(state, heartbeat_ns, 10 * SECOND, lambda: False) == health.CoreHealth(word, age_s)
    assert health.of_core(state, heartbeat_ns, 10 * SECOND, lambda: True) == health.CoreHealth(starved, age_s)


def test_a_hang_is_told_within_a_tenth_of_a_second() -> None:
    assert health.LATE_SECONDS <= 0.1
    # The thread that beats waits for the interpreter's lock behind an op in Python, and that is not a hang.
    assert 4 * sys.getswitchinterval() <= health.LATE_SECONDS - BEAT_SECONDS


@each(
    "word, run, is_stopped, comes_back, said",
    [
        ("ok", None, False, True, "^$"),
        ("offline", None, False, False, r"^Core 0 is offline\.$"),
        ("crashed", None, False, True, r"^Core 0 has crashed; it restarts automatically\. It fell\.$"),
        ("crashed", None, False, False, r"^Core 0 has crashed; it stays down until you restart it\. It fell\.$"),
        (
            "stalled",
            health.OpRun("spin (command 0x1000)", 1.0),
            False,
            True,
            r" for 0\.3 s while it runs spin \(command 0x1000\): .* in C code",
        ),
        ("busy", health.OpRun("spin (command 0x1000)", 99.0), False, True, "^$"),
        (
            "stuck",
            health.OpRun("spin (command 0x1000)", 9.0, 0.0, 3.0, 0.0, 0.02),
            False,
            True,
            r"^Core 0 is stuck: spin \(command 0x1000\) has waited in one place for 3\.0 s; its longest .* 20 ms\.$",
        ),
        (
            "stuck",
            health.OpRun("spin (command 0x1000)", 0.6, 0.5),
            False,
            True,
            r"^Core 0 is stuck: .* has run for 600 ms; its stated latency is 500 ms\.$",
        ),
        ("stalled", None, True, True, r" for 0\.3 s and runs no op: its process is stopped, by a signal \(SIGSTOP\)"),
        ("stalled", None, False, True, r" for 0\.3 s and runs no op: .* global interpreter lock\.$"),
    ],
)
def test_a_problem_is_one_sentence(
    word: str,
    run: health.OpRun | None,
    is_stopped: bool,  # noqa: FBT001
    comes_back: bool,  # noqa: FBT001
    said: str,
) -> None:
    found = health.CoreHealth(word, 0.3)
    sentence = health.problem("Core 0", found, run, "It fell.", is_stopped=is_stopped, comes_back=comes_back)
    assert re.search(said, sentence)


@each(
    "stated_s, still_s, cpu_s, longest_s, word",
    [
        (0.0, 0.0, 0.0, 0.0, "busy"),
        (0.0, 1000.0, 0.0, 0.0, "busy"),  # nobody knows how long it usually takes
        (0.0, 1.1, 0.0, 0.001, "stuck"),
        (0.0, 0.9, 0.0, 0.001, "busy"),
        (0.0, 9.0, 0.0, 1.0, "busy"),  # it often takes long
        (0.0, 11.0, 0.0, 1.0, "stuck"),
        (0.0, 4.9, 4.8, 0.001, "busy"),  # one call over more data than usual
        (0.0, 5.1, 5.0, 0.001, "stuck"),
        (200.0, 0.0, 0.0, 0.0, "busy"),
        (99.0, 0.0, 0.0, 0.0, "stuck"),  # beyond its stated latency, whether it moves or not
    ],
)
def test_an_op_is_stuck_that_stands_still_for_ten_times_its_usual_time(
    stated_s: float, still_s: float, cpu_s: float, longest_s: float, word: str
) -> None:
    run = health.OpRun("spin (command 0x1000)", 100.0, stated_s, still_s, cpu_s, longest_s)
    assert health.of_core("running", 10 * SECOND, 10 * SECOND, lambda: False, run).word == word
    assert health.of_core("running", 0, 10 * SECOND, lambda: False, run).word == "stalled"
    assert health.of_core("crashed", 0, 10 * SECOND, lambda: False, run).word == "crashed"


def test_a_board_is_healthy_when_all_its_cores_are() -> None:
    fine, dead = health.CoreHealth("ok", 0.0), health.CoreHealth("crashed", None)
    assert health.of_board([fine, health.CoreHealth("busy", 0.0)])
    assert not health.of_board([fine, health.CoreHealth("stuck", 0.0)])
    assert not health.of_board([fine, dead])
    assert health.of_board([])  # of a chip that has no DSP core


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def await_health(board: Board, word: str) -> None:
    while board.status()["cores"][1]["health"] != word:
        pass


def test_a_stopped_core_is_stalled_until_it_goes_on(dsp_board: Board) -> None:
    await_health(dsp_board, "ok")
    with stopped(dsp_board.status()["cores"][1]["pid"]):
        await_health(dsp_board, "stalled")
        assert not dsp_board.status()["healthy"]
    await_health(dsp_board, "ok")


def test_the_oldest_waiting_task_is_shown(dsp_board: Board) -> None:
    assert dsp_board.status()["oldest_waiting"] is None
    with stopped(dsp_board.status()["cores"][0]["pid"]):
        first = dsp_board.submit(0x0, core=1, priority=7)
        second = dsp_board.submit(0x0, core=1, priority=9)
        oldest = dsp_board.status()["oldest_waiting"]
        assert (oldest["cmd"], oldest["priority"], oldest["client"]) == (0x0, 7, dsp_board.session.link.client_id)
        assert oldest["age_s"] > 0
    first.result(20)
    second.result(20)
