"""The three-way rule of shadowed memory: nothing newer is lost, and both copies come together."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.remote import CHUNK_BYTES
from hbrt.remote.shadow import Bits, Bytes, Change, accept, changed_runs, merge, spread, take
from tests.each import each

PLACES = (0, 7, 4095)


def page(count: int = 1) -> Bytes:
    return np.zeros(count * PAGE_BYTES, np.uint8)


class Sides:
    """A program, a board, and what is between them."""

    def __init__(self) -> None:
        self.mine, self.mine_base = page(), page()
        self.theirs, self.their_base = page(), page()
        self.up: deque[tuple[int, Change]] = deque()
        self.down: deque[tuple[int, Change]] = deque()
        self.pushed = self.seen = 0
        self.under_way: list[tuple[int, Bits]] = []
        self.unsent: dict[int, int] = {}  # what the program wrote since its last push

    def write(self, place: int, value: int) -> None:
        self.mine[place] = value
        self.unsent[place] = value
        self.forget_what_is_no_change()

    def forget_what_is_no_change(self) -> None:
        """What both sides hold, as far as this one knows, is nobody's change: whoever wrote it, or both at once."""
        self.unsent = {place: value for place, value in self.unsent.items() if value != self.mine_base[place]}

    def write_there(self, place: int, value: int) -> None:
        self.theirs[place] = value

    def push(self, *_: int) -> None:
        change, bits = take(self.mine, self.mine_base)
        self.pushed += 1
        self.under_way.append((self.pushed, bits))
        self.up.append((self.pushed, change))
        self.unsent.clear()

    def arrive_there(self, *_: int) -> None:
        if self.up:
            self.seen, change = self.up.popleft()
            accept(self.theirs, self.their_base, *spread(change))

    def send_back(self, *_: int) -> None:
        self.down.append((self.seen, take(self.theirs, self.their_base)[0]))

    def arrive_here(self, *_: int) -> None:
        if self.down:
            seen, change = self.down.popleft()
            self.under_way = [(number, bits) for number, bits in self.under_way if number > seen]
            merge(self.mine, self.mine_base, *spread(change), [(0, bits) for _, bits in self.under_way])
            self.forget_what_is_no_change()

    def come_to_rest(self) -> None:
        for _ in range(2):
            self.push()
            while self.up:
                self.arrive_there()
            self.send_back()
            while self.down:
                self.arrive_here()


STEPS = st.sampled_from(["write", "write_there", "push", "arrive_there", "send_back", "arrive_here"])


BOTH_THE_SAME = [
    *[("write", 7, 1), ("write_there", 7, 1), ("send_back", 0, 0)],
    *[("write_there", 7, 0), ("send_back", 0, 0), ("arrive_here", 0, 0), ("arrive_here", 0, 0)],
]
CROSSING = [("write", 0, 1), ("push", 0, 0), ("write_there", 0, 2), ("send_back", 0, 0), ("arrive_here", 0, 0)]


@settings(max_examples=300)
@example(BOTH_THE_SAME)
@example([*CROSSING, ("arrive_there", 0, 0)])
@example([*CROSSING, ("write", 0, 3), ("arrive_there", 0, 0)])
@given(st.lists(st.tuples(STEPS, st.sampled_from(PLACES), st.integers(0, 3)), max_size=60))
def test_both_copies_come_together_and_newer_bytes_stay(steps: list[tuple[str, int, int]]) -> None:
    sides = Sides()
    last: dict[str, dict[int, int]] = {"write": {}, "write_there": {}}
    for step, place, value in steps:
        getattr(sides, step)(place, value)
        if step in last:
            last[step][place] = value
        for where, wanted in sides.unsent.items():
            assert sides.mine[where] == wanted, "an older byte of the board took the place of a newer one"
    sides.come_to_rest()
    np.testing.assert_array_equal(sides.mine, sides.theirs)
    for own, other in (("write", "write_there"), ("write_there", "write")):
        for place, value in last[own].items():
            if place not in last[other]:
                assert sides.mine[place] == value, "a byte that one side alone wrote is not what it wrote last"


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16), st.integers(0, 4080))
def test_a_change_carries_what_differs_and_no_other_byte(before: bytes, after: bytes, at: int) -> None:
    now, base = page(), page()
    base[at : at + 16] = np.frombuffer(before, np.uint8)
    now[at : at + 16] = np.frombuffer(after, np.uint8)
    differs = now != base
    change, _ = take(now, base)
    np.testing.assert_array_equal(base, now)
    elsewhere, base_elsewhere = np.full(PAGE_BYTES, 9, np.uint8), np.full(PAGE_BYTES, 9, np.uint8)
    accept(elsewhere, base_elsewhere, *spread(change))
    np.testing.assert_array_equal(elsewhere, np.where(differs, now, 9))
    np.testing.assert_array_equal(base_elsewhere, elsewhere)


def test_a_page_that_changed_as_a_whole_needs_no_mask_and_a_few_bytes_travel_alone() -> None:
    change, _ = take(np.full(PAGE_BYTES, 1, np.uint8), page())
    assert (change.mask, len(change.data)) == (b"", PAGE_BYTES)
    now = page()
    now[[3, 77]] = 5
    change, _ = take(now, page())
    assert (change.size_bytes, change.data) == (PAGE_BYTES, b"\x05\x05")


def test_runs_of_pages_hold_every_difference() -> None:
    now, base = page(40), page(40)
    for number in (0, 1, 3, 20, 39):
        now[number * PAGE_BYTES + number] = 1
    assert changed_runs(base, base) == []
    runs = [(first // PAGE_BYTES, last // PAGE_BYTES) for first, last in changed_runs(now, base)]
    assert runs == [(0, 4), (20, 21), (39, 40)]


@each(
    "change",
    [
        Change(0, b"", b""),
        Change(100, b"", bytes(100)),
        Change(PAGE_BYTES, b"\xff", bytes(PAGE_BYTES)),
        Change(PAGE_BYTES, bytes(512), b"x"),
        Change(PAGE_BYTES, b"", b"x" * 4095),
        Change(PAGE_BYTES, b"\x01" + bytes(511), b"xy"),
        Change(CHUNK_BYTES + PAGE_BYTES, b"", bytes(CHUNK_BYTES + PAGE_BYTES)),
        Change(-PAGE_BYTES, b"", b""),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change: Change) -> None:
    with pytest.raises(MalformedMessageError, match=r"^A change of "):
        spread(change)
