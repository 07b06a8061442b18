"""Physical address and offset, bounds, and who a page belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hbrt.ddr.file import AddressError, Ddr, DdrTables
from hbrt.ddr.layout import BLOCK_MAX_SHARERS, DDR_BASE, PAGE_BYTES, TABLES_GENERATION, LayoutError
from tests.each import each
from tests.limits import open_descriptors

OWNER = 5
SMAPS = Path("/proc/self/smaps")


class Table:
    """A DDR with one block of 5000 bytes (two pages) in the third page of its heap."""

    def __init__(self) -> None:
        self.ddr = Ddr.create(16 * PAGE_BYTES, 2)
        self.tables = DdrTables(self.ddr)
        self.base = self.ddr.layout.phy_base
        self.block = self.base + 2 * PAGE_BYTES
        self.tables.add(1, self.block, 5000, 2 * PAGE_BYTES, OWNER)


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table()
    yield table
    table.ddr.close()


def test_address_is_the_base_and_the_files_offset(table: Table) -> None:
    ddr = table.ddr
    assert ddr.layout.phy_base == DDR_BASE + ddr.layout.heap
    assert ddr.offset_of(ddr.layout.phy_base) == ddr.layout.heap
    view = ddr.view(table.block, 8)
    view[:] = b"at home!"
    assert os.pread(ddr.fd, 8, ddr.offset_of(table.block)) == b"at home!"
    assert bytes(ddr.map[table.block - DDR_BASE :][:8]) == b"at home!"
    view.release()


@each(
    "offset, size_bytes, is_inside",
    [
        (0, 0, True),
        (0, 1, True),
        (0, 5000, True),
        (0, 5001, False),
        (4999, 1, True),
        (4999, 2, False),
        (5000, 0, False),
        (5000, 1, False),
        (PAGE_BYTES, 904, True),
        (PAGE_BYTES, 905, False),
        (2 * PAGE_BYTES, 1, False),
        (-1, 1, False),
        (-1, 2, False),
        (0, -1, False),
        (0, 1 << 64, False),
    ],
)
def test_range_is_inside_one_block_or_refused(table: Table, offset: int, size_bytes: int, *, is_inside: bool) -> None:
    assert table.ddr.contains(table.block + offset, size_bytes) == is_inside
    if is_inside:
        assert len(table.ddr.view(table.block + offset, size_bytes)) == size_bytes
    else:
        with pytest.raises(AddressError, match=f"The physical range {table.block + offset:#x}"):
            table.ddr.view(table.block + offset, size_bytes)


@each("address", [0, 1, DDR_BASE - 1, DDR_BASE, (1 << 64) - 1, 1 << 63, -1])
def test_address_outside_the_heap_belongs_to_nobody(table: Table, address: int) -> None:
    assert table.ddr.block_at(address) is None
    assert not table.ddr.contains(address, 1)
    assert table.ddr.refusal(address, 0, OWNER) is not None
    assert "is outside this board's DDR" in table.ddr.explain(address, 1)


def test_explanation_says_what_is_there_instead(table: Table) -> None:
    ddr, block = table.ddr, table.block
    end = ddr.layout.phy_end
    assert ddr.explain(block, 6000) == (
        f"The physical range {block:#x}+0x1770 runs 1000 bytes past the end of its block {block:#x}+0x1388."
    )
    assert ddr.explain(block, -5) == f"The physical range {block:#x}+-0x5 has a negative size."
    assert ddr.explain(block + 3 * PAGE_BYTES, 4) == (
        f"The physical range {block + 3 * PAGE_BYTES:#x}+0x4 is not in a live block; it was freed or never allocated. "
        f"The block below is {block:#x}+0x1388."
    )
    assert ddr.explain(table.base, 4).endswith("it was freed or never allocated.")
    assert ddr.explain(end, 1) == (
        f"The physical range {end:#x}+0x1 is outside this board's DDR ({table.base:#x}..{end:#x}). "
        "That looks like a virtual address: pass mem.phyAddr, not mem.virAddr."
    )
    assert "virtual" not in ddr.explain(8, 1)


def test_block_that_was_removed_is_found_no_more_but_as_one_that_was_freed(table: Table) -> None:
    table.tables.remove(1, 2 * PAGE_BYTES, 7, "arm.py:63")
    assert table.ddr.block_at(table.block) is None
    assert table.ddr.freed_block(table.block + 4999) == (table.block, 5000, 7, "arm.py:63")
    assert table.ddr.freed_block(table.block + 5000) is None
    table.tables.add(1, table.base, 1, PAGE_BYTES, OWNER + 1)  # the id is used again elsewhere
    assert table.ddr.block_at(table.block) is None
    assert table.ddr.freed_block(table.block) is None
    found = table.ddr.block_at(table.base)
    assert found is not None
    assert (found.phy_addr, found.size_bytes, found.owner, found.end) == (table.base, 1, OWNER + 1, table.base + 1)


def test_sharers_are_those_who_registered(table: Table) -> None:
    ddr = table.ddr
    assert ddr.sharers(table.block) == ()
    table.tables.set_owner(1, OWNER, (7, 1023))
    assert ddr.sharers(table.block + 4999) == (7, 1023)
    assert [ddr.refusal(table.block, 0, client) is None for client in (OWNER, 7, 1023, 8, 0)] == [
        True,
        True,
        True,
        False,
        False,
    ]
    table.tables.set_owner(1, 0, (7,))
    assert [ddr.refusal(table.block, 0, client) is None for client in (OWNER, 7, 1023)] == [False, True, False]
    everyone = tuple(range(1, BLOCK_MAX_SHARERS + 1))
    table.tables.set_owner(1, 0, everyone)
    assert ddr.sharers(table.block) == everyone
    with pytest.raises(
        ValueError, match=f"registered by at most {BLOCK_MAX_SHARERS} clients, not {BLOCK_MAX_SHARERS + 1}"
    ):
        table.tables.set_owner(1, 0, (*everyone, 99))


def test_every_change_of_the_tables_is_counted(table: Table) -> None:
    def generation() -> int:
        return int.from_bytes(table.ddr.map[TABLES_GENERATION : TABLES_GENERATION + 8], "little")

    seen = [generation()]
    table.tables.set_owner(1, OWNER, (7,))
    seen.append(generation())
    table.tables.remove(1, 2 * PAGE_BYTES)
    seen.append(generation())
    table.tables.add(2, table.base, 1, PAGE_BYTES, OWNER)
    seen.append(generation())
    assert seen == sorted(set(seen))


def test_a_core_dump_leaves_the_ddr_out(table: Table) -> None:
    class Viewed:
        """An object that views freed memory."""

    start = table.ddr.offset_of(table.block)
    table.ddr.private.keep(start, start + 2 * PAGE_BYTES, viewed := Viewed())
    del viewed
    table.ddr.private.share_unviewed()
    mapped = re.findall(r"^([0-9a-f]+)-[0-9a-f]+ .*?^VmFlags: ([a-z ]+)$", SMAPS.read_text(), re.MULTILINE | re.DOTALL)
    flags = {int(at, 16): of for at, of in mapped}
    within = [at for at in flags if 0 <= at - table.ddr.address < table.ddr.layout.file_bytes]
    assert within == [table.ddr.address]  # in one piece again
    assert "dd" in flags[table.ddr.address].split()


def test_first_byte_that_is_not_zero_is_found_and_holes_are_skipped(table: Table) -> None:
    tables, base = table.tables, table.base
    assert tables.first_nonzero(base, 16 * PAGE_BYTES) is None
    table.ddr.map[table.ddr.offset_of(base)] = 0  # a page that is there, and zero
    assert tables.first_nonzero(base, 16 * PAGE_BYTES) is None
    for offset in (9 * PAGE_BYTES + 17, 9 * PAGE_BYTES + 3, 5):
        table.ddr.map[table.ddr.offset_of(base) + offset] = 1
        assert tables.first_nonzero(base, 16 * PAGE_BYTES) == base + offset
    assert tables.first_nonzero(base + 6, PAGE_BYTES) is None
    assert tables.first_nonzero(base + 6, 0) is None
    tables.free_pages(base, 16 * PAGE_BYTES)
    assert tables.first_nonzero(base, 16 * PAGE_BYTES) is None


def test_file_that_is_no_ddr_is_refused_and_closed() -> None:
    fd = os.memfd_create("not-a-ddr", os.MFD_CLOEXEC)
    os.ftruncate(fd, 1 << 20)
    with pytest.raises(LayoutError, match="it is not a DDR file"):
        Ddr(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@each("heap_bytes", [1 << 62, 1 << 63, 1 << 70])
def test_ddr_that_no_machine_has_is_refused(heap_bytes: int) -> None:
    before = open_descriptors()
    with pytest.raises(LayoutError, match=f"Cannot create a DDR of {heap_bytes} bytes on this machine: "):
        Ddr.create(heap_bytes, 1)
    assert open_descriptors() == before


def test_ddr_has_no_name_and_two_mappings_see_the_same(table: Table) -> None:
    other = Ddr(os.dup(table.ddr.fd))
    other.view(table.block, 4)[:] = b"seen"
    assert bytes(table.ddr.view(table.block, 4)) == b"seen"
    assert str(Path(f"/proc/self/fd/{other.fd}").readlink()).startswith("/memfd:hbrt-ddr")
    other.close()


def test_closing_waits_for_no_view(table: Table) -> None:
    other = Ddr(os.dup(table.ddr.fd))
    view = other.view(table.block, 4)
    other.close()
    view[:] = b"kept"
    assert bytes(table.ddr.view(table.block, 4)) == b"kept"
