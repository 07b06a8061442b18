"""The order of tasks, core masks and the rules for waking, by table."""

from hbrt.mailbox.schedule import (
    ASLEEP,
    LOOKING,
    RUNNING,
    core_to_chain,
    cores_to_wake,
    eligible_cores,
    may_run,
    rank,
    task_key,
)
from tests.each import each

FIRST_TO_LAST = [
    (255, 5, 90),
    (254, -(2**63), 80),
    (254, -1, 70),
    (254, 0, 60),
    (254, 0, 61),
    (254, 2**63 - 1, 1),
    (1, 3, 50),
    (0, -7, 51),
    (0, 0, 2),
    (0, 0, 2**64 - 1),
]


def test_priority_then_custom_id_then_submission() -> None:
    keys = [task_key(*task) for task in FIRST_TO_LAST]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@each(
    "priority, sequence, aging_ns, expected",
    [
        (7, 10**18, 0, 7),  # no aging
        (7, 99, 100, 7),
        (7, 100, 100, 6),  # a tick before it was submitted
        (0, 10**18, 1_000_000, -(10**12)),
        (253, 0, 1, 253),
        (254, 10**18, 1, 254),
        (255, 10**18, 1, 255),
    ],
)
def test_rank_is_the_priority_less_the_ticks_before_the_submission(
    priority: int, sequence: int, aging_ns: int, expected: int
) -> None:
    assert rank(priority, sequence, aging_ns) == expected


def test_a_task_that_waits_gains_a_level_a_tick_against_those_that_come() -> None:
    old = rank(3, 1_050, 100)
    assert [rank(5, at, 100) - old for at in (1_050, 1_099, 1_100, 1_199, 1_200, 1_300)] == [2, 2, 1, 1, 0, -1]
    assert rank(254, 10**9, 100) > old


@each(
    "mask, cores_of_2, cores_of_4",
    [
        (0, (0, 1), (0, 1, 2, 3)),
        (0b1, (0,), (0,)),
        (0b10, (1,), (1,)),
        (0b11, (0, 1), (0, 1)),
        (0b1010, (1,), (1, 3)),
        (0b100, (), (2,)),
        (1 << 63, (), ()),
    ],
)
def test_eligible_cores(mask: int, cores_of_2: tuple[int, ...], cores_of_4: tuple[int, ...]) -> None:
    assert eligible_cores(mask, 2) == cores_of_2
    assert eligible_cores(mask, 4) == cores_of_4
    assert [core for core in range(4) if may_run(core, mask)] == list(cores_of_4)


A, L, R = ASLEEP, LOOKING, RUNNING


@each(
    "mask, activity, woken",
    [
        (0, (A, A), (0,)),
        (0, (L, A), ()),
        (0, (A, L), ()),  # a later core that looks spares an earlier one that sleeps
        (0, (R, A), (1,)),
        (0, (R, R), ()),
        (0, (R, L), ()),
        (0b01, (A, L), (0,)),  # the one that looks may not run it
        (0b10, (L, A), (1,)),
        (0b10, (A, R), ()),
        (0b10, (A, L), ()),
        (0b110, (A, R, A), (2,)),
        (0b100, (A, A), ()),  # names no core that exists
    ],
)
def test_whom_a_submitter_wakes(mask: int, activity: tuple[int, ...], woken: tuple[int, ...]) -> None:
    assert cores_to_wake(mask, activity) == woken


@each(
    "claimer, masks, activity, rung",
    [
        (0, [], (R, A), None),
        (0, [0], (R, A), 1),
        (0, [0], (L, A), 1),  # the claimer counts as RUNNING before it says so
        (0, [0b01], (R, A), None),
        (0, [0b01, 0b01, 0], (R, A), 1),
        (1, [0], (A, R), 0),
        (0, [0], (R, L), None),
        (0, [0], (R, R), None),
        (1, [0b100, 0], (A, R, L), None),
        (1, [0b001], (A, R, L), 0),
    ],
)
def test_whom_a_core_that_claimed_rings(
    claimer: int, masks: list[int], activity: tuple[int, ...], rung: int | None
) -> None:
    assert core_to_chain(claimer, masks, activity) == rung
