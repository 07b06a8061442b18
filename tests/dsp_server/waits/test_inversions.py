"""What is a priority inversion and what is a busy board, by table and by random boards."""

from __future__ import annotations

from hypothesis import given, strategies as st

from dsp_server.waits.inversions import Task, Why, inversions
from tests.each import each

LEAST = 0.1


def ready(rank: int, mask: int = 0, *, age: float = 0.5, owner: int = 1) -> Task:
    return Task(1, 11, rank, mask, owner, age)


def runs(rank: int, core: int, *, ran: float = 1.0, slot: int = 2, age: float = 2.0) -> Task:
    return Task(slot, 20 + slot, rank, 0, 2, age, core, ran)


@each(
    "queued, running, lower",
    [
        (ready(5), [runs(4, 0), runs(3, 1, slot=3)], 2),
        (ready(5), [runs(4, 0), runs(3, 1, slot=3, ran=1.5)], 3),  # the one that has run longest
        (ready(5, 0b01), [runs(4, 0)], 2),  # the other core is free, and excluded
        (ready(255, 0b10), [runs(254, 1)], 2),
        (ready(5), [runs(4, 0)], 0),  # core 1 is free, and about to take it
        (ready(5), [runs(5, 0), runs(4, 1)], 0),  # the same priority is no lower one
        (ready(5), [runs(6, 0), runs(4, 1)], 0),
        (ready(5, 0b01), [runs(4, 0, ran=0.4)], 0),  # claimed later: it came first by the order
        (ready(5, 0b01, age=0.05), [runs(4, 0)], 0),  # not for long yet
        (ready(5, 0b01), [runs(4, 0), runs(254, 0, ran=0.7, slot=3)], 0),  # behind what interrupts the lower one
        (ready(5, 0b100), [runs(4, 0), runs(4, 1)], 0),  # no core that serves may run it
    ],
)
def test_blocked(queued: Task, running: list[Task], lower: int) -> None:
    found = list(inversions([queued], running, {0, 1}, {}, LEAST))
    assert [(one.why, one.task, one.queued, one.lower.slot) for one in found] == (
        [(Why.BLOCKED, queued, queued, lower)] if lower else []
    )


@each(
    "inner, between, is_held",
    [
        (ready(0, owner=9), runs(50, 1, slot=3, ran=0.2), True),  # it overtook the inner one, again and again
        (ready(0, owner=9), runs(99, 1, slot=3), True),
        (ready(0, owner=9), runs(100, 1, slot=3), False),
        (ready(100, owner=9), runs(50, 1, slot=3, ran=0.2), False),  # not submitted with a lower priority
        (ready(0, owner=8), runs(50, 1, slot=3, ran=0.2), False),  # of somebody else
        (ready(0, 0b01, owner=9), runs(50, 1, slot=3), False),  # it waits for its own op: no order would help
    ],
)
def test_held(inner: Task, between: Task, *, is_held: bool) -> None:
    outer = runs(100, 0)
    found = list(inversions([inner], [outer, between], {0, 1}, {9: 0}, LEAST))
    assert [(one.why, one.task, one.queued, one.lower) for one in found if one.why is Why.HELD] == (
        [(Why.HELD, outer, inner, between)] if is_held else []
    )


@given(
    tasks=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 9), st.integers(-1, 2), st.floats(0, 9)), max_size=12),
    rank=st.integers(0, 255),
)
def test_equal_priorities_are_never_inverted(tasks: list[tuple[int, float, int, float]], rank: int) -> None:
    board = [
        Task(slot, slot, rank, mask, slot % 3, age, core, ran) for slot, (mask, age, core, ran) in enumerate(tasks)
    ]
    waiting, running = ([one for one in board if (one.core < 0) == is_ready] for is_ready in (True, False))
    assert not list(inversions(waiting, running, {0, 1, 2}, {0: 0, 1: 1, 2: 2}, LEAST))
