"""When to poll for the end of a call: a rule, and a memory that stays small."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from hbrt.attach.completion_time import MAX_MARGIN_NS, MAX_NS, MAX_REMEMBERED, MIN_NS, CompletionTimes, poll_window

LONG_NS = 2_000_000


@given(st.integers(MIN_NS, MAX_NS))
def test_poll_window_opens_before_the_expected_end_and_lasts_until_after_it(expected_ns: int) -> None:
    sleep_ns, poll_ns = poll_window(expected_ns)
    assert 0 <= sleep_ns < expected_ns < sleep_ns + poll_ns
    assert poll_ns <= 3 * MAX_MARGIN_NS


@given(st.integers(9_600_000, MAX_NS))
def test_poll_window_beside_a_long_call_takes_a_small_part_of_its_time(expected_ns: int) -> None:
    assert poll_window(expected_ns)[1] <= expected_ns / 8


class TestCompletionTimes:
    def test_is_what_the_same_call_took(self) -> None:
        times = CompletionTimes()
        times.note(b"blur", LONG_NS)
        times.note(b"warp", 2 * LONG_NS)
        assert (times.of(b"blur"), times.of(b"warp"), times.of(b"flip")) == (LONG_NS, 2 * LONG_NS, 0)

    def test_follows_shorter_calls_at_once_and_longer_ones_slowly(self) -> None:
        times = CompletionTimes()
        times.note(b"blur", 3 * LONG_NS)
        times.note(b"blur", LONG_NS)
        assert times.of(b"blur") == LONG_NS
        times.note(b"blur", 3 * LONG_NS)
        assert LONG_NS < times.of(b"blur") < 2 * LONG_NS
        for _ in range(30):
            times.note(b"blur", 3 * LONG_NS)
        assert times.of(b"blur") > 2.9 * LONG_NS

    def test_calls_that_vary_by_a_fifth_seldom_end_before_their_poll_window(self) -> None:
        times, chance, early = CompletionTimes(), random.Random(1), 0
        times.note(b"blur", LONG_NS)
        for _ in range(1000):
            took_ns = int(LONG_NS * chance.uniform(0.8, 1.2))
            sleep_ns, _ = poll_window(times.of(b"blur"))
            early += took_ns < sleep_ns
            times.note(b"blur", took_ns)
        assert early < 100

    def test_call_that_has_become_short_or_very_long_is_forgotten(self) -> None:
        times = CompletionTimes()
        for took_ns in (MIN_NS - 1, MAX_NS + 1):
            times.note(b"blur", LONG_NS)
            times.note(b"blur", took_ns)
            assert times.of(b"blur") == 0

    def test_memory_is_bounded_and_keeps_the_newest(self) -> None:
        times = CompletionTimes()
        for number in range(3 * MAX_REMEMBERED + 1):
            times.note(number.to_bytes(4, "little"), LONG_NS)
        known = [number for number in range(3 * MAX_REMEMBERED + 1) if times.of(number.to_bytes(4, "little"))]
        assert known
        assert len(known) <= MAX_REMEMBERED
        assert known[-1] == 3 * MAX_REMEMBERED
