"""When to look for the end of a call: a rule, and a memory that stays small."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from hbrt.attach.completion_time import LEAST_NS, MOST_MARGIN_NS, MOST_NS, MOST_REMEMBERED, Usual, lookout

LONG_NS = 2_000_000


@given(st.integers(LEAST_NS, MOST_NS))
def test_lookout_begins_before_the_usual_end_and_lasts_until_after_it(usual_ns: int) -> None:
    sleep_ns, look_ns = lookout(usual_ns)
    assert 0 <= sleep_ns < usual_ns < sleep_ns + look_ns
    assert look_ns <= 3 * MOST_MARGIN_NS


@given(st.integers(9_600_000, MOST_NS))
def test_lookout_beside_a_long_call_takes_a_small_part_of_its_time(usual_ns: int) -> None:
    assert lookout(usual_ns)[1] <= usual_ns / 8


class TestUsual:
    def test_is_what_the_same_call_took(self) -> None:
        usual = Usual()
        usual.note(b"blur", LONG_NS)
        usual.note(b"warp", 2 * LONG_NS)
        assert (usual.of(b"blur"), usual.of(b"warp"), usual.of(b"flip")) == (LONG_NS, 2 * LONG_NS, 0)

    def test_follows_shorter_calls_at_once_and_longer_ones_slowly(self) -> None:
        usual = Usual()
        usual.note(b"blur", 3 * LONG_NS)
        usual.note(b"blur", LONG_NS)
        assert usual.of(b"blur") == LONG_NS
        usual.note(b"blur", 3 * LONG_NS)
        assert LONG_NS < usual.of(b"blur") < 2 * LONG_NS
        for _ in range(30):
            usual.note(b"blur", 3 * LONG_NS)
        assert usual.of(b"blur") > 2.9 * LONG_NS

    def test_calls_that_vary_by_a_fifth_seldom_end_before_their_lookout(self) -> None:
        usual, chance, early = Usual(), random.Random(1), 0
        usual.note(b"blur", LONG_NS)
        for _ in range(1000):
            took_ns = int(LONG_NS * chance.uniform(0.8, 1.2))
            sleep_ns, _ = lookout(usual.of(b"blur"))
            early += took_ns < sleep_ns
            usual.note(b"blur", took_ns)
        assert early < 100

    def test_call_that_has_become_short_or_very_long_is_forgotten(self) -> None:
        usual = Usual()
        for took_ns in (LEAST_NS - 1, MOST_NS + 1):
            usual.note(b"blur", LONG_NS)
            usual.note(b"blur", took_ns)
            assert usual.of(b"blur") == 0

    def test_memory_is_bounded_and_keeps_the_newest(self) -> None:
        usual = Usual()
        for number in range(3 * MOST_REMEMBERED + 1):
            usual.note(number.to_bytes(4, "little"), LONG_NS)
        known = [number for number in range(3 * MOST_REMEMBERED + 1) if usual.of(number.to_bytes(4, "little"))]
        assert known
        assert len(known) <= MOST_REMEMBERED
        assert known[-1] == 3 * MOST_REMEMBERED
