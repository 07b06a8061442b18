"""The virtual BPU cores: who runs what, in which thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from arm_client.dnn.cores.bpu import ALL_CORES, CORE_COUNT, Bpu
from tests.limits import PATIENCE_S
from tests.threads import in_threads


class Job:
    """Work that notes who ran it."""

    def __init__(self, number: int = 0, core_mask: int = ALL_CORES, raises: BaseException | None = None) -> None:
        self.core_mask = core_mask
        self.order = (0, 0, number)
        self.raises = raises
        self.is_submitted = self.runs_elsewhere = False
        self.interruptions: list[BaseException] = []
        self.ran_on: list[tuple[int, int]] = []
        self.has_run = threading.Event()

    def run(self, core: int) -> None:
        self.ran_on.append((core, threading.get_ident()))
        self.has_run.set()
        if self.raises is not None:
            raise self.raises

    def interrupted(self, error: BaseException) -> None:
        self.interruptions.append(error)


@pytest.fixture
def bpu() -> Iterator[Bpu]:
    bpu = Bpu()
    yield bpu
    bpu.close(lambda: None)


class SlowBpu(Bpu):
    """Cores whose threads begin nothing until they are told."""

    def __init__(self) -> None:
        super().__init__()
        self.may_begin = threading.Event()

    def _serve(self) -> None:
        self.may_begin.wait(PATIENCE_S)
        super()._serve()


@pytest.fixture
def slow_bpu() -> Iterator[SlowBpu]:
    bpu = SlowBpu()
    yield bpu
    bpu.may_begin.set()
    bpu.close(lambda: None)


def test_a_core_s_own_thread_runs_what_no_other_runs_inline(bpu: Bpu) -> None:
    job = Job()
    bpu.submit(job)
    assert job.has_run.wait(PATIENCE_S)
    assert job.ran_on[0][1] != threading.get_ident()
    assert not bpu.run_inline(job), "it has begun already"


def test_an_inline_run_takes_assigned_work_and_the_core_goes_on_to_what_follows(slow_bpu: SlowBpu) -> None:
    jobs = [Job(number) for number in range(CORE_COUNT + 2)]
    for job in jobs:
        slow_bpu.submit(job)
    here = threading.get_ident()
    assert not slow_bpu.run_inline(jobs[CORE_COUNT]), "it is assigned to no core yet"
    assert slow_bpu.run_inline(jobs[0])
    assert slow_bpu.run_inline(jobs[CORE_COUNT]), "the core continued to what waited"
    assert jobs[0].ran_on == jobs[CORE_COUNT].ran_on
    assert jobs[0].ran_on[0][1] == here
    slow_bpu.may_begin.set()
    for job in jobs:
        assert job.has_run.wait(PATIENCE_S)
    assert [len(job.ran_on) for job in jobs] == [1] * len(jobs)
    assert jobs[1].ran_on[0][1] != here


def test_the_thread_that_awaits_work_runs_it_and_wakes_no_core(bpu: Bpu) -> None:
    awaited, following = Job(core_mask=1), Job(1, core_mask=1)
    bpu.submit(awaited, is_awaited=True)
    bpu.submit(following)
    assert bpu.run_inline(awaited)
    assert awaited.ran_on == [(0, threading.get_ident())]
    assert following.has_run.wait(PATIENCE_S)


def test_awaited_work_that_is_taken_back_leaves_its_core_to_the_next(bpu: Bpu) -> None:
    awaited, following = Job(core_mask=1), Job(1, core_mask=1)
    bpu.submit(awaited, is_awaited=True)
    bpu.submit(following)
    assert bpu.cancel(awaited)
    assert following.has_run.wait(PATIENCE_S)
    assert not awaited.ran_on
    assert not bpu.cancel(awaited)


def test_a_core_is_free_again_after_an_inline_run_was_interrupted(slow_bpu: SlowBpu) -> None:
    stopped, after = Job(0, core_mask=1, raises=KeyboardInterrupt()), Job(1, core_mask=1)
    slow_bpu.submit(stopped)
    slow_bpu.submit(after)
    with pytest.raises(KeyboardInterrupt):
        slow_bpu.run_inline(stopped)
    assert stopped.interruptions == [stopped.raises]
    assert slow_bpu.current_core() == -1
    slow_bpu.may_begin.set()
    assert after.has_run.wait(PATIENCE_S)
    assert after.ran_on[0][0] == 0


def test_work_that_waits_for_work_keeps_its_core(slow_bpu: SlowBpu) -> None:
    inner = Job(1, core_mask=2)
    seen: list[int] = []

    class Outer(Job):
        def run(self, core: int) -> None:
            super().run(core)
            assert slow_bpu.run_inline(inner)
            seen.append(slow_bpu.current_core())

    outer = Outer(0, core_mask=1)
    slow_bpu.submit(outer)
    slow_bpu.submit(inner)
    assert slow_bpu.run_inline(outer)
    assert (seen, inner.ran_on[0][0], slow_bpu.current_core()) == ([0], 1, -1)


def test_every_work_runs_once_whoever_waits_for_it(bpu: Bpu) -> None:
    done: list[Job] = []

    def wait_for_many(first: int) -> None:
        for number in range(first, first + 300):
            job = Job(number)
            bpu.submit(job)
            if not bpu.run_inline(job):
                assert job.has_run.wait(PATIENCE_S)
            done.append(job)

    in_threads(wait_for_many, (0, 1000, 2000, 3000))
    assert len(done) == 1200
    assert {len(job.ran_on) for job in done} == {1}


def test_the_end_waits_for_an_inline_run_and_starts_no_other(slow_bpu: SlowBpu) -> None:
    begun, may_end = threading.Event(), threading.Event()
    refused: list[bool] = []

    class Held(Job):
        def run(self, core: int) -> None:
            begun.set()
            assert may_end.wait(PATIENCE_S)
            super().run(core)

    held, late = Held(0), Job(1)
    slow_bpu.submit(held)
    slow_bpu.submit(late)
    inline = threading.Thread(target=slow_bpu.run_inline, args=(held,))
    inline.start()
    assert begun.wait(PATIENCE_S)

    def give_up() -> None:
        refused.append(not slow_bpu.run_inline(late))
        slow_bpu.may_begin.set()
        threading.Timer(0.05, may_end.set).start()

    slow_bpu.close(give_up)
    assert held.has_run.is_set()
    assert refused == [True]
    inline.join(PATIENCE_S)
