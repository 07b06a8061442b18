"""What comes in the middle of a wait in C: a handler that raises, and a daemon that asks where the program stands."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

import arm_client as hb
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from tests.arm_client.conftest import chip
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip

__all__ = ["chip"]
pytestmark = pytest.mark.dsp_board(image="../../arm_client/images/ops.py")


@pytest.fixture
def spin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_SPIN_US", request.param)


@pytest.mark.parametrize("spin", ["0", "400000"], indirect=True)
def test_a_handler_that_raises_ends_a_wait_that_sleeps_or_polls(spin: None, chip: Chip) -> None:
    def handler(*_: object) -> None:
        raise InterruptedError("by the handler")

    held, before = chip.hold(), signal.signal(signal.SIGALRM, handler)
    try:
        for limit_ms in (0, 60_000):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(InterruptedError, match="by the handler"):
                hb.hbDSPWaitTaskDone(held.task, limit_ms)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert held.finish() == 0


@pytest.mark.parametrize("spin", ["0"], indirect=True)
def test_a_wait_continues_after_the_daemon_has_asked_where_it_stands(spin: None, chip: Chip) -> None:
    def ask_and(end: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            found = 0
            while found < 2:  # a busy machine may be late with the answer
                found += __file__ in str(ask(BoardPaths(chip.board.path), "why", PATIENCE_S))
            end()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    held = chip.hold()
    thread = ask_and(held.let_go)
    assert hb.hbDSPWaitTaskDone(held.task, 0) == 0
    thread.join()
    assert hb.hbDSPReleaseTask(held.task) == 0
    flags = chip.board.from_array(np.zeros(8, np.uint8))
    thread = ask_and(lambda: flags.__setitem__(1, 1))
    assert chip.board.call(chip.HOLD, flags, chip.board.empty(8, np.uint8)).all()
    thread.join()
