"""Times of a task on another machine's board, when the difference between the clocks is known badly."""

from __future__ import annotations

from arm_client.transport.remote import by_local_clock
from hbrt.mailbox.table import Answer
from tests.each import each

AHEAD, SUBMITTED, NOW = 1_000_000, 5_000, 5_900


def answer(claim_ns: int, start_ns: int, done_ns: int) -> Answer:
    return Answer(1, 0, 0, 0, claim_ns, start_ns, done_ns, 7)


def times_of(given: Answer) -> tuple[int, int, int]:
    return given.claim_ns, given.start_ns, given.done_ns


@each(
    "error, times",
    [
        (0, (5100, 5200, 5600)),
        (60, (5040, 5140, 5540)),
        (400, (5000, 5100, 5500)),  # it began at its submission at the earliest
        (-(10**9), (5400, 5500, 5900)),  # and ended now at the latest
    ],
)
def test_a_task_ran_between_its_submission_and_now(error: int, times: tuple[int, int, int]) -> None:
    told = answer(AHEAD + 5100, AHEAD + 5200, AHEAD + 5600)
    local = by_local_clock(told, AHEAD + error, SUBMITTED, NOW)
    assert times_of(local) == times
    assert (local.core, local.cycles) == (1, 7)


def test_a_time_that_was_not_reached_stays_so() -> None:
    assert times_of(by_local_clock(answer(0, 0, AHEAD + 5600), AHEAD + 10**9, SUBMITTED, NOW)) == (0, 0, 5000)
    assert times_of(by_local_clock(answer(0, 0, 0), AHEAD, SUBMITTED, NOW)) == (0, 0, 0)
