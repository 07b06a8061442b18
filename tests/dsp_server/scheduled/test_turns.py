"""Threads that take turns: one at a time, in the order of the schedule; nobody is left behind."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

import pytest

from dsp_server.scheduled.turns import Actor, StuckError, Turns
from hbrt.exploration.schedule import parse
from tests.limits import PATIENCE_S


def play(
    schedule: str, steps: int, is_work_left: Callable[[list[str]], bool] = lambda _: True
) -> tuple[list[str], str]:
    """What two actors write who each take so many steps; the program then waits for the core."""
    log, written = io.StringIO(), list[str]()
    turns = Turns(parse(schedule), log)
    program, core = Actor("program"), Actor("core0", clock=lambda: 0)
    core.is_ready = lambda: is_work_left(written)
    turns.add(program)
    turns.add(core)
    has_ended = []

    def serve() -> None:
        core.gate.acquire()
        core.is_ready = None
        for at in range(steps):
            turns.step(f"core.py:{at}")
            written.append(f"c{at}")
        has_ended.append(True)
        turns.end("core.py")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    for at in range(steps):
        turns.step(f"program.py:{at}")
        written.append(f"p{at}")
    turns.wait(lambda: bool(has_ended), "program.py")
    turns.close()
    thread.join(PATIENCE_S)
    return written, log.getvalue()


def test_without_preemptions_the_program_goes_on_until_it_waits() -> None:
    written, log = play("default", 3)
    assert written == ["p0", "p1", "p2", "c0", "c1", "c2"]
    assert log.splitlines()[0] == "1 program program program,core0 program program.py:0"


def test_each_preemption_is_taken_and_logged_with_its_place() -> None:
    written, log = play("steps:2=core0,3=program", 3)
    assert written == ["p0", "p1", "p2", "c0", "c1", "c2"]
    two, three = "2 core0 program program,core0 program program.py:1", "3 program core0 program,core0 core0 core.py:0"
    assert log.splitlines()[1:3] == [two, three]
    assert play("steps:2=core0,4=program", 3)[0] == ["p0", "c0", "p1", "p2", "c1", "c2"]


def test_the_digest_tells_orders_apart() -> None:
    digests = [play(schedule, 4)[1].split()[-1] for schedule in ("default", "default", "steps:2=core0", "random:3")]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_loop_that_polls_gives_way() -> None:
    turns = Turns(parse("default"), None)
    program, core = Actor("program"), Actor("core0")
    turns.add(program)
    turns.add(core)
    done = []

    def serve() -> None:
        core.gate.acquire()
        done.append(True)
        turns.end("")

    threading.Thread(target=serve, daemon=True).start()
    while not done:
        turns.step("poll.py:1")


def test_a_time_limit_passes_by_lines_and_at_once_when_nobody_can_go_on() -> None:
    turns = Turns(parse("default"), None)
    program, core = Actor("program"), Actor("core0")
    turns.add(program)
    turns.add(core)

    def serve() -> None:
        core.gate.acquire()
        for _ in range(20_000):
            turns.step("core.py:1")
        core.is_ready = lambda: False
        turns.end("core.py")

    threading.Thread(target=serve, daemon=True).start()
    turns.wait(lambda: False, "program.py:1", 5000)
    assert 5000 <= turns.ticks < 20_000
    turns.wait(lambda: False, "program.py:2", 10**9)
    assert turns.ticks >= 10**9


def test_nobody_who_can_go_on_is_an_error() -> None:
    turns = Turns(parse("default"), None)
    program, core = Actor("program"), Actor("core0")
    core.is_ready = lambda: False
    turns.add(program)
    turns.add(core)
    with pytest.raises(StuckError, match=r"program, core0 wait for each other, the last of them at program\.py:7"):
        turns.wait(lambda: False, "program.py:7")
