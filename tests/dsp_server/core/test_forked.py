"""What an op forks does its own work: it never answers a task, claims one, or is taken for the core."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from arm_client.client import Board
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

IMAGE = Path(__file__).parent.parent / "forking_image.py"
RETURN, RETURN_FROM_C, RAISE, RAISE_FROM_C, LEAVE, TERMINATE = range(0x1000, 0x1006)
NO_CORE = "hbrt ended it: a forked process cannot carry on as the core."


def _call(board: Board, cmd: int) -> tuple[int, int, int]:
    """Process of the core that answered, of its child, and the child's exit code."""
    raw = bytes(board.call(cmd, None, board.alloc(12), timeout=30).view())
    core, child, code = (int.from_bytes(raw[at : at + 4], "little", signed=True) for at in (0, 4, 8))
    return core, child, code


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_WATCHDOG_MS", "20000")  # of an op whose child does not end


def test_a_child_that_comes_back_out_of_an_op_is_ended_and_the_core_goes_on(start: Start) -> None:
    running = start(IMAGE, cores=1)
    board = running.attach()
    core = running.core(0)["pid"]
    came = {
        RETURN: (1, "which returned from it. "),
        RETURN_FROM_C: (1, "which returned from it. "),
        RAISE: (1, "ValueError: the child fell\n"),
        RAISE_FROM_C: (1, "ValueError: the child fell\n"),
        LEAVE: (5, "which called sys.exit(5) in it. "),
    }
    for cmd, (code, _) in came.items():
        answered, child, ended = _call(board, cmd)
        assert (answered, ended) == (core, code)
        assert f"op (command {cmd:#x}) forked process {child}, which" in running.log()
    log = running.log()
    for _, how in came.values():
        assert f"{how}{NO_CORE}" in log
    after = running.until(lambda: (now := running.core(0))["tasks"] == len(came) and now, "as many answers as calls")
    assert (after["pid"], after["crashes"]) == (core, 0)


def test_a_child_has_none_of_the_cores_signal_handlers(start: Start) -> None:
    running = start(IMAGE, cores=1)
    assert _call(running.attach(), TERMINATE)[2] == -signal.SIGTERM


@pytest.mark.parametrize(
    ("way", "came"), [("serve", "which called hb_dsp_start(). "), ("raise", "ValueError: the child")]
)
def test_a_child_of_an_image_is_no_core(start: Start, monkeypatch: pytest.MonkeyPatch, way: str, came: str) -> None:
    monkeypatch.setenv("FORKING_IMAGE", way)
    running = start(IMAGE, cores=1)
    assert _call(running.attach(), RETURN)[0] == running.core(0)["pid"]
    running.until(
        lambda: came in running.log() and "The image's main() forked process" in running.log(), "the child's end"
    )
    assert running.core(0)["crashes"] == 0
