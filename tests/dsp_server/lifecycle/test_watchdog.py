"""An op that does not end, or that ends its core, costs its task and nothing else; its caller learns where it was."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from arm_client.client import Board
from arm_client.errors import CoreLostError
from hbrt.status import Status
from tests.limits import PATIENCE_S

HANG, HANG_IN_C, SEGFAULT, FINE, HANG_UNLIMITED = range(0x1000, 0x1005)
one_core = pytest.mark.dsp_board(image="../watchdog_image.py", cores=1, fresh=True)


@one_core
@pytest.mark.parametrize(("cmd", "name"), [(HANG, "hang"), (HANG_IN_C, "hang_in_c")])
def test_an_op_over_its_budget_is_ended(dsp_board: Board, cmd: int, name: str) -> None:
    queued = [dsp_board.submit(cmd), *(dsp_board.submit(FINE) for _ in range(5))]
    with pytest.raises(CoreLostError) as caught:
        queued[0].result(20)
    assert caught.value.status == Status.HB_DSP_WATCHDOG
    assert f"{name} (command {cmd:#x}) exceeded its time limit of 100 ms; core 0 was ended." in caught.value.text
    # On a busy machine the core was ended before this program came to wait.
    assert re.search(
        rf" (waits|does not wait) for task {queued[0]._handle & 0xFFF} \({name}, command {cmd:#x}\); core 0 \(process ",
        caught.value.text,
    )
    assert re.search(rf" has run task \d+ for \S+ \w+ at \S*watchdog_image\.py:\d+ in {name}[.,]", caught.value.text)
    assert 'watchdog_image.py", line' in caught.value.text
    for task in queued[1:]:
        task.result(20)
    (core,) = dsp_board.status()["cores"]
    assert (core["state"], core["crashes"], core["epoch"]) == ("running", 1, 2)
    log = (Path(dsp_board.status()["directory"]) / "log").read_text(encoding="utf-8")
    assert f"Core 0 has run {name} (command {cmd:#x}) for " in log


@one_core
def test_a_segfault_says_where(dsp_board: Board) -> None:
    with pytest.raises(CoreLostError, match=r"(?s)Segmentation fault.*watchdog_image.py.*in segfault"):
        dsp_board.call(SEGFAULT, timeout=PATIENCE_S)


@one_core
def test_no_limit_is_no_limit(dsp_board: Board) -> None:
    unlimited = dsp_board.submit(HANG_UNLIMITED)
    with pytest.raises(TimeoutError):
        unlimited.result(1.0)
    assert unlimited.running()
    os.kill(dsp_board.status()["cores"][0]["pid"], signal.SIGKILL)
    with pytest.raises(CoreLostError):
        unlimited.result(20)


def test_the_default_limit_is_a_setting(
    dsp_board_factory: Callable[..., AbstractContextManager[Board]],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("HBRT_WATCHDOG_MS", "150")
    image = request.path.parent.parent / "watchdog_image.py"
    with dsp_board_factory(image=image, cores=1, fresh=True) as board:
        with pytest.raises(CoreLostError, match=r"hang .command 0x1004. exceeded its time limit of 150 ms"):
            board.call(HANG_UNLIMITED, timeout=PATIENCE_S)
        board.call(FINE, timeout=PATIENCE_S)
