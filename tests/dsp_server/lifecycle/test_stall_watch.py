"""A core that is stopped while it runs no op: others serve what any core may run, and it is started again."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dsp_server.process.proc_state import STOPPED, state_of
from hbrt.ddr.layout import (
    ACTIVITY_ASLEEP,
    ACTIVITY_LOOKING,
    ACTIVITY_RUNNING,
    ACTIVITY_STALLED,
    BEAT_SECONDS,
    CORE_ACTIVITY,
)
from hbrt.status import Status
from tests.arm_client.dnn.nets import endless
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from arm_client.client import Board
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

MODEL_CALL = """
import sys

import arm_client as hb
from tests.arm_client.dnn.nets import Net, good

net = Net(open(sys.argv[1], "rb").read())
net.inputs[0].sysMem[0].array("<i8")[:1] = 1 << 62
good(hb.hbSysFlushMem(net.inputs[0].sysMem[0], hb.HB_SYS_MEM_CACHE_CLEAN))
task = net.infer()
print("begun", flush=True)
sys.stdin.readline()
print(eval(f"hb.{sys.argv[2]}"))
"""
SHORT = {"dsp_server.lifecycle.lifecycle.STALL_SECONDS": 0.5}


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def activity(board: Board, core: int) -> int:
    ddr = board.session.link.ddr
    return ddr.map[ddr.layout.core(core) + CORE_ACTIVITY]


def rounds(board: Board) -> float:
    """Seconds that a call for any core takes."""

    def call() -> float:
        began = time.perf_counter()
        board.ping()
        return time.perf_counter() - began

    return statistics.median(call() for _ in range(9))


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_WATCHDOG_MS", "0")


@pytest.mark.usefixtures("no_limit")
def test_nobody_rings_a_core_that_is_stopped_until_it_beats_again(start: Start) -> None:
    running = start()
    board = running.attach()
    with stopped(running.core(0)["pid"]):
        running.until(lambda: activity(board, 0) == ACTIVITY_STALLED, "the mark of a stalled core")
        assert rounds(board) < BEAT_SECONDS / 4  # else each call waits for a beat of the other core
        assert [running.which(board).core for _ in range(5)] == [1] * 5
        waiting = board.submit(running.WHICH, None, board.alloc(12), core=1)
    waiting.result(20)
    running.until(lambda: activity(board, 0) == ACTIVITY_ASLEEP, "the end of the mark")
    running.until(lambda: running.which(board).core == 0, "a task of the core that beats again")
    assert (
        "has missed its heartbeat and runs no op: submitters will ring other cores until its next heartbeat."
        in running.log()
    )
    assert running.core(0)["crashes"] == 0


def test_a_core_that_stays_stopped_is_started_again(start: Start) -> None:
    running = start(limits=SHORT)
    board = running.attach()
    victim = running.core(0)["pid"]
    os.kill(victim, signal.SIGSTOP)
    waiting = board.submit(running.WHICH, None, board.alloc(12), core=1)
    waiting.result(20)
    core = running.core(0)
    assert core["pid"] != victim
    assert (core["state"], core["crashes"]) == ("running", 1)
    assert "with no op to run" in core["last_crash"]
    (found,) = running.ask("status")["findings"]
    assert found["kind"] == "stalled-core"
    assert f"Core 0 (process {victim}) ran no op and was stopped for " in found["text"]
    assert f"stalled-core: {found['text']}" in running.log()


@pytest.mark.usefixtures("no_limit")
@pytest.mark.parametrize("says", [ACTIVITY_RUNNING, ACTIVITY_LOOKING])
def test_a_core_is_seen_whatever_it_said_when_it_was_stopped(start: Start, says: int) -> None:
    """It says RUNNING also before it first looks, and when it has just answered: its slots tell that it runs no op."""
    running = start()
    board = running.attach()
    ddr, victim = board.session.link.ddr, running.core(0)["pid"]
    with stopped(victim):
        running.until(lambda: state_of(victim) in STOPPED, "the stop")
        ddr.map[ddr.layout.core(0) + CORE_ACTIVITY] = says
        running.until(lambda: activity(board, 0) == ACTIVITY_STALLED, "the mark of a stalled core")
    assert running.which(board, core=1).pid == victim


@pytest.mark.usefixtures("no_limit")
def test_a_core_that_is_stopped_in_an_op_is_not_taken_for_an_idle_one(start: Start) -> None:
    running = start(limits=SHORT)
    board = running.attach()
    held = running.hold(board)
    with stopped(running.core(0)["pid"]):
        running.until(lambda: running.core(0)["health"] == "stalled", "the look at a core that does not beat")
        assert activity(board, 0) == ACTIVITY_RUNNING
    held.let_go()
    held.task.result(20)
    assert "runs no op" not in running.log()


@pytest.mark.parametrize(
    "call", ["hbDNNWaitTaskDone(task, 0)", pytest.param("hbDNNReleaseTask(task)", marks=pytest.mark.long)]
)
def test_a_core_that_is_stopped_in_a_model_is_started_again(start: Start, tmp_path: Path, call: str) -> None:
    (tmp_path / "endless.onnx").write_bytes(endless())
    running = start(cores=1, is_private=False, limits=SHORT)
    environment = os.environ | {"HBRT_BOARD": running.paths.name, "HBRT_BPU": "board"}
    with subprocess.Popen(
        [sys.executable, "-c", MODEL_CALL, tmp_path / "endless.onnx", call],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"  # the load of the model ran before
        (on,) = running.until(lambda: running.ask("status")["running"], "the model's run")
        victim = running.core(on["core"])["pid"]
        os.kill(victim, signal.SIGSTOP)
        out, _ = program.communicate("stopped\n", PATIENCE_S)
    assert int(out) == (0 if "Release" in call else Status.HB_DNN_RUN_TASK_FAILED)
    running.until(lambda: running.core(on["core"])["epoch"] == 2, "the core's next process")
    assert "stopped for " in running.core(on["core"])["last_crash"]


@pytest.mark.usefixtures("no_limit")
def test_a_board_without_a_time_limit_leaves_a_stopped_core_alone(start: Start) -> None:
    running = start(limits=SHORT)
    board = running.attach()
    victim = running.core(0)["pid"]
    with stopped(victim):
        running.until(lambda: activity(board, 0) == ACTIVITY_STALLED, "the mark of a stalled core")
        patience = time.monotonic() + 3 * SHORT["dsp_server.lifecycle.lifecycle.STALL_SECONDS"]
        while time.monotonic() < patience:
            board.ping()
    assert running.which(board, core=1).pid == victim


def test_a_daemon_that_was_stopped_itself_blames_no_core(start: Start) -> None:
    """Where a whole board is stopped and continues, the cores' beats are old, and no core is at fault."""
    running = start(limits=SHORT)
    board = running.attach()
    pids = [running.pid, *(core["pid"] for core in running.ask("status")["cores"])]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2 * SHORT["dsp_server.lifecycle.lifecycle.STALL_SECONDS"])
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for _ in range(100):
        board.ping()
    assert [core["pid"] for core in running.ask("status")["cores"]] == pids[1:]
