"""A core's queue runs tasks in the order of their effective priorities at the moment of each claim."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.dsp_server.core.test_loop import Bench, bench

__all__ = ["bench"]
AGING_MS = 2
TICK_NS = AGING_MS * 1_000_000


class Task(NamedTuple):
    priority: int
    custom_id: int
    submit_ns: int


tasks = st.builds(
    Task,
    st.sampled_from([0, 0, 1, 2, 5, 253, 254, 255]),
    st.integers(-1, 1),
    st.integers(0, 2**62) | st.integers(0, 300).map(lambda half_ticks: half_ticks * TICK_NS // 2),
)


@pytest.fixture(autouse=True)
def _aging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_AGING_MS", str(AGING_MS))


def effective(task: Task, now_ns: int) -> int:
    """The rule in words: a level for each tick of the clock since the submission, but none for urgent tasks."""
    if task.priority >= 254:
        return task.priority << 64  # above whatever the others have gained
    return task.priority + now_ns // TICK_NS - task.submit_ns // TICK_NS


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=st.lists(tasks, max_size=24, unique_by=lambda task: task.submit_ns),
    first=st.integers(0, 24),
    waiting=st.integers(0, 4),
)
def test_the_queue_goes_by_effective_priority(bench: Bench, drawn: list[Task], first: int, waiting: int) -> None:
    drawn.sort(key=lambda task: task.submit_ns)
    left: dict[int, Task] = {}
    now_ns = 0

    def claim(kept: int) -> None:
        while len(left) > kept:
            slot = bench.core.mailbox.claim()
            best = min(left, key=lambda one: (-effective(left[one], now_ns), left[one].custom_id, left[one].submit_ns))
            assert slot == best
            del left[slot]

    for begin, end, kept in ((0, first, waiting), (first, len(drawn), 0)):
        for slot, task in enumerate(drawn[begin:end], begin):
            bench.sequence = task.submit_ns - 1
            left[bench.submit(slot, priority=task.priority, custom_id=task.custom_id)] = task
            now_ns = task.submit_ns
        claim(kept)
    assert bench.core.mailbox.claim() < 0


def test_what_waits_passes_what_comes_but_not_what_is_urgent(bench: Bench) -> None:
    bench.submit(1, priority=1)
    bench.sequence = 200 * TICK_NS
    for slot, priority in ((2, 200), (3, 202), (4, 254)):
        bench.submit(slot, priority=priority)
    assert bench.core.mailbox.claim(254) == 4
    assert bench.core.mailbox.claim(254) < 0
    assert bench.claim_all() == [3, 1, 2]
