"""The order of tasks, and core masks, by table."""

from hbrt.mailbox.schedule import may_run, rank, task_key
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
def test_which_cores_a_mask_allows(mask: int, cores_of_2: tuple[int, ...], cores_of_4: tuple[int, ...]) -> None:
    assert [core for core in range(2) if may_run(core, mask)] == list(cores_of_2)
    assert [core for core in range(4) if may_run(core, mask)] == list(cores_of_4)
