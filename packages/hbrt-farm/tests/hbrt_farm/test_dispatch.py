"""The rules of a farm, without one: order, retries, items that are set aside, and how far it runs ahead."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from hypothesis import given, strategies as st

from hbrt_farm.dispatch import MAX_ATTEMPTS, Dispatch
from hbrt_farm.result import Outcome, Status, digests_of

GOOD = Outcome(Status.GOOD)


@given(seed=st.integers(0, 10_000), items=st.integers(0, 60), boards=st.integers(1, 5), window=st.integers(1, 20))
def test_each_item_has_one_result_in_order_whatever_dies(seed: int, items: int, boards: int, window: int) -> None:
    rng, dispatch = random.Random(seed), Dispatch(range(100, 100 + items), window, 3)
    queues: list[list[int]] = [[] for _ in range(boards)]
    found, rounds = [], 0
    while not dispatch.is_over:
        rounds += 1
        assert rounds < 10_000
        at = rng.randrange(boards)
        while dispatch.under_way(at) < 2 and (drawn := dispatch.draw(at)) is not None:
            assert drawn[1] == 100 + drawn[0] - 3
            queues[at].append(drawn[0])
        queue, fate = queues[at], rng.random()
        if fate < 0.2:
            dispatch.lost(at, "killed")
            queue.clear()
        elif queue and fate < 0.4:
            dispatch.lost_at(at, queue.pop(0), "daemon")
        elif queue:
            dispatch.ended(at, queue.pop(0), GOOD)
        found += list(dispatch.results())
    assert [result.index for result in found] == list(range(3, 3 + items))
    assert all(result.attempts <= MAX_ATTEMPTS for result in found)
    assert all(result.attempts == MAX_ATTEMPTS for result in found if result.status is Status.POISON)


def test_only_the_item_that_was_begun_is_held_to_have_killed_its_board() -> None:
    dispatch = Dispatch(["bad", "innocent"], 10)
    for _ in range(MAX_ATTEMPTS):
        assert [dispatch.draw(0), dispatch.draw(0)] == [(0, "bad"), (1, "innocent")]
        dispatch.lost(0, "killed by a signal")
    assert dispatch.draw(0) == (1, "innocent")
    dispatch.ended(0, 1, GOOD)
    bad, innocent = dispatch.results()
    assert (bad.status, bad.attempts, innocent.attempts) == (Status.POISON, 3, 1)
    assert bad.text.endswith("killed by a signal")
    assert dispatch.draw(0) is None
    assert dispatch.is_over


def test_items_are_drawn_no_further_than_the_window() -> None:
    drawn = []

    def source() -> Iterator[int]:
        for number in range(1_000_000):
            drawn.append(number)
            yield number

    dispatch = Dispatch(source(), 8)
    assert dispatch.draw(0) == (0, 0)  # which takes long
    for index in range(1, 8):
        assert dispatch.draw(1) == (index, index)
        dispatch.ended(1, index, GOOD)
    assert dispatch.draw(1) is None
    assert list(dispatch.results()) == []
    assert len(drawn) == 8
    dispatch.ended(0, 0, GOOD)
    assert [result.item for result in dispatch.results()] == [str(number) for number in range(8)]
    assert dispatch.draw(1) == (8, 8)


def test_a_digest_is_of_the_bytes_in_c_order() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert len({*digests_of((array, array.tobytes(), np.asfortranarray(array)))}) == 1
    assert digests_of((np.empty((0, 3)),)) == digests_of((b"",))
