"""A program of test_meet.py: lives through what its argument names, and says that it was good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import arm_client as hb

ADD_ONE, FAIL, SLEEP, HOLD = range(0x1000, 0x1004)
RESTING = 2
CALLS = 300


class Call:
    """A block of two bytes, and calls with it."""

    def __init__(self) -> None:
        self.mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(self.mem, 4096) == 0
        self.input = hb.hbSysMem(self.mem.phyAddr, self.mem.virAddr, 8)
        self.output = hb.hbSysMem(self.mem.phyAddr + 64, (self.mem.virAddr or 0) + 64, 8)
        self.ctrl = hb.hbDSPRpcCtrlParam()
        hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(self.ctrl)

    def put(self, value: int) -> None:
        assert hb.hbSysWriteMem(self.input, bytes([value]), 1) == 0

    def get(self) -> int:
        got = bytearray(1)
        assert hb.hbSysReadMem(got, self.output, 1) == 0
        return got[0]

    def submit(self, cmd: int, priority: int = 0) -> hb.hbDSPTask_t:
        task = hb.hbDSPTask_t()
        self.ctrl.rpcCmd, self.ctrl.priority = cmd, priority
        assert hb.hbDSPRpc(task, self.input, self.output, self.ctrl) == 0, hb.last_error()
        return task

    def add_one(self, value: int) -> int:
        self.put(value)
        task = self.submit(ADD_ONE)
        assert hb.hbDSPWaitTaskDone(task, 0) == 0, hb.last_error()
        assert hb.hbDSPReleaseTask(task) == 0
        return self.get()

    def close(self) -> None:
        assert hb.hbSysFreeMem(self.mem) == 0


def _many(calls: int = CALLS) -> None:
    call = Call()
    for value in range(calls):
        assert call.add_one(value % 256) == (value + 1) % 256
    call.close()


def calls() -> None:
    """One after the other."""
    _many()


def threads() -> None:
    """Eight threads wait at once: one leads, the others follow."""
    bad: list[BaseException] = []

    def one() -> None:
        try:
            _many()
        except BaseException as error:  # noqa: BLE001 - said by the main thread
            bad.append(error)

    them = [threading.Thread(target=one) for _ in range(8)]
    for thread in them:
        thread.start()
    for thread in them:
        thread.join()
    assert not bad, bad


def in_flight() -> None:
    """More tasks at once than are leased at a time."""
    made = [Call() for _ in range(150)]
    for value, call in enumerate(made):
        call.put(value)
    tasks = [call.submit(ADD_ONE) for call in made]
    for task in reversed(tasks):
        assert hb.hbDSPWaitTaskDone(task, 0) == 0
        assert hb.hbDSPReleaseTask(task) == 0
    assert [call.get() for call in made] == [value + 1 for value in range(150)]
    for call in made:
        call.close()


def failures() -> None:
    """What fails, what is refused, what is not waited for long enough, and a handler that raises."""
    call = Call()
    task = call.submit(FAIL)
    assert hb.hbDSPWaitTaskDone(task, 0) == -42
    assert "returned -42" in hb.last_error()
    assert hb.hbDSPReleaseTask(task) == 0
    assert hb.hbDSPReleaseTask(task) == hb.HB_DSP_TASK_RELEASED
    assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_TASK_RELEASED
    assert hb.hbDSPWaitTaskDone(hb.hbDSPTask_t(12345), 0) == hb.HB_DSP_FOREIGN_TASK_HANDLE
    call.put(20)
    task = call.submit(SLEEP)
    assert hb.hbDSPWaitTaskDone(task, 1) == hb.HB_DSP_TIMEOUT
    _interrupt(lambda: hb.hbDSPWaitTaskDone(task, 0))
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
    assert hb.hbDSPReleaseTask(task) == 0
    for changed in ({"priority": 256}, {"priority": -1}, {"rpcCmd": 0x10000}, {"dspCoreId": 8}, {"dspCoreId": -1}):
        before = {name: getattr(call.ctrl, name) for name in changed}
        for name, value in changed.items():
            setattr(call.ctrl, name, value)
        assert hb.hbDSPRpc(hb.hbDSPTask_t(), call.input, call.output, call.ctrl) < 0, changed
        for name, value in before.items():
            setattr(call.ctrl, name, value)
    outside = hb.hbSysMem(call.mem.phyAddr + 4090, call.mem.virAddr, 16)
    assert hb.hbDSPRpc(hb.hbDSPTask_t(), outside, call.output, call.ctrl) == hb.HB_DSP_INVALID_ADDRESS
    odd = hb.hbSysMem(call.mem.phyAddr + 4, call.mem.virAddr, 16)
    assert hb.hbDSPRpc(hb.hbDSPTask_t(), odd, call.output, call.ctrl) == hb.HB_DSP_UNALIGNED_ADDRESS
    call.close()
    freed = call.input
    assert hb.hbDSPRpc(hb.hbDSPTask_t(), freed, freed, call.ctrl) == hb.HB_DSP_INVALID_ADDRESS


def _interrupt(wait: Any, after_s: float = 0.02) -> None:
    """Have a signal's handler raise in the middle of a wait."""

    def handler(*_: object) -> None:
        raise InterruptedError("by the handler")

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        wait()
    except InterruptedError:
        return
    raise AssertionError("the wait was not interrupted")


