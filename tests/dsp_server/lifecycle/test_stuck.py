"""An op that makes no progress is told long before the watchdog ends it; one that moves is not."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from arm_client.client import Board
from dsp_server.core.progress import FEWEST_RUNS, Place, _place_of, _values_of, usable_ns
from tests.dsp_server.images import halts
from tests.each import each

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

IMAGE = Path(halts.__file__)
HALT = 0x1000
LOOK_SECONDS = 0.01  # between two looks, which else keep the daemon from its own
WAITS_S, COMPUTES_S = 0.5, 0.7
LIMITS = {
    "dsp_server.lifecycle.health.WAITS_SECONDS": WAITS_S,
    "dsp_server.lifecycle.health.COMPUTES_SECONDS": COMPUTES_S,
    "dsp_server.lifecycle.child.STOP_GRACE_SECONDS": 0.1,
}


@each(
    "wall, cpu, delay, is_runnable, usable",
    [
        (80, 0, 0, False, 80),  # it waits
        (80, 80, 0, False, 80),  # it computes, and waits for the interpreter's lock while the look has it
        (80, 80, 0, True, 80),  # it computes in C
        (80, 0, 0, True, 0),  # it had no CPU at all
        (80, 5, 70, False, 10),  # it had one now and then
        (80, 90, 0, True, 80),
    ],
)
def test_the_wait_for_a_cpu_does_not_count(
    wall: int,
    cpu: int,
    delay: int,
    is_runnable: bool,  # noqa: FBT001
    usable: int,
) -> None:
    assert usable_ns(wall, cpu, delay, is_runnable=is_runnable) == usable


def test_an_op_in_a_debugger_stands_nowhere() -> None:
    def op() -> Place | None:
        return _place_of(sys._getframe())

    names = {"_place_of": _place_of, "sys": sys, "__name__": "image"}
    assert len(FunctionType(op.__code__, names)()) > 2
    assert FunctionType(op.__code__, {**names, "__name__": "pdb"})() is None


def test_a_look_at_an_ops_variables_keeps_none_of_them() -> None:
    def op(item: object) -> tuple[object, weakref.ref[object]]:
        seen = _values_of(sys._getframe())
        assert [value for name, value in seen[0] if name == "item"] == [id(item)]
        it = weakref.ref(item)
        del item
        return seen, it

    class Item:
        pass

    assert op(Item())[1]() is None


def test_a_look_leaves_an_op_the_variables_that_it_has_asked_for() -> None:
    def op(item: int) -> object:
        mine = locals()
        _values_of(sys._getframe())
        return mine["item"]

    assert op(7) == 7


@pytest.fixture
def running(start: Callable[..., Running]) -> Running:
    return start(IMAGE, cores=1, limits=LIMITS)


def halt(board: Board, way: int) -> tuple[Any, Any]:
    """A task that runs; and its input, whose second byte ends it."""
    block = board.alloc(8)
    block.view()[0] = way
    task = board.submit(HALT, block)
    while not task.running():
        assert not task.done()
    return task, block


def learn(board: Board) -> None:
    block = board.alloc(8)
    for _ in range(FEWEST_RUNS):
        board.call(HALT, block)


@pytest.mark.parametrize("way", [halts.WAIT, halts.SPIN])
def test_an_op_that_stands_still_is_stuck(running: Running, way: int) -> None:
    board = running.attach()
    learn(board)
    task, _ = halt(board, way)
    words = set()
    while (word := running.core(0)["health"]) != "stuck":
        words.add(word)
        time.sleep(LOOK_SECONDS)
    assert words <= {"busy", "stalled"}  # on a busy machine, the beats of a core that computes may be late
    status = running.ask("status")
    assert not status["healthy"]
    how = "waited in one place" if way == halts.WAIT else "computed in one call"
    assert f"is stuck: halt (command 0x1000) has {how} for" in status["cores"][0]["problem"]
    assert task.running()


def test_an_op_that_moves_is_busy_and_so_is_one_that_nobody_knows(running: Running) -> None:
    board = running.attach()
    assert running.core(0)["health"] == "ok"
    task, _ = halt(board, halts.WAIT)  # its first run
    begin = time.monotonic()
    while time.monotonic() - begin < 2 * WAITS_S:
        assert running.core(0)["health"] != "stuck"
        time.sleep(LOOK_SECONDS)
    running.until(lambda: running.core(0)["health"] == "busy" and running.ask("status")["healthy"], "a healthy board")
    running.ask("restart")
    assert task.exception() is not None
    learn(board)
    task, block = halt(board, halts.MOVE)
    begin = time.monotonic()
    while time.monotonic() - begin < 2 * COMPUTES_S:
        assert running.core(0)["health"] != "stuck"
        time.sleep(LOOK_SECONDS)
    block.view()[1] = 1
    task.result()
    running.until(lambda: running.core(0)["health"] == "ok", "an idle core")
