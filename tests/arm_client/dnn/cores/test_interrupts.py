"""Ctrl-C at every place where Python can raise it: no task, core or slot is lost."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest

import arm_client as hb
from arm_client.dnn.cores.one_shot import OneShot
from tests.arm_client.dnn.nets import Net, ctrl, double, endless, good
from tests.arm_client.interrupts import is_interrupted
from tests.waiting import until

PATIENCE_MS = 20_000
MAX_PLACES = 2000


@pytest.fixture
def _main_thread_goes_first() -> Iterator[None]:
    """So that it is the one that waits who runs the model, and no core's own thread."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    yield
    sys.setswitchinterval(before)


def infer_and_wait(net: Net, task: hb.hbDNNTaskHandle_t, how: hb.hbDNNInferCtrlParam) -> None:
    hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, how)
    hb.hbDNNWaitTaskDone(task, 0)


def test_an_interrupt_anywhere_in_a_release_loses_no_task(load: Callable[[bytes], Net]) -> None:
    """The task ends, though its handle may be gone: its model and its memory are free afterward."""
    from arm_client.dnn.capi.runtime import runtime

    net = load(double())
    net.run()
    at, is_over = 0, False
    while not is_over:
        at += 1
        assert at < MAX_PLACES, "the places were not all visited"
        task = net.infer()
        is_over = not is_interrupted(at, partial(hb.hbDNNReleaseTask, task))
        if task.value in runtime.tasks.live_handles():
            good(hb.hbDNNReleaseTask(task))
        until(lambda: not runtime.tasks._unended, f"the end of a task whose release was interrupted at {at}")


@pytest.mark.usefixtures("_main_thread_goes_first")
def test_an_interrupt_anywhere_loses_no_core_and_no_task(
    load: Callable[[bytes], Net], monkeypatch: pytest.MonkeyPatch
) -> None:
    from arm_client.dnn.capi.runtime import runtime
    from arm_client.dnn.cores import tasks

    monkeypatch.setattr(tasks, "SHORT_NS", 1 << 62)  # a busy machine's runs are short as well
    net = load(double())
    net.run()
    inline: set[bool] = set()
    is_over = False
    for at in range(1, MAX_PLACES):
        task = hb.hbDNNTaskHandle_t()
        is_over = not is_interrupted(at, partial(infer_and_wait, net, task, ctrl()))
        live = runtime.tasks.live_handles()
        assert live == ([task.value] if task.value else []), "a task that its program does not know"
        if task.value:
            inline.add(runtime.tasks._handles.get(task.value).runner == threading.get_ident())
            good(hb.hbDNNReleaseTask(task))
        for core in (hb.HB_BPU_CORE_0, hb.HB_BPU_CORE_1):
            again = net.infer(how=ctrl(core=core))
            assert hb.hbDNNWaitTaskDone(again, PATIENCE_MS) == 0, f"core {core} is lost after an interrupt at {at}"
            good(hb.hbDNNReleaseTask(again))
        if is_over:
            break
    assert is_over, "the places were not all visited"
    assert True in inline, "no task ran inline"


@pytest.mark.usefixtures("_main_thread_goes_first")
def test_a_model_that_loops_is_waited_for_where_signals_are_heard(load: Callable[[bytes], Net]) -> None:
    from arm_client.dnn.capi.runtime import runtime

    net = load(endless())
    count = ctypes.cast(net.inputs[0].sysMem[0].virAddr, ctypes.POINTER(ctypes.c_int64))
    count[0] = 3
    for _ in range(2):  # quick runs say nothing of the next
        task = net.infer()
        good(hb.hbDNNWaitTaskDone(task, 0))
        assert runtime.tasks._handles.get(task.value).runner != threading.get_ident()
        good(hb.hbDNNReleaseTask(task))


class Line:
    """The lock of a OneShot, where the main thread is the first of those who wait."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._first = threading.get_ident()
        self.release = lock.release
        self.first_waits = threading.Lock()  # given back when it does: in one call, which no interrupt comes into
        self.first_waits.acquire()
        self.other_waits = threading.Semaphore(0)
        self.first_has_gone = threading.Event()

    def acquire(self, timeout: float) -> bool:
        if threading.get_ident() == self._first:
            self.first_waits.release()
        else:
            self.other_waits.release()
            self.first_has_gone.wait()
        return self._lock.acquire(timeout=timeout)


def test_an_interrupt_anywhere_in_a_wait_leaves_no_other_waiting() -> None:
    others = 2
    for at in range(1, MAX_PLACES):
        event = OneShot()
        heard: list[bool] = []
        line = Line(event._lock)
        event._lock = line  # type: ignore[assignment]

        def set_it(of: OneShot = event, line: Line = line) -> None:
            line.first_waits.acquire()
            of.set()

        def listen(of: OneShot = event, heard: list[bool] = heard) -> None:
            heard.append(of.wait(PATIENCE_MS / 1000))

        threads = [threading.Thread(target=set_it), *(threading.Thread(target=listen) for _ in range(others))]
        for thread in threads:
            thread.start()
        for _ in range(others):
            line.other_waits.acquire()
        is_over = not is_interrupted(at, partial(event.wait, -1))
        with suppress(RuntimeError):
            line.first_waits.release()  # it may not have come so far
        threads[0].join()
        line.first_has_gone.set()
        for thread in threads:
            thread.join()
        assert heard == [True] * others, f"an interrupt at {at} leaves others waiting"
        if is_over:
            return
    pytest.fail("the places were not all visited")
