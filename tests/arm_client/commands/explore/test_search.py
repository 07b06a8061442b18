"""The shortest failing run of a search, without a board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from arm_client.commands.explore.search import Run, Runner, Step, shrink
from hbrt.exploration.schedule import STEPS, Preemption
from hbrt.exploration.seeds import SCHEDULE


class Stood:
    """A program that fails when steps 1 and 4 are preempted; core1 can go on at step 3 when it went on at 2, too."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, settings: Mapping[str, str]) -> Run:
        self.runs += 1
        words = settings[SCHEDULE].removeprefix(STEPS).removesuffix("=core1").split("=core1,")
        came = {int(word) for word in words if word.isdecimal() and (word != "3" or "2" in words)}
        steps = tuple(Step(Preemption(step, "core1"), "core0", "") for step in sorted(came))
        return Run(settings, int({1, 4} <= came), "", steps, 0, "")


def test_a_preemption_that_was_passed_over_is_in_no_schedule_that_is_told() -> None:
    runner = Stood()
    failure = runner.run({SCHEDULE: f"{STEPS}1=core1,2=core1,3=core1,4=core1"})
    told = {shrink(cast("Runner", runner), failure, most).settings[SCHEDULE] for most in range(20)}
    assert f"{STEPS}1=core1,4=core1" in told
    assert f"{STEPS}1=core1,3=core1,4=core1" not in told
