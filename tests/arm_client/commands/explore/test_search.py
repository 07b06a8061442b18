"""The order of a search, and the shortest failing run, without a board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from arm_client.commands.explore.search import Run, Runner, runs_of, shrink
from hbrt.exploration.schedule import STEPS, Choice
from hbrt.exploration.seeds import SCHEDULE

STEP_COUNT = 5


class Stood:
    """A program of five steps that fails when all of some are preempted.

    Args:
        needed: These steps.
        tied: A step that can be preempted only when the one before it is.
    """

    def __init__(self, needed: set[int], tied: int = 0) -> None:
        self.needed, self.tied = needed, tied
        self.runs = 0

    def run(self, settings: Mapping[str, str]) -> Run:
        self.runs += 1
        words = settings[SCHEDULE].removeprefix(STEPS).removesuffix("=core1").split("=core1,")
        came = {int(word) for word in words if word.isdecimal()}
        came -= {self.tied} if self.tied - 1 not in came else set()
        choices = tuple(
            Choice(step, "core1" if step in came else "core0", "core0", ("core0", "core1"), "core0", f"op.py:{step}")
            for step in range(1, STEP_COUNT + 1)
        )
        return Run(settings, int(self.needed <= came), "", choices, STEP_COUNT, "")

    def run_all(self, settings: list[Mapping[str, str]]) -> object:
        return (self.run(one) for one in settings)


def test_orders_are_tried_by_the_number_of_their_preemptions() -> None:
    runs = list(runs_of(Stood({9}).run_all, 0, 40, {}))  # type: ignore[arg-type]
    assert (len(runs), runs[0][0]) == (40, 0)
    assert [seed for seed, _ in runs[2:30:2]] == list(range(1, 15))
    chosen = [run.settings[SCHEDULE] for seed, run in runs if seed is None]
    assert [text.count("=") for text in chosen] == [1] * 5 + [2] * 10 + [3] * 5
    assert len(set(chosen)) == len(chosen)
    assert [seed for seed, _ in runs_of(Stood({9}).run_all, 7, 3, {})] == [7, 8, 9]  # type: ignore[arg-type]


def test_two_preemptions_are_found_and_none_that_was_passed_over_is_told() -> None:
    runner = Stood({1, 4}, tied=3)
    failure = runner.run({SCHEDULE: f"{STEPS}1=core1,2=core1,3=core1,4=core1"})
    told = {shrink(cast("Runner", runner), failure, most).settings[SCHEDULE] for most in range(20)}
    assert f"{STEPS}1=core1,4=core1" in told
    assert f"{STEPS}1=core1,3=core1,4=core1" not in told