def interrupted_polls() -> None:
    """A signal that comes while a wait polls, and is over when it sleeps."""
    os.environ["HBRT_SPIN_US"] = "400000"
    call = Call()
    call.put(0)
    task = call.submit(HOLD)
    _interrupt(lambda: hb.hbDSPWaitTaskDone(task, 0), 0.1)
    call.put(1)
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
    assert hb.hbDSPReleaseTask(task) == 0
    call.close()


def callbacks() -> None:
    """Callbacks, while other threads wait."""
    done: list[int] = []
    everybody = threading.Event()
    made = [Call() for _ in range(20)]

    def on_done(_task: object, status: int, value: int) -> None:
        done.append(value)
        assert status == 0
        if len(done) == len(made):
            everybody.set()

    tasks = []
    for value, call in enumerate(made):
        call.put(value)
        tasks.append(call.submit(ADD_ONE))
        assert hb.hbDSPSetTaskDoneCb(tasks[-1], on_done, value) == 0
    _many(50)
    assert everybody.wait(60)
    assert sorted(done) == list(range(20))
    for task, call in zip(tasks, made, strict=True):
        assert hb.hbDSPReleaseTask(task) == 0
        call.close()


def forks() -> None:
    """A child has nothing of its parent's, and gets its own attachment."""
    call = Call()
    assert call.add_one(1) == 2
    task = call.submit(ADD_ONE)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert hb.hbDSPWaitTaskDone(task, 0) == hb.HB_DSP_FORKED
            assert hb.hbDSPReleaseTask(task) == hb.HB_DSP_FORKED
            hb.connect()
            _many(20)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
    assert hb.hbDSPReleaseTask(task) == 0
    assert call.add_one(5) == 6
    call.close()


def urgent() -> None:
    """Priority 255 interrupts ops on both cores."""
    slow = [Call(), Call()]
    for call in slow:
        call.put(0)
    tasks = [call.submit(HOLD) for call in slow]
    call = Call()
    call.put(7)
    task = call.submit(ADD_ONE, 255)
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
    assert call.get() == 8
    assert [hb.hbDSPWaitTaskDone(slow_task, 1) for slow_task in tasks] == [hb.HB_DSP_TIMEOUT] * 2
    for call_of_slow in slow:
        call_of_slow.put(1)
    for one in (*tasks, task):
        assert hb.hbDSPWaitTaskDone(one, 0) == 0
        assert hb.hbDSPReleaseTask(one) == 0
    for used in (*slow, call):
        used.close()


def asked() -> None:
    """A wait continues after the daemon has asked where it stands; one that only sleeps too."""
    os.environ["HBRT_SPIN_US"] = "0"

    def ask(end: Callable[[], None]) -> None:
        why = [sys.executable, "-m", "hbrt", "why"]
        found = 0
        while found < 2:  # a busy machine may be late with the answer
            found += __file__ in subprocess.run(why, check=False, capture_output=True, text=True).stdout
        end()

    call = Call()
    call.put(RESTING)
    task = call.submit(HOLD)
    thread = threading.Thread(target=ask, args=(lambda: call.put(1),))
    thread.start()
    assert hb.hbDSPWaitTaskDone(task, 0) == 0, hb.last_error()
    thread.join()
    assert hb.hbDSPReleaseTask(task) == 0
    call.close()

    with hb.connect() as board, board.alloc(8) as go:
        go.view()[0] = RESTING
        thread = threading.Thread(target=ask, args=(lambda: go.view().__setitem__(0, 1),))
        thread.start()
        board.call(HOLD, go)
        thread.join()


if __name__ == "__main__":
    life = sys.argv[1]
    globals()[life]()
    print(f"{life}: good")
