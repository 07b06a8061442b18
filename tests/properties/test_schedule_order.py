"""Cores that use schedule.py never sleep while there is work and keep the order, however their steps interleave.

Each actor is a generator; what lies between two `yield`s happens at once, as one store or one load of shared
memory does, and a seeded random choice says who goes next.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cmp_to_key

import pytest
from hypothesis import given, settings, strategies as st

from hbrt.mailbox.schedule import (
    ASLEEP,
    LOOKING,
    RUNNING,
    Entry,
    may_run,
    task_key,
)
from tests.wake_rule import core_to_chain, cores_to_wake

Steps = Generator[str]


@dataclass(frozen=True)
class Task:
    priority: int
    custom_id: int
    sequence: int
    mask: int


def before(one: Task, other: Task) -> int:
    """The order in words: priority down, customId up, submission up."""
    if one.priority != other.priority:
        return -1 if one.priority > other.priority else 1
    if one.custom_id != other.custom_id:
        return -1 if one.custom_id < other.custom_id else 1
    return -1 if one.sequence < other.sequence else 1


def admits(mask: int, core: int) -> bool:
    """Whether a mask names the core, or ANY."""
    return mask == 0 or f"{mask:064b}"[-1 - core] == "1"


@dataclass
class Board:
    """What the actors share, and a record of what happened."""

    core_count: int = 2
    omit: str = ""  # a step of the protocol to leave out
    ready: dict[int, Task] = field(default_factory=dict)
    activity: list[int] = field(default_factory=list)
    rung: set[int] = field(default_factory=set)
    ran: list[Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.activity = [ASLEEP] * self.core_count

    def submit(self, tasks: list[Task]) -> Steps:
        for task in tasks:
            self.ready[task.sequence] = task
            yield "step"
            activity = list(self.activity)
            yield "step"
            self.rung.update(cores_to_wake(task.mask, activity))
            yield "step"

    def seen_by(self, core: int) -> list[Entry]:
        """What a core has seen READY and may run: a heap, best first."""
        queue: list[Entry] = []
        for slot, task in self.ready.items():
            if may_run(core, task.mask):
                heapq.heappush(queue, (task_key(task.priority, task.custom_id, task.sequence), slot))
        return queue

    def core(self, core: int) -> Steps:
        while True:
            if core not in self.rung:
                yield "asleep"
                continue
            self.rung.discard(core)
            while True:
                self.activity[core] = LOOKING
                yield "step"
                seen, there = self.seen_by(core), list(self.ready.values())
                yield "step"
                claimed = self.claim(core, seen, there)
                if claimed is not None:
                    yield from self.run(core)
                    continue
                self.activity[core] = ASLEEP
                yield "step"
                if self.omit == "second look" or not self.seen_by(core):
                    break

    def claim(self, core: int, seen: list[Entry], there: list[Task]) -> Task | None:
        """The best that was seen and is still there; the claim lock makes it one step."""
        while seen:
            task = self.ready.pop(heapq.heappop(seen)[1], None)
            if task is not None:
                left = [other for other in there if other.sequence in self.ready]
                assert not [other for other in left if admits(other.mask, core) and before(other, task) < 0]
                assert admits(task.mask, core)
                self.ran.append(task)
                return task
        return None

    def run(self, core: int) -> Steps:
        yield "step"
        self.activity[core] = RUNNING
        yield "step"
        seen = self.seen_by(core)
        masks = [self.ready[slot].mask for _, slot in seen]
        yield "step"
        if self.omit != "chain":
            rung = core_to_chain(core, masks, self.activity)
            yield "step"
            if rung is not None:
                self.rung.add(rung)
        yield "op"

    def sleeps_beside_work(self) -> list[tuple[int, Task]]:
        return [
            (core, task)
            for core in range(self.core_count)
            if self.activity[core] == ASLEEP and core not in self.rung
            for task in self.ready.values()
            if admits(task.mask, core)
        ]


def play(board: Board, submissions: list[list[Task]], choose: random.Random) -> None:
    """Let every actor continue until all is done; while only ops take time, no core may sleep if there is work."""
    actors = [board.core(core) for core in range(board.core_count)] + [board.submit(s) for s in submissions]
    at = {actor: next(actor, "done") for actor in actors}

    def can_go(actor: Steps) -> bool:
        if at[actor] == "asleep":
            return actors.index(actor) in board.rung
        return at[actor] in {"step", "op"}

    actor = actors[0]
    while runnable := [one for one in actors if can_go(one)]:
        if all(at[one] == "op" for one in runnable):
            assert not board.sleeps_beside_work()
        if actor not in runnable or choose.random() < 0.4:  # often several steps of one, few of another
            actor = choose.choice(runnable)
        at[actor] = next(actor, "done")
    assert not board.ready


tasks = st.builds(
    lambda priority, custom_id, mask: (priority, custom_id, mask),
    st.sampled_from([0, 0, 1, 254, 255]),
    st.integers(-2, 2),
    st.sampled_from([0, 0, 0b01, 0b10, 0b11]),
)


def numbered(drawn: list[list[tuple[int, int, int]]]) -> list[list[Task]]:
    sequence = iter(range(1, 1000))
    return [[Task(priority, custom_id, next(sequence), mask) for priority, custom_id, mask in one] for one in drawn]


@settings(deadline=None, max_examples=60)
@given(
    drawn=st.lists(st.lists(tasks, max_size=6), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
    core_count=st.integers(2, 3),
)
def test_no_core_sleeps_beside_work_and_every_task_runs_once(
    drawn: list[list[tuple[int, int, int]]], seed: int, core_count: int
) -> None:
    submissions = numbered(drawn)
    board = Board(core_count)
    play(board, submissions, random.Random(seed))
    everything = sorted(task.sequence for one in submissions for task in one)
    assert sorted(task.sequence for task in board.ran) == everything


@pytest.mark.parametrize("omitted", ["chain", "second look"])
def test_each_step_of_the_protocol_is_needed(omitted: str) -> None:
    submissions = numbered([[(0, 0, 0)] * 4])

    def goes_wrong(seed: int) -> bool:
        try:
            play(Board(omit=omitted), submissions, random.Random(seed))
        except AssertionError:
            return True
        return False

    assert any(goes_wrong(seed) for seed in range(500))


@settings(deadline=None)
@given(drawn=st.lists(tasks, max_size=20), core=st.integers(0, 1))
def test_a_core_alone_runs_what_is_queued_in_order(drawn: list[tuple[int, int, int]], core: int) -> None:
    [submitted] = numbered([drawn])
    board = Board(core_count=2)
    board.ready = {task.sequence: task for task in submitted}
    board.rung = {core}
    actor = board.core(core)
    while next(actor) != "asleep":
        pass
    mine = [task for task in submitted if admits(task.mask, core)]
    assert board.ran == sorted(mine, key=cmp_to_key(before))
    assert list(board.ready.values()) == [task for task in submitted if task not in mine]
