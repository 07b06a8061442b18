"""Priority inversions on a live board: named once with both lines, under the check ``advice`` alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arm_client import HB_DSP_RPC_CMD_PING, Board
from arm_client.client import private_board
from tests.limits import PATIENCE_S
from tests.test_scheduling import CORE_0, CORE_1, Gate
from tests.waiting import until

IMAGE = Path(__file__).parents[3] / "arm_client/images/ops.py"
CLIENT_OP = """
import time

import numpy as np
from arm_client.client import connect
from dsp_server import HB_DSP_REGISTER_NN_ALL, hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

HOLD, ASKS = 0x1001, 0x1002


def hold(input, output, tm):
    input[0] = 1
    while not input[1]:
        time.sleep(0.001)
    return 0


def asks(input, output, tm):
    with connect(bytes(input).rstrip(b"\\0").decode()) as board:
        board.call(0, priority=0, core=2)
    return 0


def main():
    hb_dsp_env_init()
    HB_DSP_REGISTER_NN_ALL()
    hb_dsp_register_fn(HOLD, hold, 0)
    hb_dsp_register_fn(ASKS, asks, 0)
    hb_dsp_start()
"""


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("HBRT_CHECK", "advice")
    with private_board(IMAGE) as board:
        yield board


def named(board: Board) -> list[dict[str, Any]]:
    return [one for one in board.status()["findings"] if one["kind"] == "priority-inversion"]


def test_a_task_behind_a_lower_one_is_named_with_both_lines(board: Board) -> None:
    gate = Gate(board, CORE_0, 7).await_running()
    task = board.submit(HB_DSP_RPC_CMD_PING, priority=9, core=CORE_0)
    until(lambda: named(board), "a finding")
    [found] = named(board)
    gate.close()
    task.result(PATIENCE_S)
    assert "Core 1 is free, but its dspCoreId is 1: set 0 for any core." in found["text"]
    assert found["severity"] == "advice"
    assert [place["what"] for place in found["places"]] == ["waiting", "running"]
    assert Path(__file__).name in found["places"][0]["site"]
    assert "test_scheduling.py" in found["places"][1]["site"]
    assert named(board)[0]["count"] == 1


def test_a_busy_board_has_none(board: Board) -> None:
    gates = [Gate(board, core, 9).await_running() for core in (CORE_0, CORE_1)]
    tasks = [board.submit(HB_DSP_RPC_CMD_PING, priority=priority) for priority in (0, 9, 9)]
    until(lambda: board.status()["oldest_waiting"]["age_s"] > 0.4, "a long wait")
    assert not named(board)
    for gate in gates:
        gate.close()
    for task in tasks:
        task.result(PATIENCE_S)


def test_without_the_check_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_CHECK", "all")
    with private_board(IMAGE, cores=1) as board:
        gate = Gate(board).await_running()
        task = board.submit(HB_DSP_RPC_CMD_PING, priority=9)
        until(lambda: board.status()["oldest_waiting"]["age_s"] > 0.6, "a long wait")
        assert not named(board)
        gate.close()
        task.result(PATIENCE_S)


def test_an_op_that_waits_for_a_lower_task_is_named_with_the_one_between(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image = tmp_path / "client_image.py"
    image.write_text(CLIENT_OP)
    monkeypatch.setenv("HBRT_CHECK", "advice")
    with private_board(image) as board:
        gate = Gate(board, CORE_1, 50).await_running()
        task = board.submit(0x1002, str(board.path).encode(), priority=100, core=CORE_0)
        until(lambda: named(board), "a finding")
        [found] = named(board)
        gate.close()
        task.result(PATIENCE_S)
    assert "asks (0x1002) (priority 100" in found["text"]
    assert [place["what"] for place in found["places"]] == ["waiting", "queued", "running"]
