"""When tasks have ended on a board: they wait for cores, for those before them, and share the DDR."""

import pytest
from hypothesis import given, strategies as st

from hbrt.profiles.timeline import Job, makespan, shares

OP = Job(0, 10, 100, 10, 5)


def test_what_is_alone_takes_what_it_takes() -> None:
    assert makespan([OP], [1], 5) == pytest.approx(120)
    assert makespan([], [1], 5) == 0


def test_tasks_wait_for_cores_of_their_kind() -> None:
    together = [OP._replace(ended_ns=9)] * 3
    assert makespan(together, [3, 1], 100) == pytest.approx(120)
    assert makespan(together, [1, 1], 100) == pytest.approx(320)
    assert makespan([*together[:1], OP._replace(kind=1, ended_ns=9)], [1, 1], 100) == pytest.approx(120)


def test_a_task_waits_for_what_had_ended_before_it_was_submitted() -> None:
    first, second = OP._replace(ended_ns=5), OP._replace(submitted_ns=6, ended_ns=9)
    assert makespan([second, first], [2], 100) == pytest.approx(240)


def test_cores_that_want_more_than_the_ddr_has_slow_each_other_down() -> None:
    hungry, modest = OP._replace(bytes_per_us=30, ended_ns=9), OP._replace(bytes_per_us=4, ended_ns=9)
    assert makespan([hungry, hungry], [2], 30) == pytest.approx(220)
    # 26 of 30 bytes a us until the other one has ended, 100 us of work: then the rest at full speed.
    assert makespan([hungry, modest], [2], 30) == pytest.approx(20 + 100 + 100 * (1 - 26 / 30))


@given(st.lists(st.floats(0, 1e4), min_size=1), st.floats(0.1, 1e4))
def test_shares_are_fair_and_use_what_there_is(wanted: list[float], capacity: float) -> None:
    parts = shares(wanted, capacity)
    got = [part * want for part, want in zip(parts, wanted, strict=True)]
    assert all(0 <= part <= 1 + 1e-9 for part in parts)
    assert sum(got) == pytest.approx(min(sum(wanted), capacity))
    for one, part in zip(got, parts, strict=True):
        assert part == pytest.approx(1) or one == pytest.approx(max(got))
