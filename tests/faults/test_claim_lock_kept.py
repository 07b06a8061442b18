"""A program keeps the claim lock: it is stopped with it in hand, or dies so that the kernel does not release it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.limits import PATIENCE_S
from tests.lock_holders import BREAK_ROBUST_LIST

if TYPE_CHECKING:
    from tests.shared import Shell

HOLDER = """
import os, signal, sys
from arm_client import connect
board = connect()
board.ping()
lock = board.session.link.mailbox.claim_lock
"""
STOPPED = HOLDER + "print(os.getpid(), flush=True)\nwith lock: os.kill(os.getpid(), signal.SIGSTOP)\nboard.ping()\n"
DYING = f"{HOLDER}\nlock.__enter__()\n{BREAK_ROBUST_LIST}\nprint(os.getpid(), flush=True)\nos._exit(0)\n"
CALLER = """
import sys
import arm_client as hb
from arm_client import connect
board = connect()
block = board.alloc(64)
waiting = board.submit(0x0)
try:
    waiting.result(0.2)
except TimeoutError as error:
    print(error, flush=True)
print(waiting.cancel(), flush=True)
block.free()
print(board.alloc(64).phy_addr > 0, flush=True)
dropped = board.submit(0x0)
del dropped
print("waits", flush=True)
waiting.result()
board.ping()
board.close()
print("ended", flush=True)
"""

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(shell: Shell) -> Iterator[Start]:
    shell.good("start")
    yield lambda program: shell.start("-c", program)
    for process in shell._started:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    read = process.stdout.readline()
    assert read, process.stderr and process.stderr.read()
    return read.rstrip()


def stopped(start: Start) -> int:
    """A program that is stopped with the lock in hand."""
    pid = int(line(start(STOPPED)))
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    return pid


def told(shell: Shell) -> str:
    """What ``hbrt status`` says of the lock, once it does."""
    while not (problem := str(shell.status()["claim_lock"])):
        pass
    return problem


def test_others_go_on_within_their_limits_and_are_told_who_keeps_it(shell: Shell, start: Start) -> None:
    holder = stopped(start)
    caller = start(CALLER)
    # The end of its wait, then all that needs the lock: none of it waits for the holder.
    assert f"is held by process {holder} (python" in line(caller)
    assert [line(caller) for _ in range(3)] == ["False", "True", "waits"]
    problem = told(shell)
    assert problem.startswith(f"The claim lock is held by process {holder} (python")
    assert (
        "which is stopped by a signal (SIGSTOP) or a debugger. Until it is released, no core can claim a task"
        in problem
    )
    assert f"'kill -CONT {holder}' resumes it, 'kill -9 {holder}' ends it" in problem
    status = shell.hbrt("status")
    assert status.returncode == 3
    assert status.stdout.count(f"held by process {holder} ") == 2  # now, and as a finding
    assert {core["health"] for core in shell.status()["cores"]} == {"ok"}  # cores that wait continue beating
    assert f"claim-lock: {problem}" in shell.paths().log.read_text()
    doctor = shell.hbrt("doctor")
    assert doctor.returncode == 3
    assert f"The claim lock is held by process {holder} " in doctor.stdout
    os.kill(holder, signal.SIGCONT)
    assert line(caller) == "ended"
    assert shell.hbrt("status", "--wait-healthy").returncode == 0
    assert [found["kind"] for found in shell.status()["findings"] if found["kind"] != "leak"] == ["claim-lock"]
    assert "The claim lock is available again." in shell.paths().log.read_text()


def test_the_end_of_the_holder_is_the_end_of_it(shell: Shell, start: Start) -> None:
    holder = stopped(start)
    caller = start(CALLER)
    while line(caller) != "waits":
        pass
    told(shell)
    os.kill(holder, signal.SIGKILL)
    assert line(caller) == "ended"
    assert shell.hbrt("status", "--wait-healthy").returncode == 0


def test_a_holder_that_died_where_the_kernel_did_not_see_it_is_repaired(shell: Shell, start: Start) -> None:
    dying = start(DYING)
    holder = int(line(dying))
    dying.wait()
    assert line(start("from arm_client import connect\nconnect().ping()\nprint('ended', flush=True)")) == "ended"
    (found,) = [found for found in shell.status()["findings"] if found["kind"] != "leak"]
    assert found["kind"] == "claim-lock"
    assert found["text"].startswith(f"Thread {holder} ended while holding the claim lock")
    assert shell.hbrt("status", "--wait-healthy").returncode == 0


@pytest.mark.parametrize(
    "way",
    [
        "stop",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("SIGTERM", "a client that goes first")),
        "a core that is restarted first",
    ],
)
def test_a_stop_stops_whoever_keeps_it(shell: Shell, start: Start, way: str) -> None:
    daemon, holder = shell.pid(), stopped(start)
    caller = start(CALLER)
    while line(caller) != "waits":
        pass
    if way == "SIGTERM":
        pidfd = os.pidfd_open(daemon)
        os.kill(daemon, signal.SIGTERM)
        assert select.select([pidfd], [], [], PATIENCE_S)[0]
        os.close(pidfd)
    else:
        if way == "a client that goes first":
            caller.kill()
            caller.wait()
        elif way == "a core that is restarted first":
            shell.good("restart", "--core", 0)
        shell.good("stop")
    assert shell.files() == ["log"]
    if way != "a client that goes first":
        output = caller.communicate()[0]
        assert "ended" not in output  # its calls answered that the board is lost
    os.kill(holder, signal.SIGKILL)
