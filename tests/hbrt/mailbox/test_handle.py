"""Handles: what is put into one comes out of it, and a dead one is told by its parts."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hbrt.ddr.layout import CLIENT_COUNT, SLOT_COUNT
from hbrt.mailbox.handle import SERIAL_BITS, DeadHandle, kind_of, make, slot_of

CLIENTS = st.integers(1, CLIENT_COUNT - 1)
SERIALS = st.integers(1, (1 << SERIAL_BITS) - 1)
SLOTS = st.integers(0, SLOT_COUNT - 1)


@given(CLIENTS, SERIALS, SLOTS)
def test_handle_is_a_positive_64_bit_number_of_its_parts(client: int, serial: int, slot: int) -> None:
    handle = make(client, serial, slot)
    assert 0 < handle < 1 << 63
    assert slot_of(handle) == slot
    assert kind_of(handle, client, range(serial, serial + 1)) is DeadHandle.RELEASED


@given(CLIENTS, SERIALS, SLOTS, CLIENTS, SERIALS)
def test_handle_of_another_client_or_serial_is_foreign(
    client: int, serial: int, slot: int, other: int, last: int
) -> None:
    kind = kind_of(make(client, serial, slot), other, range(1, last + 1))
    assert (kind is DeadHandle.RELEASED) == (client == other and serial <= last)
    assert kind in {DeadHandle.RELEASED, DeadHandle.FOREIGN}


@given(st.integers(max_value=0))
def test_zero_and_negative_numbers_are_no_handles(number: int) -> None:
    assert kind_of(number, 1, range(1, 10)) is DeadHandle.NONE
