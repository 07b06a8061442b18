"""A schedule: which of a program and its cores continues at each step where more than one could. Pure.

By default, the running one continues; if it cannot, the core with the least modeled time, then the program. A schedule
lists the decisions that differ from that, the preemptions. So its text is short, and any part of it is also a schedule.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple, Protocol

DEFAULT, RANDOM, STEPS = "default", "random:", "steps:"
PATIENCE: Final = 2000
"""Maximum consecutive steps of a polling loop before another one gets a turn."""
MAX_CHOICES: Final = 10_000
"""Number of steps of a run that a search may preempt; in longer runs, the first ones."""
DENSITIES: Final = (2, 4, 8, 16, 32, 64)
"""A random schedule preempts at one in this many steps, chosen by its seed: few preemptions find some mistakes sooner,
many find others.

Source: Burckhardt and others, A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs (ASPLOS 2010), 2,
for few preemptions at drawn steps,
https://www.microsoft.com/en-us/research/publication/a-randomized-scheduler-with-probabilistic-guarantees-of-finding-bugs/
"""


class BadScheduleError(ValueError):
    """A text is not a schedule; the message says why."""


class Preemption(NamedTuple):
    """At a step, another one continues instead of the default."""

    step: int
    actor: str

    def __str__(self) -> str:
        return f"{self.step}={self.actor}"


class Choice(NamedTuple):
    """A recorded step: who could continue, who would by default, who did, and who ran before, and where."""

    step: int
    chosen: str
    default: str
    ready: tuple[str, ...]
    before: str
    site: str

    @property
    def is_preemption(self) -> bool:
        """Whether another one than the default continued."""
        return self.chosen != self.default

    def others(self) -> Iterator[Preemption]:
        """Return the preemptions that the step allows."""
        return (Preemption(self.step, actor) for actor in self.ready if actor != self.default)

    def __str__(self) -> str:
        where = f", which is at {self.site}" if self.site and self.site != self.before else ""
        return f"at step {self.step} {self.chosen} continues instead of {self.before}{where}"


Place = tuple[str, str]
"""Place of a preemption, and who continues: the same in each iteration of a loop."""


def deeper(runs: Sequence[Sequence[Choice]], most: int, wanted: Container[str] = ()) -> list[list[Preemption]]:
    """Return the orders with one more preemption than each of these runs, after its last one.

    Called with the run without preemptions, then with all runs of its orders, and so on, it enumerates all orders by
    number of preemptions. Orders at new places come first.

    Args:
        runs: The steps of each run.
        most: Maximum number of returned orders.
        wanted: ``file:line`` of likely places; orders preempted elsewhere come last.

    Source: Musuvathi and Qadeer, Iterative Context Bounding for Systematic Testing of Multithreaded Programs (PLDI
    2007), 2 and 3,
    https://www.microsoft.com/en-us/research/publication/iterative-context-bounding-for-systematic-testing-of-multithreaded-programs/
    """
    seen: Counter[tuple[Place, ...]] = Counter()

    def ranked() -> Iterator[tuple[int, int, list[Preemption]]]:
        for run in runs:
            so_far = [one for one in run if one.is_preemption]
            last = so_far[-1].step if so_far else 0
            preemptions = [Preemption(one.step, one.chosen) for one in so_far]
            places = tuple((one.site, one.chosen) for one in so_far)
            for choice in run:
                for other in choice.others() if choice.step > last else ():
                    key = (*places, (choice.site, other.actor))
                    seen[key] += 1
                    yield sum(site not in wanted for site, _ in key), seen[key], [*preemptions, other]

    return [order for _, _, order in nsmallest(most, ranked(), key=lambda one: one[:2])]


class Policy(Protocol):
    """Decides each step."""

    def choose(self, step: int, ready: Sequence[str], default: str) -> str:
        """Choose who continues.

        Args:
            step: Number of the step, counting from 1 those where more than one could continue.
            ready: Those who can continue.
            default: The default among them.
        """


class Steps:
    """The preemptions of a list; one whose actor cannot continue at that point is skipped."""

    def __init__(self, preemptions: Sequence[Preemption] = ()) -> None:
        self._actors = {one.step: one.actor for one in preemptions}

    def choose(self, step: int, ready: Sequence[str], default: str) -> str:
        """See ``Policy.choose``."""
        actor = self._actors.get(step, default)
        return actor if actor in ready else default


class Random:
    """Preemptions drawn from a seed, the same on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        self._density = self._random.choice(DENSITIES)

    def choose(self, step: int, ready: Sequence[str], default: str) -> str:  # noqa: ARG002 - as of every policy
        """See ``Policy.choose``."""
        if self._random.randrange(self._density):
            return default
        return self._random.choice([one for one in ready if one != default])


def parse(text: str) -> Policy:
    """Return the policy of HBRT_SCHEDULE.

    Raises:
        BadScheduleError: it is not a schedule.
    """
    if text == DEFAULT:
        return Steps()
    if text.startswith(RANDOM) and text.removeprefix(RANDOM).isdecimal():
        return Random(int(text.removeprefix(RANDOM)))
    if text.startswith(STEPS):
        return Steps([_preemption(word, text) for word in text.removeprefix(STEPS).split(",") if word])
    raise BadScheduleError(
        f"{text!r} is not a schedule; write default, random:SEED with an integer, or steps:17=core1,..."
    )


def text_of(preemptions: Sequence[Preemption]) -> str:
    """Format as text that ``parse`` reads."""
    return STEPS + ",".join(map(str, preemptions)) if preemptions else DEFAULT


def _preemption(word: str, text: str) -> Preemption:
    step, is_there, actor = word.partition("=")
    if not is_there or not step.isdecimal() or not actor:
        raise BadScheduleError(
            f"{word!r} in {text!r} is not a preemption; write a step and who continues, such as 17=core1."
        )
    return Preemption(int(step), actor)


def shrunk(
    preemptions: Sequence[Preemption], fails: Callable[[Sequence[Preemption]], bool], most: int
) -> list[Preemption]:
    """Return a smaller list that still fails: remove halves, quarters and so on as long as it does (delta debugging).

    Args:
        preemptions: A list that fails.
        fails: Runs a list.
        most: Maximum number of calls of ``fails``.

    Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (IEEE Transactions on Software
    Engineering 28, 2002), algorithm ddmin, https://www.st.cs.uni-saarland.de/papers/tse2002/
    """
    left, parts, calls = list(preemptions), 2, 0
    while len(left) > 1 and calls < most:
        size = -(-len(left) // parts)
        for start in range(0, len(left), size):
            rest = left[:start] + left[start + size :]
            calls += 1
            if fails(rest):
                left, parts = rest, max(parts - 1, 2)
                break
            if calls >= most:
                break
        else:
            if size == 1:
                break
            parts = min(len(left), parts * 2)
    return left
