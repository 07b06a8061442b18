"""Schedules as text, drawn and shrunk; and what a seed stands for."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hbrt.exploration.schedule import BadScheduleError, Preemption, parse, shrunk, text_of
from hbrt.exploration.seeds import settings_of, simpler
from tests.each import each

READY = ("program", "core0", "core1")


def choices(text: str, count: int = 200) -> list[str]:
    policy = parse(text)
    return [policy.choose(step, READY, "core0") for step in range(1, count)]


def test_a_schedule_is_its_preemptions_and_no_more() -> None:
    assert set(choices("default")) == {"core0"}
    found = choices("steps:3=core1,7=program,9=core7")
    assert [(step, actor) for step, actor in enumerate(found, 1) if actor != "core0"] == [(3, "core1"), (7, "program")]


@each("seed", range(20))
def test_a_seed_draws_the_same_preemptions_each_time(seed: int) -> None:
    found = choices(f"random:{seed}")
    assert found == choices(f"random:{seed}")
    assert 0 < sum(actor != "core0" for actor in found) < len(found)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.sampled_from(READY)), max_size=9))
def test_preemptions_as_text(given: list[tuple[int, str]]) -> None:
    preemptions = [Preemption(*one) for one in dict(given).items()]
    policy = parse(text_of(preemptions))
    for step, actor in preemptions:
        assert policy.choose(step, READY, "core0") == actor


@each("text", ["", "random", "random:x", "random:-1", "steps:3", "steps:x=core1", "steps:3=", "fast"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(BadScheduleError, match="write"):
        parse(text)


@given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=4))
def test_what_is_left_fails_and_nothing_can_be_left_out(count: int, needed: set[int]) -> None:
    needed = {one for one in needed if one < count}
    calls = 0

    def fails(some: object) -> bool:
        nonlocal calls
        calls += 1
        return needed <= {one.step for one in some}  # type: ignore[attr-defined]

    left = shrunk([Preemption(step, "core1") for step in range(count)], fails, 10_000)
    assert {one.step for one in left} == needed or (not needed and len(left) == 1)
    assert shrunk(left, fails, 0) == left


def test_seeds_vary_all_three_and_what_is_given_stays() -> None:
    assert settings_of(0, {}) == {"HBRT_SCHEDULE": "default"}
    assert [len(settings_of(seed, {})) for seed in range(1, 5)] == [2, 2, 3, 1]
    assert settings_of(3, {"HBRT_DMA_ORDER": "strict"})["HBRT_CACHE"] == "evicting:3"
    assert "HBRT_DMA_ORDER" not in settings_of(3, {"HBRT_DMA_ORDER": "strict"})
    assert simpler(settings_of(0, {})) == []
    assert [set(one) for one in simpler(settings_of(3, {}))] == [
        {"HBRT_SCHEDULE", "HBRT_CACHE"},
        {"HBRT_SCHEDULE", "HBRT_DMA_ORDER"},
    ]
