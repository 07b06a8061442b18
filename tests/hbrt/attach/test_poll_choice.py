"""The choice between polling and sleeping: fed with costs, it keeps the cheaper way and seldom tries the other."""

from __future__ import annotations

import random
from collections.abc import Callable

from hbrt.attach.poll_choice import PollChoice
from tests.each import each

ASLEEP, POLLED = False, True
Cost = Callable[[int, int], float]  # of a task in ns: ASLEEP or POLLED, when it begins
LONG_NS = 9_000_000_000
AT_ONCE = 20  # tasks that are not measured cost the same, so that a test is quick


class Run:
    """What a process pays that makes one call after the other until a time: in all, and the tasks each way."""

    def __init__(self, cost: Cost, until_ns: int = LONG_NS, choice: PollChoice | None = None) -> None:
        self.choice = choice or PollChoice()
        self.now_ns, self.tasks = 0, [0, 0]
        while self.now_ns < until_ns:
            polls = self.choice.polls
            cost_ns = int(cost(polls, self.now_ns))
            if self.choice.measures:
                count = 1
                self.choice.note(cost_ns, self.now_ns + cost_ns)
            else:
                count = min(self.choice._held_tasks, AT_ONCE)
                self.choice._held_tasks -= count - 1
                self.choice.skip()
            self.now_ns += count * cost_ns
            self.tasks[polls] += count

    def mean_ns(self) -> float:
        return self.now_ns / sum(self.tasks)


@each(
    "asleep_ns, polled_ns",
    [(60_000, 12_000), (30_000, 48_000), (30_000, 4_000_000), (4_000_000, 30_000), (40_000, 42_000)],
)
def test_it_costs_little_more_than_the_cheaper_way_whatever_the_other_one_costs(asleep_ns: int, polled_ns: int) -> None:
    run = Run(lambda polls, _: polled_ns if polls else asleep_ns)
    assert run.mean_ns() <= 1.06 * min(asleep_ns, polled_ns)


def test_tie_is_no_reason_to_poll() -> None:
    run = Run(lambda *_: 50_000)
    assert run.tasks[True] < 0.1 * run.tasks[False]


@each("seed", range(3))
def test_where_tasks_now_and_then_wait_for_a_time_slice_it_finds_the_way_with_fewer(seed: int) -> None:
    chance = random.Random(seed)

    def cost(polls: int, _now_ns: int) -> float:
        lost = chance.random() < (0.03 if polls else 0.005)
        return chance.randint(15_000, 25_000) + polls * 10_000 + lost * 3_000_000

    best = Run(cost, choice=_fixed(polls=False)).mean_ns()
    assert Run(cost).mean_ns() <= 1.1 * best


@each("seed", range(3))
def test_rare_lost_slice_does_not_end_polling_that_pays(seed: int) -> None:
    chance = random.Random(seed)
    run = Run(lambda polls, _: (12_000 if polls else 60_000) + (chance.random() < 0.001) * 4_000_000)
    assert run.tasks[False] < 0.05 * run.tasks[True]


def test_it_follows_a_machine_that_becomes_busy_and_idle_again() -> None:
    def cost(polls: int, now_ns: int) -> int:
        is_busy = LONG_NS // 3 < now_ns < 2 * LONG_NS // 3
        return (48_000 if polls else 30_000) if is_busy else (12_000 if polls else 60_000)

    run = Run(cost)
    ideal = LONG_NS / 3 / 12_000 * 2 + LONG_NS / 3 / 30_000
    assert sum(run.tasks) >= 0.9 * ideal


def test_first_tasks_after_a_change_count_for_nothing() -> None:
    """Such a task still meets a core that does what suited the other way."""
    last, changed_ns = int(POLLED), 0

    def cost(polls: int, now_ns: int) -> int:
        nonlocal last, changed_ns
        if polls != last:
            last, changed_ns = polls, now_ns
        is_new = now_ns - changed_ns < 3_000_000
        return 200_000 if is_new else 12_000 if polls else 30_000

    run = Run(cost)
    assert run.tasks[False] < 0.1 * run.tasks[True]


@each("seed", range(8))
def test_on_a_busy_machine_it_costs_what_sleeping_does_though_a_trial_of_sleeping_looks_dear(seed: int) -> None:
    """Another process takes the CPU during trials, and sleepers share a CPU only some time after they began."""
    chance, last, changed_ns, slow_ns = random.Random(seed), int(POLLED), 0, 0

    def cost(polls: int, now_ns: int) -> int:
        nonlocal last, changed_ns, slow_ns
        if polls != last:
            last, changed_ns, slow_ns = polls, now_ns, chance.choice((0, 15_000_000, 40_000_000))
        if polls:
            return 22_000
        return chance.choice((30_000, 60_000, 200_000)) if now_ns - changed_ns < slow_ns else 14_000

    assert Run(cost).mean_ns() <= 1.1 * 14_000


def test_who_calls_seldom_is_not_tried_for_longer() -> None:
    choice, now_ns, polled, count = PollChoice(), 0, 0, 20_000
    for _ in range(count):  # a camera's: 33 ms between two calls
        now_ns += 33_000_000
        polled += choice.polls
        if choice.measures:
            choice.note(48_000 if choice.polls else 30_000, now_ns)
        else:
            choice.skip()
    assert polled <= count / 10


def _fixed(*, polls: bool) -> PollChoice:
    choice = PollChoice()
    choice.polls, choice.measures, choice._held_tasks = polls, False, 1 << 62
    return choice
