"""Which of many like sentences a log gets."""

from __future__ import annotations

from dsp_server.process.journal import MOST_PEERS, REPEAT_SECONDS, Repeats


def test_the_first_of_a_peer_is_logged_and_the_others_are_counted() -> None:
    repeats = Repeats()
    assert repeats.suffix(b"a", 1000.0) == ""
    assert repeats.suffix(b"b", 1000.0) == ""
    assert [repeats.suffix(b"a", 1000.0 + tenth / 10) for tenth in range(100)] == [None] * 100
    assert repeats.suffix(b"b", 1001.0) is None
    assert repeats.suffix(b"a", 1000.0 + REPEAT_SECONDS) == " (101 more were not logged, of all peers.)"
    assert repeats.suffix(b"a", 1000.0 + 2 * REPEAT_SECONDS) == ""


def test_who_connects_anew_each_time_fills_no_log() -> None:
    repeats = Repeats()
    said = [repeats.suffix(number.to_bytes(4, "big"), 5000.0) for number in range(1, 10_000)]
    assert len([one for one in said if one is not None]) == MOST_PEERS + 1
