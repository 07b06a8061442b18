"""Random bytes in slots, announce bytes and doorbells of a real board: a core answers or ignores, and never dies."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from arm_client.client import Board
from hbrt.ddr.layout import SLOT_TEXT
from hbrt.mailbox.table import FIRST_END, REQUEST, Request, State
from hbrt.status import Status
from tests.limits import PATIENCE_S

U64 = (1 << 64) - 1
CORES = 2

near = st.integers(-70, 5000)
ADDRESSES = st.one_of(st.integers(0, U64), near.map(lambda offset: ("own", offset)), near.map(lambda o: ("end", o)))
SIZES = st.one_of(st.integers(0, U64), st.integers(0, 5000))
RECORDS = st.fixed_dictionaries(
    {
        "sequence": st.integers(0, U64),
        "custom_id": st.integers(-(1 << 63), (1 << 63) - 1),
        "cmd": st.one_of(st.integers(0, (1 << 32) - 1), st.sampled_from([0, 1, 0xFFFF, 0x400, 0x401])),
        "priority": st.integers(0, (1 << 16) - 1),
        "core_mask": st.integers(0, (1 << 16) - 1),
        "owner": st.one_of(st.integers(0, (1 << 32) - 1), st.integers(0, 1100)),
        "client": st.one_of(st.integers(0, (1 << 32) - 1), st.just(-1)),
        "input_phy": ADDRESSES,
        "input_bytes": SIZES,
        "output_phy": ADDRESSES,
        "output_bytes": SIZES,
    }
)


class Scribe:
    """A client that writes slots by hand."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.link = board.session.link
        self.mailbox = self.link.mailbox
        self.slot = self.link.first_slots[-1]  # the last that the session takes itself
        self.buffer = board.alloc(4096)
        self.pids = [core["pid"] for core in board.status()["cores"]]

    def phy(self, place: int | tuple[str, int]) -> int:
        """A physical address; some are near something."""
        if isinstance(place, int):
            return place
        base = self.buffer.phy_addr if place[0] == "own" else self.mailbox.layout.phy_end
        return (base + place[1]) & U64

    def post(self) -> State:
        """Make the slot READY and wait for its end, or until it is plain that nobody may run it."""
        mm, layout = self.mailbox.map, self.mailbox.layout
        mask = self.mailbox.request(self.slot).core_mask
        mm[self.mailbox.states + self.slot] = State.READY
        for core in range(CORES):
            mm[layout.announced(core) + self.slot] = 1
        deadline = time.monotonic() + PATIENCE_S
        for core in range(CORES):  # a call behind it: whoever answers has been through everything before
            self.board.call(0, core=1 << core, timeout=PATIENCE_S)
        while mm[self.mailbox.states + self.slot] < FIRST_END and (mask == 0 or mask & 3):
            assert time.monotonic() < deadline, self.mailbox.story(self.slot)
        state = self.mailbox.state(self.slot)
        mm[self.mailbox.states + self.slot] = State.EMPTY
        return state

    def check(self) -> None:
        """The same cores serve."""
        assert [core["pid"] for core in self.board.status()["cores"]] == self.pids

    def close(self) -> None:
        self.buffer.free()


@pytest.fixture
def scribe(dsp_board: Board) -> Iterator[Scribe]:
    made = Scribe(dsp_board)
    yield made
    made.check()
    made.close()


ONE_BOARD = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@ONE_BOARD
@given(record=RECORDS)
def test_any_request_is_answered_or_lies(scribe: Scribe, record: dict[str, int]) -> None:
    fields = dict(record)
    fields["input_phy"], fields["output_phy"] = scribe.phy(record["input_phy"]), scribe.phy(record["output_phy"])
    if fields["client"] < 0:
        fields["client"] = scribe.link.client_id
    REQUEST.pack_into(scribe.mailbox.map, scribe.mailbox.layout.record(scribe.slot), *Request(**fields))
    state = scribe.post()
    assert state in {State.DONE, State.FAILED, State.READY}
    scribe.mailbox.text(scribe.slot)


@ONE_BOARD
@given(raw=st.binary(min_size=SLOT_TEXT, max_size=SLOT_TEXT))
def test_any_bytes_in_a_record_are_answered_or_lie(scribe: Scribe, raw: bytes) -> None:
    record = scribe.mailbox.layout.record(scribe.slot)
    scribe.mailbox.map[record : record + SLOT_TEXT] = raw
    assert scribe.post() in {State.DONE, State.FAILED, State.READY}


@ONE_BOARD
@given(
    writes=st.lists(
        st.tuples(st.integers(0, 15), st.integers(0, 255), st.binary(min_size=64, max_size=112)), max_size=16
    )
)
def test_any_state_of_any_leased_slot_is_outlived(scribe: Scribe, writes: list[tuple[int, int, bytes]]) -> None:
    """Slots that this client leases and does not use, in any state with any record: the next call is as good as any."""
    mailbox = scribe.mailbox
    slots = scribe.link.first_slots
    used = []
    for index, state, raw in writes:
        slot = slots[-1 - index % 8]  # the session itself takes them from the other end
        used.append(slot)
        record = mailbox.layout.record(slot)
        mailbox.map[record : record + len(raw)] = raw
        if state != State.RUNNING:  # the daemon settles that, in its own time: tests/faults has it
            mailbox.map[mailbox.states + slot] = state
        mailbox.map[mailbox.layout.announced(state % CORES) + slot] = 1
    for core in range(CORES):
        scribe.board.call(0, core=1 << core, timeout=PATIENCE_S)
    for slot in used:
        mailbox.map[mailbox.states + slot] = State.EMPTY


WORDS = st.one_of(st.integers(0, (1 << 32) - 1), st.integers(0, 9), st.sampled_from([64, 4096, 1 << 31, (1 << 32) - 1]))


@ONE_BOARD
@given(data=st.data(), words=st.lists(WORDS, min_size=1, max_size=64), size=st.integers(0, 4096))
def test_any_parameters_of_any_op_are_answered(
    scribe: Scribe, data: st.DataObject, words: list[int], size: int
) -> None:
    """The packaged ops with parameters that no wrapper would write: a status comes back, from the same core."""
    cmd = data.draw(st.sampled_from(sorted(scribe.board.ops())))
    scribe.buffer.view()[: 4 * len(words)] = b"".join(word.to_bytes(4, "little") for word in words)
    handle = scribe.board.session.tasks.submit(
        cmd, 0, 0, 0, scribe.buffer.phy_addr, size, scribe.buffer.phy_addr, 4096 - size
    )
    status = scribe.board.session.tasks.wait(handle, PATIENCE_S * 1000)
    scribe.board.session.tasks.release(handle)
    assert status not in {Status.HB_DSP_TIMEOUT, Status.HB_DSP_CORE_LOST, Status.HB_DSP_WATCHDOG}
