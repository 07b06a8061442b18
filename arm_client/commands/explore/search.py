"""The search: a program in many orders, few preemptions first, and the fewest with which one that failed does."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Self

from arm_client.commands.run.forks import Forks, file_in_memory
from hbrt.exploration.schedule import Choice, Preemption, deeper, shrunk, text_of
from hbrt.exploration.seeds import BOARD, LOG, SCHEDULE, settings_of, simpler

TIMED_OUT = 124
_LOADED = ("numpy", "arm_client.client", "arm_client.transport.scheduled", "dsp_server.scheduled.cores")
"""By name: this package does not import that of the cores."""
_FINDING = re.compile(r"^hbrt: \w+: ([a-z-]+): ", re.MULTILINE)
_ERROR = re.compile(r"^([A-Za-z_.]+(?:Error|Exception|Exit|Interrupt)\b)", re.MULTILINE)


class Run(NamedTuple):
    """One run of the program.

    Attributes:
        settings: With which.
        code: Its exit code, negative for a signal, 124 for one that took too long.
        output: Its output, including errors.
        choices: Its first steps, and all its preemptions.
        step_count: Steps at which more than one thread could continue; 0 if the program did not finish.
        digest: Equal for equal steps.
    """

    settings: Mapping[str, str]
    code: int
    output: str
    choices: tuple[Choice, ...]
    step_count: int
    digest: str

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for the same failure: exit code, kinds of findings, and the exception."""
        return self.code, tuple(sorted(set(_FINDING.findall(self.output)))), tuple(_ERROR.findall(self.output)[-1:])

    @property
    def preemptions(self) -> tuple[Choice, ...]:
        """The steps at which a different thread than the default one continued."""
        return tuple(one for one in self.choices if one.is_preemption)


Runs = Generator[tuple[int | None, Run], None, None]
"""Seeds and their runs; None for the seed of one whose preemptions are chosen."""
RunAll = Callable[[Iterable[Mapping[str, str]]], Generator[Run, None, None]]
"""Runs a program with each of these settings; the runs in the same order."""


class Runner:
    """Runs a program with different settings; a context manager.

    Args:
        program: A Python file.
        arguments: Its arguments.
        seconds: How long a run may take.
        board: Directory of a board whose memory they use.
    """

    def __init__(self, program: str, arguments: Sequence[str], seconds: float, board: str) -> None:
        self._board = board
        self._program, self._arguments, self._seconds = program, arguments, seconds
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
        with file_in_memory() as log:
            ended = self._forks.run(
                self._program, self._arguments, {**settings, LOG: str(log), BOARD: self._board}, self._seconds
            )
            choices, count, digest = _read_log(log)
        return Run(settings, TIMED_OUT if ended.has_timed_out else ended.code, ended.output, choices, count, digest)

    def run_all(self, settings: Iterable[Mapping[str, str]]) -> Generator[Run, None, None]:
        """Run it with each of these settings."""
        yield from map(self.run, settings)


def _read_log(file: Path) -> tuple[tuple[Choice, ...], int, str]:
    choices, count, digest = [], 0, ""
    for line in file.read_text(encoding="utf-8").splitlines():
        first, *rest = line.split(" ", 5)
        if first == "end":
            count, digest = int(rest[0]), rest[1]
        elif first.isdecimal() and len(rest) == 5:
            choices.append(Choice(int(first), rest[0], rest[1], tuple(rest[2].split(",")), rest[3], rest[4]))
    return tuple(choices), count, digest


def runs_of(run_all: RunAll, first_seed: int, most: int, given: Mapping[str, str]) -> Runs:
    """Runs of a program, each with another order.

    From seed 0, every other run has chosen preemptions: all orders with one, then all with two, and so on. The runs
    between take the order, the copies and the cache from a seed.

    Args:
        run_all: Runs it.
        first_seed: The first seed. Any other value continues an earlier search with seeds only.
        most: How many runs.
        given: The user's own settings, which are kept.
    """
    seeds = iter(range(first_seed, first_seed + most))
    orders: list[dict[str, str]] = []
    left = most
    while left:
        batch: list[tuple[int | None, dict[str, str]]] = []
        for order in orders:
            batch += [(None, order), (drawn := next(seeds), settings_of(drawn, given))]
        if not orders:
            some = [next(seeds)] if left == most and not first_seed else seeds
            batch = [(drawn, settings_of(drawn, given)) for drawn in some]
        level = []
        with closing(run_all([settings for _, settings in batch[:left]])) as runs:
            for (seed, _), run in zip(batch, runs, strict=False):
                yield seed, run
                level += [] if seed else [run.choices]
        left -= min(left, len(batch))
        orders = [{SCHEDULE: text_of(order)} for order in deeper(level, left)]


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

    wanted = {one.site for one in run.preemptions}
    left, orders = most * 3 // 4, [list[Preemption]()]
    while orders and len(orders[0]) <= len(run.preemptions):
        level, left = [], left - len(orders)
        for order in orders:
            one = runner.run({**rest, SCHEDULE: text_of(order)})
            if one.kind == failure.kind:
                return one
            level.append(one.choices)
        orders = deeper(level, left, wanted)
    steps = _as_list(run)
    if fails_by(steps):
        shrunk(steps, fails_by, most - (runner.runs - before))
        came = _as_list(best)
        if text_of(came) != best.settings[SCHEDULE]:  # some were passed over
            fails_by(came)
    return best


def _as_list(run: Run) -> list[Preemption]:
    return [Preemption(one.step, one.chosen) for one in run.preemptions]
