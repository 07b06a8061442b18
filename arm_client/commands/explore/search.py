"""The search: runs of a program by seeds, the first that fails, and the fewest preemptions with which it still does."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from arm_client.commands.run.forks import Forks
from hbrt.exploration.schedule import Preemption, shrunk, text_of
from hbrt.exploration.seeds import SCHEDULE, settings_of, simpler

TIMED_OUT = 124
_LOADED = ("numpy", "arm_client.client", "arm_client.transport.scheduled_tasks", "dsp_server.scheduled.cores")
"""By name: this package does not import that of the cores."""
LOG, BOARD = "HBRT_SCHEDULE_LOG", "HBRT_SCHEDULE_BOARD"
_FINDING = re.compile(r"^hbrt: \w+: ([a-z-]+): ", re.MULTILINE)
_ERROR = re.compile(r"^([A-Za-z_.]+(?:Error|Exception|Exit|Interrupt)\b)", re.MULTILINE)


class Step(NamedTuple):
    """A preemption as it came: which, who ran before, and where that one was."""

    preemption: Preemption
    before: str
    site: str

    def __str__(self) -> str:
        where = f", which is at {self.site}" if self.site and self.site != self.before else ""
        return f"at step {self.preemption.step} {self.preemption.actor} continues instead of {self.before}{where}"


class Run(NamedTuple):
    """One run of the program.

    Attributes:
        settings: With which.
        code: Its exit code, negative for a signal, 124 for one that took too long.
        output: What it printed, errors too.
        steps: Its preemptions.
        step_count: Steps at which more than one could go on; 0 when the program did not come to its end.
        digest: The same for the same steps.
    """

    settings: Mapping[str, str]
    code: int
    output: str
    steps: tuple[Step, ...]
    step_count: int
    digest: str

    @property
    def kind(self) -> tuple[object, ...]:
        """The same for the same failure: exit code, kinds of findings, and the exception."""
        return self.code, tuple(sorted(set(_FINDING.findall(self.output)))), tuple(_ERROR.findall(self.output)[-1:])


Runs = Generator[tuple[int, Run], None, None]
"""Seeds and their runs, in the order of the seeds."""


class Runner:
    """Runs a program, with these settings or those; a context manager.

    Args:
        program: A Python file.
        arguments: Its arguments.
        seconds: How long a run may take.
        folder: For files of the runs.
        board: Directory of a board whose memory they use.
    """

    def __init__(self, program: str, arguments: Sequence[str], seconds: float, folder: Path, board: str) -> None:
        self._board = board
        self._program, self._arguments, self._seconds, self._folder = program, arguments, seconds, folder
        self._forks = Forks(*_LOADED)
        self.runs = 0

    def __enter__(self) -> Self:
        self._forks.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._forks.__exit__(*raised)

    def run(self, settings: Mapping[str, str]) -> Run:
        """Run it once.

        Raises:
            BoardError: the process that forks for the runs has ended.
        """
        self.runs += 1
        log = self._folder / "log"
        log.unlink(missing_ok=True)
        ended = self._forks.run(
            self._program, self._arguments, {**settings, LOG: str(log), BOARD: self._board}, self._seconds
        )
        steps, count, digest = _read_log(log)
        return Run(settings, TIMED_OUT if ended.has_timed_out else ended.code, ended.output, steps, count, digest)


def _read_log(file: Path) -> tuple[tuple[Step, ...], int, str]:
    steps, count, digest = [], 0, ""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        first, *rest = line.split(" ", 3)
        if first == "end":
            count, digest = int(rest[0]), rest[1]
        elif first.isdecimal() and len(rest) == 3:
            steps.append(Step(Preemption(int(first), rest[0]), rest[1], rest[2]))
    return tuple(steps), count, digest


def runs_of(runner: Runner, seeds: Sequence[int], given: Mapping[str, str]) -> Runs:
    """A run for each seed."""
    for seed in seeds:
        yield seed, runner.run(settings_of(seed, given))


def shrink(runner: Runner, failure: Run, most: int) -> Run:
    """The run with the fewest settings and preemptions that fails in the same way.

    Args:
        runner: Of the program.
        failure: A run that fails.
        most: Runs that this may take.
    """
    best, before = failure, runner.runs

    def fails(settings: Mapping[str, str]) -> bool:
        nonlocal best
        run = runner.run(settings)
        if run.kind == failure.kind:
            best = run
            return True
        return False

    for settings in simpler(failure.settings):
        fails({name: value for name, value in settings.items() if name in best.settings})
    rest = {name: value for name, value in best.settings.items() if name != SCHEDULE}
    run = best

    def fails_by(some: Sequence[Preemption]) -> bool:
        return fails({**rest, SCHEDULE: text_of(some)})

    if fails_by([]) or any(map(fails_by, _single(run, most // 2))):
        return best
    steps = [step.preemption for step in run.steps]
    if fails_by(steps):
        shrunk(steps, fails_by, most - (runner.runs - before))
        came = [step.preemption for step in best.steps]
        if text_of(came) != best.settings[SCHEDULE]:  # some were passed over
            fails_by(came)
    return best


def _single(run: Run, most: int) -> Iterator[list[Preemption]]:
    """One preemption alone, at each step: a mistake that one shows is understood best by it.

    Source: Musuvathi and Qadeer, Iterative Context Bounding for Systematic Testing of Multithreaded Programs (PLDI
    2007), 2, for few preemptions first,
    https://www.microsoft.com/en-us/research/publication/iterative-context-bounding-for-systematic-testing-of-multithreaded-programs/
    """
    actors = sorted({step.preemption.actor for step in run.steps})
    steps = range(1, run.step_count + 1)
    yield from islice(([Preemption(step, actor)] for step in steps for actor in actors), most)
