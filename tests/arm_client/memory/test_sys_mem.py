"""hbSysAllocMem, hbSysFreeMem, hbSysWriteMem, hbSysReadMem: what each grants, and each status."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from hbrt.ddr.layout import DDR_BASE

if TYPE_CHECKING:
    from tests.arm_client.conftest import Chip, Peer

    Factory = Callable[..., Any]

pytestmark = pytest.mark.dsp_board(image="../images/ops.py")

ALLOCS = [hb.hbSysAllocMem, hb.hbSysAllocCachedMem]


@pytest.mark.parametrize("alloc", ALLOCS)
@pytest.mark.parametrize("size", [1, 24, 4095, 4096, 4097, 1 << 20])
def test_alloc_fills_the_structure(dsp_board: Board, alloc: Callable[..., int], size: int) -> None:
    mem = hb.hbSysMem()
    assert alloc(mem, size) == 0
    assert mem.memSize == size
    assert mem.phyAddr >= DDR_BASE
    assert mem.phyAddr % 64 == 0
    assert mem.virAddr is not None
    assert ctypes.string_at(mem.virAddr, size) == bytes(size)
    ctypes.memset(mem.virAddr, 0x5A, size)
    assert bytes(mem.view()) == b"\x5a" * size
    assert len(mem.view()) == size
    before = mem.virAddr
    assert hb.hbSysFreeMem(mem) == 0
    assert mem.virAddr == before


@pytest.mark.parametrize("rests", [False, True])
def test_blocks_do_not_overlap_and_a_freed_one_comes_back_zeroed(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, *, rests: bool
) -> None:
    if not rests:
        monkeypatch.setenv("HBRT_QUARANTINE", "0")
    chip: Chip = request.getfixturevalue("chip")
    mems = [chip.mem(5000) for _ in range(8)]
    for number, mem in enumerate(mems):
        mem.view()[:] = bytes([number + 1]) * 5000
    for number, mem in enumerate(mems):
        assert bytes(mem.view()) == bytes([number + 1]) * 5000
    place = mems[3].phyAddr
    assert hb.hbSysFreeMem(mems[3]) == 0
    again = chip.mem(5000)
    assert (again.phyAddr == place) is not rests
    assert bytes(again.view()) == bytes(5000)


def test_both_argument_orders_and_references(dsp_board: Board) -> None:
    for alloc in ALLOCS:
        mem = hb.hbSysMem()
        orders: list[tuple[Any, Any]] = [(mem, 100), (100, mem), (ctypes.byref(mem), 100), (ctypes.pointer(mem), 100)]
        for arguments in orders:
            assert alloc(*arguments) == 0
            assert mem.memSize == 100
            assert hb.hbSysFreeMem(arguments[0] if arguments[1] == 100 else mem) == 0


@pytest.mark.parametrize("number", [np.int64(256), np.uint32(256), np.prod((4, 64)), ctypes.c_uint32(256)])
def test_sizes_may_be_any_integer(dsp_board: Board, number: Any) -> None:
    mem = hb.hbSysMem()
    for arguments in ((mem, number), (number, mem)):
        assert hb.hbSysAllocMem(*arguments) == 0, hb.last_error()
        assert mem.memSize == 256
        assert hb.hbSysWriteMem(mem, b"x" * 256, number) == 0
        assert hb.hbSysReadMem(bytearray(256), mem, number) == 0
        assert hb.hbSysFreeMem(mem) == 0


@pytest.mark.parametrize("alloc", ALLOCS)
@pytest.mark.parametrize("size", [0, -1, 1 << 32, 1 << 40, 1 << 64, -(1 << 63)])
def test_sizes_that_no_block_has(dsp_board: Board, alloc: Callable[..., int], size: int) -> None:
    mem = hb.hbSysMem()
    for arguments in ((mem, size), (size, mem)):
        assert alloc(*arguments) == hb.HB_SYS_INVALID_ARGUMENT
        assert hb.last_error() == f"A block must have 1 to 4294967295 bytes, not {size}."
    assert mem.virAddr is None


@pytest.mark.parametrize("mem", [None, "mem", b"", object(), 1.5, ctypes.POINTER(hb.hbSysMem)(), (hb.hbSysMem * 0)()])
def test_null_and_wrong_structures(dsp_board: Board, mem: Any) -> None:
    assert hb.hbSysAllocMem(mem, 16) == hb.HB_SYS_INVALID_ARGUMENT
    assert hb.hbSysAllocMem(hb.hbSysMem(), mem) == hb.HB_SYS_INVALID_ARGUMENT
    assert hb.last_error() == f"The size of hbSysAllocMem is {mem!r}; pass an integer."
    for call in (hb.hbSysFreeMem, hb.hbSysRegisterMem, hb.hbSysUnregisterMem):
        assert call(mem) == hb.HB_SYS_INVALID_ARGUMENT
        assert hb.last_error() == f"The block passed to {call.__name__} is {mem!r}; pass an hbSysMem."
    assert hb.hbSysFlushMem(mem, 1) == hb.HB_SYS_INVALID_ARGUMENT
    assert hb.last_error() == f"The block passed to hbSysFlushMem is {mem!r}; pass an hbSysMem."
    assert hb.hbSysWriteMem(mem, b"1234", 4) == hb.HB_SYS_INVALID_ARGUMENT
    assert hb.hbSysReadMem(bytearray(4), mem, 4) == hb.HB_SYS_INVALID_ARGUMENT


def test_a_wrong_flag_or_size_is_named_and_so_is_a_structure_that_holds_nothing(dsp_board: Board) -> None:
    mem: Any = hb.hbSysMem()
    assert hb.hbSysFlushMem(mem, "clean") == hb.HB_SYS_INVALID_ARGUMENT  # type: ignore[arg-type]
    assert hb.last_error() == "The flag of hbSysFlushMem is 'clean'; pass an integer."
    assert hb.hbSysWriteMem(mem, b"1234", 4.0) == hb.HB_SYS_INVALID_ARGUMENT  # type: ignore[arg-type]
    assert hb.last_error() == "The size of hbSysWriteMem is 4.0; pass an integer."
    assert hb.hbSysReadMem(bytearray(4), mem, 4) == hb.HB_SYS_INVALID_ARGUMENT
    assert hb.last_error().startswith("hbSysReadMem: This hbSysMem holds no memory (phyAddr 0x0, virAddr NULL): hbSysA")


def test_an_array_of_structures_is_its_first_element(dsp_board: Board) -> None:
    mems: Any = (hb.hbSysMem * 2)()
    assert hb.hbSysAllocMem(mems, 16) == 0
    assert mems[0].memSize == 16
    assert mems[1].memSize == 0
    assert hb.hbSysFreeMem(mems) == 0


class TestFree:
    def test_twice(self, chip: Chip) -> None:
        mem = chip.mem()
        place, again = mem.phyAddr, hb.hbSysMem(phyAddr=mem.phyAddr)
        assert hb.hbSysFreeMem(mem) == 0
        for gone in (mem, again):
            assert hb.hbSysFreeMem(gone) == hb.HB_SYS_NOT_ALLOCATED
            assert f"{place:#x}" in hb.last_error()

    def test_interior_and_unknown_addresses(self, chip: Chip) -> None:
        mem = chip.mem(8192)
        for phy_addr in (mem.phyAddr + 64, mem.phyAddr + 4096, mem.phyAddr - 1, 0, 1, DDR_BASE, (1 << 64) - 1):
            assert hb.hbSysFreeMem(hb.hbSysMem(phyAddr=phy_addr)) == hb.HB_SYS_NOT_ALLOCATED, hex(phy_addr)
            assert f"{phy_addr:#x}" in hb.last_error()
        mem.view()[:] = b"!" * 8192  # it is still there
        assert hb.hbSysFreeMem(mem) == 0

    def test_a_moved_structure_is_no_start_of_a_block(self, chip: Chip) -> None:
        mem = chip.mem(256)
        crop = hb.hbSysMem(phyAddr=mem.phyAddr + 64, virAddr=(mem.virAddr or 0) + 64, memSize=64)
        assert hb.hbSysFreeMem(crop) == hb.HB_SYS_NOT_ALLOCATED
        assert crop.virAddr == (mem.virAddr or 0) + 64

    def test_another_process(self, chip: Chip, peer: Peer) -> None:
        mem = chip.mem(64, b"ours")
        assert peer(f"hb.hbSysFreeMem(hb.hbSysMem(phyAddr={mem.phyAddr}))") == hb.HB_SYS_NOT_ALLOCATED
        theirs = peer.alloc(64)
        assert peer(f"hb.hbSysFreeMem(hb.hbSysMem(phyAddr={mem.phyAddr}))") == hb.HB_SYS_NOT_ALLOCATED
        assert "belongs to client" in peer("hb.last_error()")
        assert hb.hbSysFreeMem(hb.hbSysMem(phyAddr=theirs)) == hb.HB_SYS_NOT_ALLOCATED
        assert bytes(mem.view()[:4]) == b"ours"
        assert peer("hb.hbSysFreeMem(mem)") == 0

    def test_view_and_array_of_a_freed_block(self, chip: Chip) -> None:
        mem = chip.mem()
        place = mem.phyAddr
        assert hb.hbSysFreeMem(mem) == 0
        for use in (mem.view, lambda: mem.array(np.uint8)):
            with pytest.raises(ValueError, match=f"holds no memory: the block {place:#x}.* was freed at {__file__}:"):
                use()
        assert hb.hbSysWriteMem(mem, b"1", 1) == hb.HB_SYS_INVALID_ARGUMENT
        assert hb.hbSysReadMem(bytearray(1), mem, 1) == hb.HB_SYS_INVALID_ARGUMENT
        assert f"the block {place:#x}" in hb.last_error()
        assert hb.hbSysFreeMem(mem) == hb.HB_SYS_NOT_ALLOCATED
        assert hb.last_error().startswith(f"Free a block once: the block {place:#x}")


def test_out_of_memory_says_how_much_was_free(dsp_board_factory: Factory) -> None:
    with dsp_board_factory(ddr_bytes=1 << 20) as board:
        mems = []
        while (status := hb.hbSysAllocMem(mem := hb.hbSysMem(), 100_000)) == 0:
            mems.append(mem)
        assert status == hb.HB_SYS_OUT_OF_MEMORY
        assert 8 <= len(mems) <= 10
        assert mem.virAddr is None
        summary = board.status()["memory"]
        assert "100000" in hb.last_error()
        assert str(summary["free_bytes"]) in hb.last_error()
        assert str(summary["largest_free_bytes"]) in hb.last_error()
        assert hb.hbSysFreeMem(mems.pop()) == 0
        assert hb.hbSysAllocMem(mem, 100_000) == 0
        for held in (*mems, mem):
            assert hb.hbSysFreeMem(held) == 0
        assert hb.hbSysAllocMem(mem, 900_000) == 0
        assert hb.hbSysFreeMem(mem) == 0
        assert hb.hbSysAllocMem(mem, (1 << 32) - 1) == hb.HB_SYS_OUT_OF_MEMORY


class TestViews:
    def test_arrays_are_the_block(self, chip: Chip) -> None:
        mem = chip.mem(48)
        array = mem.array(np.float32, (3, 4))
        array[:] = np.arange(12).reshape(3, 4)
        assert bytes(mem.view()) == np.arange(12, dtype=np.float32).tobytes()
        assert mem.array("<u2").shape == (24,)
        assert mem.array(np.float64, 6).shape == (6,)
        assert mem.array(np.uint8, (0, 3)).shape == (0, 3)
        with pytest.raises(ValueError, match=f"needs 52 bytes, but the block at {mem.phyAddr:#x} has 48"):
            mem.array(np.float32, 13)

    def test_views_stay_usable_when_the_structure_goes(self, chip: Chip) -> None:
        mem = chip.mem(16, b"0123456789abcdef")
        view = mem.view()
        phy_addr = mem.phyAddr
        copy = hb.hbSysMem.from_buffer_copy(bytes(mem))
        assert copy.view() == view
        copy.view()[0] = 0x7A
        assert bytes(view[:2]) == b"z1"
        assert copy.phyAddr == phy_addr

    def test_crops_by_moved_addresses(self, chip: Chip) -> None:
        mem = chip.mem(64, bytes(range(64)))
        output = chip.mem(64)
        crop = hb.hbSysMem(phyAddr=mem.phyAddr + 16, virAddr=(mem.virAddr or 0) + 16, memSize=8)
        assert bytes(crop.view()) == bytes(range(16, 24))
        assert crop.array(np.uint8).tolist() == list(range(16, 24))
        assert chip.outcome(chip.ECHO, crop, output) == (0, "")
        assert bytes(output.view()[:9]) == bytes([*range(16, 24), 0])
        assert hb.hbSysWriteMem(crop, b"ABCDEFGHI", 8) == 0
        assert hb.hbSysWriteMem(crop, b"ABCDEFGHI", 9) == hb.HB_SYS_INVALID_ARGUMENT
        assert bytes(mem.view()[15:25]) == b"\x0fABCDEFGH\x18"
        mem.memSize = 4  # a shorter view of the same block
        assert bytes(mem.view()) == bytes(range(4))
        mem.virAddr = (mem.virAddr or 0) + 1
        assert bytes(mem.view()) == bytes(range(1, 5))
        mem.virAddr -= 1


SOURCES: list[Any] = [
    b"0123456789abcdef",
    bytearray(b"0123456789abcdef"),
    memoryview(b"0123456789abcdef"),
    memoryview(b"0123456789abcdef").cast("I"),
    np.frombuffer(b"0123456789abcdef", np.uint8),
    np.frombuffer(b"0123456789abcdef", np.float64).reshape(2, 1),
    np.frombuffer(b"0123456789abcdef", "i4,u2,S2"),
    (ctypes.c_ubyte * 16)(*b"0123456789abcdef"),
    ctypes.create_string_buffer(b"0123456789abcdef"),
    (ctypes.c_int * 4).from_buffer_copy(b"0123456789abcdef"),
    (hb.hbSysMem * 1).from_buffer_copy(b"0123456789abcdef01234567"),
]


class TestCopies:
    @pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
    def test_write_from(self, chip: Chip, source: Any) -> None:
        mem = chip.mem(16)
        assert hb.hbSysWriteMem(mem, source, 16) == 0, hb.last_error()
        assert bytes(mem.view()) == b"0123456789abcdef"

    @pytest.mark.parametrize(
        "destination",
        [
            bytearray(16),
            memoryview(bytearray(16)),
            np.zeros(16, np.uint8),
            np.zeros((2, 2), np.float32),
            (ctypes.c_ubyte * 16)(),
            (ctypes.c_double * 2)(),
            ctypes.create_string_buffer(16),
        ],
        ids=lambda destination: type(destination).__name__,
    )
    def test_read_into(self, chip: Chip, destination: Any) -> None:
        mem = chip.mem(16, b"0123456789abcdef")
        assert hb.hbSysReadMem(destination, mem, 16) == 0, hb.last_error()
        assert bytes(memoryview(destination).cast("B")) == b"0123456789abcdef"

    def test_addresses_and_pointers_as_in_c(self, chip: Chip) -> None:
        mem, buffer = chip.mem(8), (ctypes.c_ubyte * 8)(*b"pointers")
        for pointer in (
            ctypes.addressof(buffer),
            ctypes.c_void_p(ctypes.addressof(buffer)),
            ctypes.cast(buffer, ctypes.c_char_p),
            ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ubyte)),
            ctypes.pointer(buffer),
            ctypes.byref(buffer),
        ):
            mem.view()[:] = bytes(8)
            assert hb.hbSysWriteMem(mem, pointer, 8) == 0, hb.last_error()
            assert bytes(mem.view()) == b"pointers", pointer
            ctypes.memset(buffer, 0, 8)
            assert hb.hbSysReadMem(pointer, mem, 8) == 0, hb.last_error()
            assert bytes(buffer) == b"pointers", pointer
        assert hb.hbSysWriteMem(mem, ctypes.byref(buffer, 2), 6) == 0
        assert bytes(mem.view()) == b"intersrs"

    def test_less_than_the_block_and_nothing(self, chip: Chip) -> None:
        mem = chip.mem(8, b"\xff" * 8)
        assert hb.hbSysWriteMem(mem, b"abcdefgh", 3) == 0
        assert bytes(mem.view()) == b"abc\xff\xff\xff\xff\xff"
        assert hb.hbSysWriteMem(mem, b"", 0) == 0
        out = bytearray(b"........")
        assert hb.hbSysReadMem(out, mem, 2) == 0
        assert out == b"ab......"
        assert hb.hbSysReadMem(np.zeros((4, 0)), mem, 0) == 0

    @pytest.mark.parametrize("size", [-1, 9, 1 << 33])
    def test_sizes_past_the_block(self, chip: Chip, size: int) -> None:
        mem = chip.mem(8)
        for status in (hb.hbSysWriteMem(mem, bytes(99), size), hb.hbSysReadMem(bytearray(99), mem, size)):
            assert status == hb.HB_SYS_INVALID_ARGUMENT
            assert hb.last_error() == f"{size} bytes do not fit the block at {mem.phyAddr:#x}, which has 8."

    def test_cpu_buffers_that_do_not_serve(self, chip: Chip) -> None:
        mem = chip.mem(8)
        sources: list[Any] = [
            b"1234567",
            np.zeros((4, 4), np.uint8)[:, ::2],
            None,
            0,
            ctypes.c_void_p(),
            "text",
            [1],
            {},
        ]
        for source in sources:
            assert hb.hbSysWriteMem(mem, source, 8) == hb.HB_SYS_INVALID_ARGUMENT, source
        for destination in (bytearray(7), b"readonly", np.zeros((4, 4), np.uint8)[:, ::2], None, 0, "text"):
            assert hb.hbSysReadMem(destination, mem, 8) == hb.HB_SYS_INVALID_ARGUMENT, destination
        frozen = np.zeros(8, np.uint8)
        frozen.flags.writeable = False
        assert hb.hbSysReadMem(frozen, mem, 8) == hb.HB_SYS_INVALID_ARGUMENT
        assert hb.last_error() == "The CPU buffer is read-only; pass a bytearray or an array."

    def test_between_blocks_and_within_one(self, chip: Chip) -> None:
        one, two = chip.mem(8, b"abcdefgh"), chip.mem(8)
        assert hb.hbSysWriteMem(two, one.view(), 8) == 0
        assert bytes(two.view()) == b"abcdefgh"
        assert hb.hbSysReadMem(two.array(np.uint8), one, 4) == 0
        assert hb.hbSysWriteMem(one, one.view()[2:], 6) == 0
        assert bytes(one.view()) == b"cdefghgh"
