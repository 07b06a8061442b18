"""One side's copy: holes cost nothing, blocks are found by any of their addresses, and a gone block leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hbrt.ddr.file import Ddr
from hbrt.ddr.layout import PAGE_BYTES, extent_of
from hbrt.protocol.control import MalformedMessageError
from hbrt.remote.shadow import Bits, Change, take
from hbrt.remote.shadow_memory import Holdings, ShadowMemory
from tests.hbrt.remote.test_shadow import page

HEAP = 64 << 20


@pytest.fixture
def ddr() -> Iterator[Ddr]:
    made = Ddr.create(HEAP, 1)
    yield made
    made.close()


@pytest.fixture
def shadow(ddr: Ddr) -> Iterator[ShadowMemory]:
    made = ShadowMemory(ddr)
    yield made
    made.close()


def found(shadow: ShadowMemory, phy_addr: int, size_bytes: int) -> list[tuple[int, Change]]:
    noted: list[int] = []

    def note(address: int, _bits: Bits) -> int:
        noted.append(address)
        return len(noted)

    changes = list(shadow.changes(phy_addr, size_bytes, note))
    assert [(address, number) for address, _, number in changes] == [(at, n) for n, at in enumerate(noted, 1)]
    return [(address, change) for address, change, _ in changes]


def test_what_nobody_touched_is_not_looked_at(ddr: Ddr, shadow: ShadowMemory) -> None:
    before = os.fstat(ddr.fd).st_blocks
    assert found(shadow, ddr.layout.phy_base, HEAP) == []
    assert os.fstat(ddr.fd).st_blocks == before


def test_a_change_is_found_once(ddr: Ddr, shadow: ShadowMemory) -> None:
    base = ddr.layout.phy_base
    place = ddr.offset_of(base) + 3 * PAGE_BYTES + 5
    ddr.map[place : place + 5] = b"hello"
    ((address, change),) = found(shadow, base, HEAP)
    assert (address, change.data) == (base + 3 * PAGE_BYTES, b"hello")
    assert found(shadow, base, HEAP) == []
    shadow.discard(base + 3 * PAGE_BYTES, PAGE_BYTES)
    assert found(shadow, base, HEAP) == [(address, change)]


def test_changes_of_the_other_side_are_not_sent_back(ddr: Ddr, shadow: ShadowMemory) -> None:
    now = page()
    now[:3] = 7
    change, _ = take(now, page())
    base = ddr.layout.phy_base
    shadow.accept(base, change)
    shadow.merge(base + PAGE_BYTES, change, list)
    assert ddr.map[ddr.offset_of(base) : ddr.offset_of(base) + 4] == b"\7\7\7\0"
    assert found(shadow, base, HEAP) == []


def test_a_change_outside_the_heap_is_refused(ddr: Ddr, shadow: ShadowMemory) -> None:
    change = Change(PAGE_BYTES, b"", bytes(PAGE_BYTES))
    for phy_addr in (
        0,
        ddr.layout.ddr_base,
        ddr.layout.phy_base - PAGE_BYTES,
        ddr.layout.phy_base + 1,
        ddr.layout.phy_end,
    ):
        with pytest.raises(MalformedMessageError, match="does not consist of whole DDR pages"):
            shadow.accept(phy_addr, change)
        with pytest.raises(MalformedMessageError, match="does not consist of whole DDR pages"):
            shadow.merge(phy_addr, change, list)


def test_a_block_is_held_until_it_is_neither_owned_nor_registered() -> None:
    holdings = Holdings(1 << 20)
    holdings.hold(0x1000, 100, is_owned=True)
    holdings.hold(0x1000, 100, is_owned=False)
    holdings.hold(0x1000, 100, is_owned=False)
    assert holdings.find(0x1800, 0x1800) is not None  # its page and its guard
    assert holdings.find(0x1800, 0x1801) is None
    assert holdings.find(0xFFF, 1) is None
    assert holdings.find(0x1000, -1) is None
    assert holdings.release(0x1000, is_owned=True) is not None
    assert holdings.release(0x1000, is_owned=False) is not None
    assert holdings.release(0x1000, is_owned=False) is None
    assert holdings.release(0x1000, is_owned=False) is None
    assert holdings.all() == []


def test_the_guard_of_the_last_block_is_not_there() -> None:
    assert extent_of(0x1000, 1, 0x10000) == 2 * PAGE_BYTES
    assert extent_of(0xF000, 1, 0x10000) == PAGE_BYTES
