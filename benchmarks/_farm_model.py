"""A farm of more boards than a machine has, as a discrete-event model: the farm's own dispatch, with measured times."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import simpy

from hbrt_farm.dispatch import Dispatch
from hbrt_farm.farm import DEPTH, WINDOW
from hbrt_farm.result import Outcome, Status

Steps = Generator[simpy.Event, Any, None]
GOOD = Outcome(Status.GOOD)
ROUNDS = 20  # items per board


class Overheads(NamedTuple):
    """What a farm adds to its items' own times, each in seconds.

    Attributes:
        item: Of the driver: to give one item to a board and to take its result.
        wait: Of the driver: to wait, once, for whichever results are there.
        pending: What that grows by with each item that is under way.
        worker: Of a board's process, an item.
        transit: From the driver to a board or back.
    """

    item: float
    wait: float
    pending: float
    worker: float
    transit: float


class Run(NamedTuple):
    """A simulated run: boards, items per second, and the share of the time that the driver is busy."""

    boards: int
    rate: float
    busy: float


class Model:
    """A farm over items whose service times are drawn from those given; its boards run, and none dies.

    The driver is one server: it waits, takes all results that are there, and gives the next items, by the rules of
    ``Dispatch``. A board has as many items at a time as in a farm, and serves them one after another.
    """

    def __init__(self, boards: int, service_s: Sequence[float], overheads: Overheads, seed: int = 0) -> None:
        self._boards, self._service_s, self._overheads = boards, service_s, overheads
        self._env, self._rng = simpy.Environment(), random.Random(seed)
        self._dispatch = Dispatch(range(ROUNDS * boards), WINDOW * boards)
        self._answers = simpy.Store(self._env)
        self._queues = [simpy.Store(self._env) for _ in range(boards)]
        self._busy_s = 0.0

    def run(self) -> Run:
        """Simulate until each item has its result."""
        for at in range(self._boards):
            self._env.process(self._board(at))
        self._env.run(self._env.process(self._driver()))
        return Run(self._boards, ROUNDS * self._boards / self._env.now, self._busy_s / self._env.now)

    def _board(self, at: int) -> Steps:
        while True:
            arrives, index = yield self._queues[at].get()
            yield self._env.timeout(max(0.0, arrives - self._env.now))
            yield self._env.timeout(self._rng.choice(self._service_s) + self._overheads.worker)
            self._env.process(self._answer(at, index))

    def _answer(self, at: int, index: int) -> Steps:
        yield self._env.timeout(self._overheads.transit)
        yield self._answers.put((at, index))

    def _fill(self) -> None:
        for at in range(self._boards):
            while self._dispatch.under_way(at) < DEPTH and (drawn := self._dispatch.draw(at)) is not None:
                self._queues[at].put((self._env.now + self._overheads.transit, drawn[0]))

    def _driver(self) -> Steps:
        dispatch, costs = self._dispatch, self._overheads
        self._fill()
        while not dispatch.is_over:
            done = [(yield self._answers.get())]
            while self._answers.items:
                done.append((yield self._answers.get()))
            pending = sum(dispatch.under_way(at) for at in range(self._boards))
            spent = costs.wait + costs.pending * pending + costs.item * len(done)
            yield self._env.timeout(spent)
            self._busy_s += spent
            for at, index in done:
                dispatch.ended(at, index, GOOD)
            list(dispatch.results())
            self._fill()


def plot(curves: Mapping[str, Sequence[Run]], file: Path) -> None:
    """Boards against how many times the items per second of one board they bring."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, runs in curves.items():
        axes.loglog([run.boards for run in runs], [run.rate / runs[0].rate for run in runs], "o-", ms=3, label=name)
    most = max(run.boards for runs in curves.values() for run in runs)
    axes.loglog([1, most], [1, most], ":", color="black", label="each board brings as much as the first")
    axes.set(title="Simulated, with times measured on one machine", xlabel="boards", ylabel="times one board")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend()
    figure.savefig(file, format="png", dpi=90)
