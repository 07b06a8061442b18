"""Tasks that a program never released are told when it has ended; those of its futures are no leak."""

from __future__ import annotations

import os
import sys

import pytest

from arm_client.client import Board
from tests.nursery import Client

C_NAMES = """
import arm_client as hb
tasks = [hb.hbDSPTask_t() for _ in range(5)]
ctrl = hb.hbDSPRpcCtrlParam()
hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
ctrl.rpcCmd = hb.HB_DSP_RPC_CMD_PING
for task in tasks:
    assert hb.hbDSPRpc(task, None, None, ctrl) == 0
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
for task in tasks[{kept}:]:
    assert hb.hbDSPReleaseTask(task) == 0
"""
FUTURES = """
import arm_client as hb
board = hb.connect()
tasks = [board.submit(hb.HB_DSP_RPC_CMD_PING) for _ in range(9)]
tasks[-1].result()  # the others stay as they are, until the end of the process
for _ in range(9):
    board.call(hb.HB_DSP_RPC_CMD_PING)
"""


def told_of(board: Board, source: str, **environment: str) -> list[str]:
    """What the board has found when a program has ended."""
    command = [sys.executable, "-c", source]
    process = Client(command, env={**os.environ, "HBRT_BOARD": str(board.path), **environment})
    assert process.wait(60) == 0
    while any(client["pid"] == process.pid for client in board.status()["clients"]):
        pass
    return [found["text"] for found in board.status()["findings"] if f"Process {process.pid} " in found["text"]]


@pytest.mark.parametrize("mode", ["direct", "relay"])
def test_tasks_never_released_are_told(dsp_board: Board, mode: str) -> None:
    (text,) = told_of(dsp_board, C_NAMES.format(kept=3), HB_DSP_RPC_MODE=mode)
    assert text.endswith("(-c) ended with 3 finished tasks not released (hbDSPReleaseTask).")


@pytest.mark.parametrize("source", [C_NAMES.format(kept=0), FUTURES])
def test_what_was_released_or_is_a_future_s_is_no_leak(dsp_board: Board, source: str) -> None:
    assert told_of(dsp_board, source) == []
