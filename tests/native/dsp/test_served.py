"""Ops in C that the core serves without Python, and those that call the runtime: nobody sees a difference."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from arm_client.client import Board, private_board
from arm_client.errors import CoreLostError, HbrtError
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from tests.limits import PATIENCE_S
from tests.waiting import until

Build = Callable[..., Any]
PLAIN, COUNTS, CLOCK, WAITS, TILE, REGISTERS, NEW = range(0x1000, 0x1007)
IMAGE = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "hb_dsp.h"
#include "hbrt/cycles.h"
static int plain(void *input, void *output, void *tm) {
  (void)tm;
  if (input && output) memcpy(output, input, 4);
  return input ? *(int *)input : 0;
}
static int counts(void *input, void *output, void *tm) {
  (void)output, (void)tm;
  for (int n = 0; n < *(int *)input; n++) HBRT_CYCLES_COUNT(MOVE);
  return 0;
}
static int clock_now(void *input, void *output, void *tm) {
  (void)input, (void)tm;
  *(uint32_t *)output = XT_RSR_CCOUNT();
  return 0;
}
static int waits(void *input, void *output, void *tm) {
  (void)tm;
  if (output) *(volatile int *)output = 1;
  while (!*(volatile int *)input) usleep(1000);
  return 0;
}
static int tile(void *input, void *output, void *tm) {
  (void)output;
  printf("tile of %d\\n", *(int *)input);
  char *mine = xvAllocateBuffer(tm, *(int *)input, XV_MEM_BANK_COLOR_0, 64);
  PRT_IF_COND_RETURN(mine == XVTM_ERROR, HB_DSP_OUT_OF_TCM)
  return xvFreeBuffer(tm, mine);
}
static int registers(void *input, void *output, void *tm) {
  (void)input, (void)output, (void)tm;
  return hb_dsp_register_fn(0x1006, plain, 0);
}
int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, plain, 0);
  hb_dsp_register_fn(0x1001, counts, 0);
  hb_dsp_register_fn(0x1002, clock_now, 0);
  hb_dsp_register_fn(0x1003, waits, 0);
  hb_dsp_register_fn(0x1004, tile, 0);
  hb_dsp_register_fn(0x1005, registers, 0);
  return hb_dsp_start();
}
"""


@pytest.fixture
def board(build: Build) -> Iterator[Board]:
    with private_board(build(IMAGE), cores=1) as board:
        yield board


def value(board: Board, number: int) -> Any:
    return board.from_array(np.full(16, number, np.int32))


def core(board: Board) -> dict[str, Any]:
    found: dict[str, Any] = board.status()["cores"][0]
    return found


def test_values_cycles_and_counts_are_the_same_with_and_without_python(board: Board) -> None:
    for number in (0, 0, 7, 0):
        if number:
            with pytest.raises(HbrtError, match=r"plain \(command 0x1000\) returned 7\. \[7\]$") as failed:
                board.call(PLAIN, value(board, number))
            assert failed.value.status == 7
        else:
            board.call(PLAIN, value(board, number), value(board, 1))
    for number in (100, 0, 30):
        board.call(COUNTS, value(board, number))
    spent = board.empty(1, np.uint32)
    board.call(CLOCK, None, spent)
    clock = int(np.asarray(spent)[0])
    until(lambda: core(board)["cycles"] == clock > 0)
    done = [row for row in board.session.link.request("tasks", last=3) if row["cmd"] == COUNTS]
    of_each = [(row["modeled_is_estimated"], row["work"]["bundles"] > 0) for row in done]
    assert of_each == [(True, False), (False, True)]  # of 0 instructions and of 30
    with pytest.raises(
        HbrtError, match=r"tile \(command 0x1004\) returned -\d+\..*do not fit.*\nIts output:\ntile of 1000000"
    ):
        board.call(TILE, value(board, 1_000_000))
    board.call(TILE, value(board, 64))
    with pytest.raises(HbrtError, match=r"returned 5\. \[5\]$"):  # what an earlier task said is not this one's
        board.call(PLAIN, value(board, 5))
    until(lambda: core(board)["tasks"] == 11)  # a core in Python counts when it sleeps
    assert core(board)["cycles"] > clock + 3 * 20_000  # what ops printed
    assert board.status()["findings"] == []


def test_command_that_an_op_registers_is_served(board: Board) -> None:
    with pytest.raises(HbrtError, match="No op is registered for command 0x1006"):
        board.call(NEW)
    board.call(REGISTERS)
    output = value(board, 0)
    board.call(NEW, None, output)
    with pytest.raises(HbrtError, match=r"returned 9\. \[9\]$"):
        board.call(NEW, value(board, 9))


def test_op_that_runs_is_named_with_its_line_and_its_death_costs_its_task(board: Board) -> None:
    flag, begun = value(board, 0), value(board, 0)
    waiting = board.submit(WAITS, flag, begun)
    until(lambda: np.asarray(begun)[0] == 1)
    status = board.status()
    assert status["tasks"]["running"] == 1
    assert "waits" in str(status["longest_running"])
    until(lambda: "'waits'" in str(ask(BoardPaths(board.path), "why")))
    os.kill(core(board)["pid"], signal.SIGKILL)
    with pytest.raises(CoreLostError, match=r"waits \(command 0x1003\)"):
        waiting.result(PATIENCE_S)
    board.call(PLAIN)


def test_task_that_is_checked_runs_as_ever(build: Build) -> None:
    with private_board(build(IMAGE), cores=1, check="memory") as checked:
        for _ in range(3):
            checked.call(PLAIN, value(checked, 0), value(checked, 0))
        assert core(checked)["tasks"] == 3


def test_board_stops_while_ops_follow_one_another(board: Board) -> None:
    """C goes from task to task, and returns all the same."""
    stop = threading.Event()
    pid = core(board)["pid"]

    def feed() -> None:
        with contextlib.suppress(HbrtError):
            while not stop.is_set():
                for task in [board.submit(PLAIN) for _ in range(16)]:
                    task.result(PATIENCE_S)

    feeders = [threading.Thread(target=feed) for _ in range(2)]
    for feeder in feeders:
        feeder.start()
    try:
        before = core(board)["tasks"]
        until(lambda: core(board)["tasks"] > before + 100)
        os.kill(pid, signal.SIGTERM)  # as the daemon does
        until(lambda: core(board)["pid"] != pid)
    finally:
        stop.set()
        for feeder in feeders:
            feeder.join(PATIENCE_S)
