"""The rules of a farm, without one: order, retries, items that are set aside, and how far it runs ahead."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from hypothesis import given, strategies as st

from hbrt_farm.book import MAX_ATTEMPTS, Book
from hbrt_farm.result import Outcome, Status, digests_of

GOOD = Outcome(Status.GOOD)


@given(seed=st.integers(0, 10_000), items=st.integers(0, 60), boards=st.integers(1, 5), window=st.integers(1, 20))
def test_each_item_has_one_result_in_order_whatever_dies(seed: int, items: int, boards: int, window: int) -> None:
    rng, book = random.Random(seed), Book(range(100, 100 + items), window, 3)
    queues: list[list[int]] = [[] for _ in range(boards)]
    found, rounds = [], 0
    while not book.is_over:
        rounds += 1
        assert rounds < 10_000
        at = rng.randrange(boards)
        while book.under_way(at) < 2 and (drawn := book.draw(at)) is not None:
            assert drawn[1] == 100 + drawn[0] - 3
            queues[at].append(drawn[0])
        queue, fate = queues[at], rng.random()
        if fate < 0.2:
            book.lost(at, "killed")
            queue.clear()
        elif queue and fate < 0.4:
            book.lost_at(at, queue.pop(0), "daemon")
        elif queue:
            book.ended(at, queue.pop(0), GOOD)
        found += list(book.results())
    assert [result.index for result in found] == list(range(3, 3 + items))
    assert all(result.attempts <= MAX_ATTEMPTS for result in found)
    assert all(result.attempts == MAX_ATTEMPTS for result in found if result.status is Status.POISON)


def test_only_the_item_that_was_begun_is_held_to_have_killed_its_board() -> None:
    book = Book(["bad", "innocent"], 10)
    for _ in range(MAX_ATTEMPTS):
        assert [book.draw(0), book.draw(0)] == [(0, "bad"), (1, "innocent")]
        book.lost(0, "killed by a signal")
    assert book.draw(0) == (1, "innocent")
    book.ended(0, 1, GOOD)
    bad, innocent = book.results()
    assert (bad.status, bad.attempts, innocent.attempts) == (Status.POISON, 3, 1)
    assert bad.text.endswith("killed by a signal")
    assert book.draw(0) is None
    assert book.is_over


def test_items_are_drawn_no_further_than_the_window() -> None:
    drawn = []

    def source() -> Iterator[int]:
        for number in range(1_000_000):
            drawn.append(number)
            yield number

    book = Book(source(), 8)
    assert book.draw(0) == (0, 0)  # which takes long
    for index in range(1, 8):
        assert book.draw(1) == (index, index)
        book.ended(1, index, GOOD)
    assert book.draw(1) is None
    assert list(book.results()) == []
    assert len(drawn) == 8
    book.ended(0, 0, GOOD)
    assert [result.item for result in book.results()] == [str(number) for number in range(8)]
    assert book.draw(1) == (8, 8)


def test_a_digest_is_of_the_bytes_in_c_order() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert len({*digests_of((array, array.tobytes(), np.asfortranarray(array)))}) == 1
    assert digests_of((np.empty((0, 3)),)) == digests_of((b"",))
