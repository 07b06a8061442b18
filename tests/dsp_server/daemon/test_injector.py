"""Faults that come on purpose: at their call, once, said as a finding, and gone afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board
from arm_client.errors import CallerError, CoreLostError, OpFailedError, OutOfMemoryError
from hbrt.ddr.layout import CLIENT_CHECKS
from tests.waiting import until

IMAGE = """
from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start
from dsp_server import idma_copy_desc, idma_desc_done, idma_last_error

def copy(input, output, tm):
    handle = idma_copy_desc(output, input, len(input))
    if handle < 0:
        raise RuntimeError(idma_last_error())
    while idma_desc_done(handle) != 1:
        pass
    return 0

def main():
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(0x1000, copy, 0)
    hb_dsp_start()
"""
X = np.arange(4, dtype=np.float32)


def softmax_by_the_next_core(board: Board) -> None:
    """A core that died starts again a little later."""
    until(lambda: board.status()["cores"][0]["state"] == "running")
    assert np.isclose(nn.softmax(board, X).sum(), 1)


def injected(board: Board) -> list[str]:
    return [found["text"] for found in board.status()["findings"] if found["kind"] == "injected"]


def checks(board: Board) -> int:
    link = board.session.link
    return link.mailbox.map[link.ddr.layout.client(link.client_id) + CLIENT_CHECKS]


@pytest.mark.dsp_board(cores=1, fresh=True)
def test_core_dies_in_the_call_that_was_asked_for_and_the_next_one_succeeds(dsp_board: Board) -> None:
    assert dsp_board.inject("kill-core call=3") == [{"fault": "kill-core call=3", "came": 0}]
    for _ in range(2):
        nn.softmax(dsp_board, X)
    with pytest.raises(CoreLostError):
        nn.softmax(dsp_board, X)
    softmax_by_the_next_core(dsp_board)
    (text,) = injected(dsp_board)
    assert "As requested, 'kill-core call=3' hits softmax (command 0x400) on core 0." in text
    assert dsp_board.inject() == []


@pytest.mark.dsp_board(cores=1, fresh=True)
def test_fault_that_comes_twice_survives_the_core_that_it_killed(dsp_board: Board) -> None:
    dsp_board.inject("kill-core times=2")
    for _ in range(2):
        with pytest.raises(CoreLostError):
            softmax_by_the_next_core(dsp_board)
    softmax_by_the_next_core(dsp_board)
    assert len(dsp_board.inject()) == 0


def test_allocation_is_refused_once(dsp_board: Board) -> None:
    dsp_board.inject("refuse-alloc call=2")
    dsp_board.alloc(64)
    with pytest.raises(OutOfMemoryError, match="as requested by 'refuse-alloc call=2'"):
        dsp_board.alloc(64)
    dsp_board.alloc(64)
    assert len(injected(dsp_board)) == 1


def test_copy_is_refused_once_and_delay_delays(dsp_board_factory: object, tmp_path: Path) -> None:
    image = tmp_path / "image.py"
    image.write_text(IMAGE)
    with dsp_board_factory(image=image, cores=1) as board:  # type: ignore[operator]
        x, y = board.from_array(X), board.empty(4, np.float32)
        board.inject("fail-copy call=2", "delay ms=80 call=4")
        board.call(0x1000, x, y)
        with pytest.raises(OpFailedError, match="This copy is refused, as requested by 'fail-copy call=2'"):
            board.call(0x1000, x, y)
        times = []
        for _ in range(2):
            task = board.submit(0x1000, x, y)
            task.result()
            times.append(task.duration_ns)
        assert times[1] > times[0] + 40e6


def test_nothing_is_looked_at_without_a_fault_and_after_the_last(dsp_board: Board) -> None:
    assert checks(dsp_board) == 0
    dsp_board.inject("delay call=1000")
    assert checks(dsp_board) != 0
    assert dsp_board.inject(clear=True) == []
    assert checks(dsp_board) == 0


def test_what_is_no_fault_is_refused_and_adds_nothing(dsp_board: Board) -> None:
    with pytest.raises(CallerError, match="Unknown fault 'explode'"):
        dsp_board.inject("delay", "explode")
    with pytest.raises(CallerError, match="The board has no core 7"):
        dsp_board.inject("kill-core core=7")
    for cmd in (0x0, 0xFFFF):
        with pytest.raises(CallerError, match=f"would never occur: command {cmd:#x} is not an op"):
            dsp_board.inject(f"kill-core cmd={cmd:#x}")
    with pytest.raises(CallerError, match="has no relay now"):
        dsp_board.inject("lose-relay")
    assert dsp_board.inject() == []


def test_verb_lists_what_is_still_to_come(dsp_board: Board) -> None:
    board = str(dsp_board.session.link.paths.path)
    command = [sys.executable, "-m", "hbrt", "inject", "--board", board, "--json"]
    done = subprocess.run([*command, "delay call=9"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["faults"] == [{"fault": "delay call=9", "came": 0}]
    subprocess.run([*command, "--clear"], capture_output=True, check=True)
    done = subprocess.run([*command, "boom"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Unknown fault 'boom'" in done.stdout
