"""The habit of looking before sleeping: it ends in time, and a waiter that looks in vain looks less and less."""

from __future__ import annotations

import itertools
import operator
import time
from typing import TYPE_CHECKING

from hbrt.mailbox.spin import BUDGET_NS, LOST_CPU_NS, MAX_SKIPPED_IN_VAIN, Spinner

if TYPE_CHECKING:
    import pytest

LONG_NS = 60_000_000_000  # for a machine that is busy elsewhere


class Looks:
    """Counts looks; ready from the given one on."""

    def __init__(self, ready_at: int | None = None) -> None:
        self.count = 0
        self._ready_at = ready_at

    def __call__(self) -> bool:
        self.count += 1
        return self._ready_at is not None and self.count >= self._ready_at


def test_it_looks_until_ready() -> None:
    looks = Looks(ready_at=20)
    assert Spinner(cpus=2).spin(looks, LONG_NS)
    assert looks.count == 20


def test_on_one_cpu_it_does_not_look() -> None:
    looks = Looks(ready_at=1)
    assert not Spinner(cpus=1).spin(looks)
    assert looks.count == 0


def test_budget_ends_the_look_and_a_call_may_have_its_own() -> None:
    for budget_ns in (0, 10 * BUDGET_NS):
        begin_ns = time.monotonic_ns()
        assert not Spinner(cpus=2).spin(Looks(), budget_ns)
        assert time.monotonic_ns() - begin_ns >= (budget_ns or BUDGET_NS)


def test_setting_takes_the_budget_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_SPIN_US", "0")
    looks = Looks(ready_at=1)
    assert not Spinner(cpus=8).spin(looks)
    assert looks.count == 0


def test_who_looked_in_vain_skips_more_and_more_waits_but_not_all() -> None:
    spinner, looked = Spinner(cpus=2), []
    spinner.budget_ns = 1  # one round of looks
    for wait in range(4 * (1 << MAX_SKIPPED_IN_VAIN)):
        looks = Looks()
        assert not spinner.spin(looks)
        if looks.count:
            looked.append(wait)
    gaps = [later - earlier for earlier, later in itertools.pairwise(looked)]
    assert len(gaps) >= 2
    assert gaps == sorted(gaps)


def _looks_at(
    waits: list[bool], monkeypatch: pytest.MonkeyPatch, most_skipped: int = MAX_SKIPPED_IN_VAIN
) -> list[bool]:
    """Which of these waits, each of which pays or does not, a new habit looks at; by a clock that nobody disturbs."""
    clock = itertools.count(step=1000)
    monkeypatch.setattr("hbrt.mailbox.spin.monotonic_ns", lambda: next(clock))
    spinner, looked = Spinner(cpus=2, most_skipped=(most_skipped, 0)), []
    for pays in waits:
        looks = Looks(ready_at=1 if pays else None)
        spinner.spin(looks)
        looked.append(looks.count > 0)
    return looked


def test_who_comes_in_bursts_is_looked_for_in_every_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = ([True] * 10 + [False]) * 50
    looked = _looks_at(waits, monkeypatch)
    assert sum(map(operator.and_, waits, looked)) >= 0.7 * sum(waits)


def test_who_seldom_comes_is_seldom_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _looks_at([True, False, False, False] * 250, monkeypatch)
    assert sum(looked) < 200


def test_one_vain_look_is_not_held_against_who_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(_looks_at([True, False] + [True] * 9, monkeypatch))


def test_at_most_so_many_waits_are_skipped_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _looks_at([False] * 100, monkeypatch, most_skipped=1)
    assert all(itertools.starmap(operator.or_, itertools.pairwise(looked)))
    assert sum(looked) < 60


def test_look_of_a_long_budget_that_ends_in_time_has_not_lost_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=LOST_CPU_NS // 10)
    monkeypatch.setattr("hbrt.mailbox.spin.monotonic_ns", lambda: next(clock))
    spinner = Spinner(cpus=2, most_skipped=(0, 0))
    for _ in range(5):
        looks = Looks()
        spinner.spin(looks, 2 * LOST_CPU_NS)
        assert looks.count


def test_who_lost_the_cpu_often_comes_back_slowly_whatever_comes_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 0

    def clock() -> int:
        nonlocal now_ns
        now_ns += step_ns
        return now_ns

    def look(*, pays: bool) -> int:
        """Have it look once; how many waits it skipped before."""
        for skipped in itertools.count():
            looks = Looks(ready_at=1 if pays else None)
            spinner.spin(looks)
            if looks.count:
                return skipped
        raise AssertionError

    monkeypatch.setattr("hbrt.mailbox.spin.monotonic_ns", clock)
    spinner, step_ns = Spinner(cpus=2), 2 * LOST_CPU_NS
    for _ in range(MAX_SKIPPED_IN_VAIN + 2):
        look(pays=False)
    step_ns = BUDGET_NS
    look(pays=False)
    far = look(pays=False)
    assert far == (1 << MAX_SKIPPED_IN_VAIN + 2) - 1
    assert [look(pays=True) for _ in range(10)] == [far] + 9 * [0]
    look(pays=False)
    assert look(pays=False) == far
