"""What a core's beats say of it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from arm_client.client import Board
from dsp_server.lifecycle import health
from hbrt.ddr.layout import BEAT_SECONDS

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("state", "heartbeat_ns", "word", "starved", "age_s"),
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
    # The thread that beats waits for the interpreter's lock behind an op in Python, and that is no hang.
    assert 4 * sys.getswitchinterval() <= health.LATE_SECONDS - BEAT_SECONDS


@pytest.mark.parametrize(
    ("word", "op", "is_stopped", "comes_back", "said"),
    [
        ("ok", "", False, True, "^$"),
        ("offline", "", False, False, r"^Core 0 is offline\.$"),
        ("crashed", "", False, True, r"^Core 0 has crashed; it starts again by itself\. It fell\.$"),
        ("crashed", "", False, False, r"^Core 0 has crashed; it stays down until somebody restarts it\. It fell\.$"),
        (
            "stalled",
            "spin (command 0x1000)",
            False,
            True,
            r" for 0\.3 s while it runs spin \(command 0x1000\): .* in C code",
        ),
        ("stalled", "", True, True, r" for 0\.3 s and runs no op: its process is stopped, by a signal \(SIGSTOP\)"),
        ("stalled", "", False, True, r" for 0\.3 s and runs no op: .* global interpreter lock\.$"),
    ],
)
def test_a_problem_is_one_sentence(
    word: str,
    op: str,
    is_stopped: bool,  # noqa: FBT001
    comes_back: bool,  # noqa: FBT001
    said: str,
) -> None:
    found = health.CoreHealth(word, 0.3)
    sentence = health.problem("Core 0", found, op, "It fell.", is_stopped=is_stopped, comes_back=comes_back)
    assert re.search(said, sentence)


def test_a_board_is_healthy_when_all_its_cores_are() -> None:
    fine, dead = health.CoreHealth("ok", 0.0), health.CoreHealth("crashed", None)
    assert health.of_board([fine, fine])
    assert not health.of_board([fine, dead])
    assert not health.of_board([])


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
