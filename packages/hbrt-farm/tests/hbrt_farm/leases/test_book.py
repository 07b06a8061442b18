"""The rules of leases: order, limits, and that a board is nobody's until it is fresh."""

from hypothesis import given, strategies as st

from hbrt_farm.leases.book import Grant, LeaseBook, Request


def request(user: str = "alice", pool: str = "a") -> Request:
    return Request(f"program of {user}", user, pool, 0.0)


def test_requests_get_boards_in_the_order_of_their_arrival() -> None:
    book = LeaseBook({"a": [0, 1]})
    for who in (b"1", b"2", b"3", b"4"):
        book.ask(who, request())
    assert book.grants() == []
    book.ready(1)
    assert book.grants() == [Grant(b"1", 1)]
    assert book.places() == {b"2": 1, b"3": 2, b"4": 3}
    assert book.gone(b"2") is None
    assert book.places() == {b"3": 1, b"4": 2}
    book.ready(0)
    assert book.grants() == [Grant(b"3", 0)]
    assert "all 2 boards are taken" in book.why_waiting(b"4")


def test_a_board_that_was_given_back_is_nobodys_until_it_is_fresh() -> None:
    book = LeaseBook({"a": [0]})
    book.ready(0)
    book.ask(b"1", request())
    book.ask(b"2", request())
    book.grants()
    assert book.gone(b"1") == 0
    assert book.grants() == []
    book.ready(0)
    assert book.grants() == [Grant(b"2", 0)]
    assert book.lost(0) == b"2"
    assert book.requests == {}
    assert book.lost(0) is None
    assert book.gone(b"2") is None


def test_a_user_at_the_limit_is_passed_over_and_keeps_the_place() -> None:
    book = LeaseBook({"a": [0, 1], "b": [2]}, per_user=1)
    for seat in range(3):
        book.ready(seat)
    for who, user, pool in ((b"1", "alice", "a"), (b"2", "alice", "b"), (b"3", "bob", "a")):
        book.ask(who, request(user, pool))
    assert book.grants() == [Grant(b"1", 0), Grant(b"3", 1)]
    assert book.places() == {b"2": 1}
    assert book.why_waiting(b"2") == "alice has 1 of its boards, the maximum per user"
    assert book.gone(b"1") == 0
    assert book.grants() == [Grant(b"2", 2)]


@given(st.lists(st.tuples(st.sampled_from(["ask", "gone", "lost", "ready"]), st.integers(0, 7)), max_size=60))
def test_no_board_has_two_lessees_and_no_user_too_many(moves: list[tuple[str, int]]) -> None:
    book = LeaseBook({"a": [0, 1], "b": [2, 3]}, per_user=2)
    fresh: set[int] = set()
    for move, number in moves:
        who, seat = bytes([number]), number % 4
        if move == "ask" and who not in book.requests:
            book.ask(who, request("ab"[number % 2], "ab"[number // 4]))
        elif move == "gone":
            book.gone(who)
        elif move == "lost":
            book.lost(seat)
            fresh.discard(seat)
        elif move == "ready" and seat not in book.lessees:
            book.ready(seat)
            fresh.add(seat)
        for granted in book.grants():
            assert granted.seat in fresh
            fresh.remove(granted.seat)
            assert granted.seat in book.pools[book.requests[granted.who].pool]
        lessees = list(book.lessees.values())
        assert len(set(lessees)) == len(lessees)
        assert set(lessees) | set(book.places()) == set(book.requests)
        assert all(sum(book.requests[who].user == user for who in lessees) <= 2 for user in "ab")
