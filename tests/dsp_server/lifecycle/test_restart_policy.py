"""When a core that died starts again: rules without processes."""

from __future__ import annotations

import pytest

from dsp_server.lifecycle.restart_policy import (
    FIRST_PAUSE_SECONDS,
    MAX_IDLE_DEATHS,
    MAX_PAUSE_SECONDS,
    STEADY_SECONDS,
    Death,
    History,
    after,
)
from tests.each import each

STEADY = Death(STEADY_SECONDS, 0, had_task=False)
USEFUL = Death(0.01, 1, had_task=False)
IDLE = Death(0.01, 0, had_task=False)
BUSY = Death(0.01, 0, had_task=True)
NEVER_SERVED = Death(0.0, 0, had_task=False)


def _pauses(*deaths: Death) -> list[float | None]:
    history, pauses = History(), []
    for death in deaths:
        history, pause_s = after(history, death)
        pauses.append(pause_s)
    return pauses


def test_core_that_had_proved_itself_starts_at_once_each_time() -> None:
    assert _pauses(STEADY, USEFUL, STEADY, USEFUL, STEADY, STEADY, STEADY) == [0.0] * 7


def test_core_that_dies_early_waits_twice_as_long_each_time() -> None:
    first = FIRST_PAUSE_SECONDS
    assert _pauses(*[BUSY] * 7) == [0.0, first, 2 * first, 4 * first, MAX_PAUSE_SECONDS, *[MAX_PAUSE_SECONDS] * 2]


@pytest.mark.parametrize("death", [IDLE, NEVER_SERVED])
def test_core_that_dies_with_no_task_to_blame_stays_down_in_the_end(death: Death) -> None:
    pauses = _pauses(*[death] * MAX_IDLE_DEATHS)
    assert None not in pauses[:-1]
    assert pauses[-1] is None
    assert sum(pause for pause in pauses if pause) < 2.0


@each("between", [STEADY, USEFUL, BUSY])
def test_deaths_that_count_are_deaths_in_a_row(between: Death) -> None:
    deaths = [IDLE] * (MAX_IDLE_DEATHS - 1)
    assert None not in _pauses(*deaths, between, *deaths)


def test_core_whose_tasks_kill_it_starts_again_for_ever() -> None:
    assert None not in _pauses(*[BUSY] * 1000)


def test_steady_core_begins_anew() -> None:
    assert _pauses(BUSY, BUSY, BUSY, STEADY, BUSY, BUSY)[3:] == [0.0, 0.0, FIRST_PAUSE_SECONDS]
