"""The check coherence around an op: bytes that were not cleaned are named when the op uses them, and only then."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import Board
from arm_client.errors import HbrtError
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.findings.record import Finding
from tests.threads import in_threads
from tests.watched import findings_of, program_with, shared_board

IMAGE = Path(__file__).parent / "coherence_image.py"
READ, WRITE, POINTED, BY_IDMA, ROWS, SLEEP = range(0x1000, 0x1006)
SIZE = 4 * PAGE_BYTES
HERE = re.escape(Path(__file__).name)


@pytest.fixture(scope="module")
def paths() -> Iterator[BoardPaths]:
    with shared_board(IMAGE) as paths:
        yield paths


class Program:
    """A cached block that was clean, and calls of ops that use parts of it."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.block = board.alloc(SIZE, cached=True)
        self.clean()
        self.other = board.alloc(SIZE)

    def clean(self, first: int = 0, size_bytes: int = SIZE) -> None:
        address = self.block.phy_addr + first
        assert hb.hbSysFlushMem(hb.hbSysMem(phyAddr=address, memSize=size_bytes), hb.HB_SYS_MEM_CACHE_CLEAN) == 0

    def change(self, first: int, size_bytes: int) -> None:
        view = self.block.view()
        view[first : first + size_bytes] = bytes(byte ^ 0xFF for byte in view[first : first + size_bytes])

    def use(self, cmd: int, first: int, size_bytes: int) -> None:
        """Have an op read a part of the block, which is its input; or write one, which is its output."""
        part = struct.pack("<QQ", first, size_bytes)
        self.other.view()[:16] = part
        pair = (self.other, self.block) if cmd == WRITE else (self.block, self.other)
        self.board.call(cmd, *pair)

    def point_at(self, first: int, size_bytes: int) -> None:
        self.other.view()[:16] = struct.pack("<QQ", self.block.phy_addr + first, size_bytes)
        out = self.board.alloc(SIZE)
        self.board.call(POINTED, self.other, out)
        out.free()

    def found(self) -> list[Finding]:
        return findings_of(self.board)


@pytest.fixture
def checks() -> str:
    return "coherence"


@pytest.fixture
def program(paths: BoardPaths, checks: str) -> Iterator[Program]:
    with program_with(paths, checks) as board:
        program = Program(board)
        yield program
        program.block.free()
        program.other.free()


def test_a_read_is_named_with_the_lines_of_both_sides(program: Program) -> None:
    program.change(5000, 100)
    program.use(READ, 0, SIZE)
    (found,) = program.found()
    assert found.kind == "unclean-use"
    start = program.block.phy_addr + 5000
    assert re.search(
        rf"read \(command 0x1000\) on core \d reads its input block at \S+coherence_image\.py:\d+, byte 4096 of the "
        rf"cached block {program.block.phy_addr:#x}\+0x4000\. The CPU has changed {start:#x}\+0x64 there since the "
        rf"flush at \S+{HERE}:\d+.*: the old contents of memory are read\. "
        rf"Call hbSysFlushMem with HB_SYS_MEM_CACHE_CLEAN "
        rf".* The task was submitted at \S+{HERE}:\d+",
        found.text,
    )
    read, submitted, changed = found.places
    assert (read.what, read.core is not None, read.block) == ("read", True, program.block.phy_addr)
    assert [HERE.replace("\\", "") in str(place.site) for place in (submitted, changed)] == [True, True]
    assert (changed.phy_addr, changed.size_bytes, changed.client) == (start, 100, found.client)


def assign(array: Any) -> None:
    array[2:5] = 9


def assign_one(array: Any) -> None:
    array[2] = 9
    array[0] = array[1]  # what memory held before: no change


def add(array: Any) -> None:
    array[2:5] += 1


def into(array: Any) -> None:
    np.add(array, 1, out=array)


def fill(array: Any) -> None:
    array.reshape(-1)[2:9].fill(7)


def by_pointer(array: Any) -> None:
    ctypes.memset(array.__array_interface__["data"][0] + 8, 0xEE, 8)


def in_two_places(array: Any) -> None:
    array[2:5] = 9
    array[2] = 8  # the last one


def in_columns(array: Any) -> None:
    array[2::2] = 9


@pytest.mark.parametrize("write", [assign, assign_one, add, into, fill, in_two_places, by_pointer, in_columns])
def test_the_line_that_wrote_by_an_array_is_named(program: Program, write: Callable[[Any], None]) -> None:
    array = program.block.array(np.float32, 64)
    array[:] = 0
    program.clean()
    write(array)
    program.use(BY_IDMA, 0, SIZE)
    (found,) = program.found()
    *_, last = found.places
    line = write.__code__.co_firstlineno + (2 if write is in_two_places else 1)
    if write in {by_pointer, in_columns}:
        assert (" there since the flush at" in found.text, last.what) == (True, "changed since")
    else:
        assert f" there at {__file__}:{line} (called from " in found.text
        assert (last.what, str(last.site).startswith(f"{__file__}:{line}")) == ("written by the CPU", True)


BESIDE = [(0, PAGE_BYTES), (2 * PAGE_BYTES, 2 * PAGE_BYTES), (5100, 3000)]


@pytest.mark.parametrize(
    ("cmd", "first", "size_bytes"),
    [
        *((cmd, *part) for cmd in (READ, WRITE, BY_IDMA) for part in BESIDE),
        (BY_IDMA, 0, 5000),
        (BY_IDMA, PAGE_BYTES, 5000 - PAGE_BYTES),
    ],
)
def test_nothing_is_said_of_bytes_that_nobody_uses(program: Program, cmd: int, first: int, size_bytes: int) -> None:
    program.change(5000, 100)
    program.use(cmd, first, size_bytes)
    program.use(cmd, first, size_bytes)
    assert program.found() == []


@pytest.mark.parametrize(
    ("cmd", "verb"),
    [(READ, "reads its input"), (BY_IDMA, "reads by iDMA its input"), (WRITE, "writes into its output")],
)
def test_a_part_that_was_cleaned_is_in_order_and_the_rest_is_not(program: Program, cmd: int, verb: str) -> None:
    program.change(0, SIZE)
    program.clean(0, 2 * PAGE_BYTES)
    program.use(cmd, 0, 2 * PAGE_BYTES)
    assert program.found() == []
    program.use(cmd, 2 * PAGE_BYTES - 10, 11)
    (found,) = program.found()
    assert f"{verb} block at " in found.text
    assert ("they overwrite what the op writes there" in found.text) == (cmd == WRITE)
    assert ("the old contents of memory are read" in found.text) == (cmd != WRITE)


def test_rows_between_those_of_a_copy_are_not_read(program: Program) -> None:
    out = program.other
    for row in range(SIZE // 256):
        program.change(256 * row + 64, 192)
    program.board.call(ROWS, program.block, out)
    assert program.found() == []
    program.change(256 * 9 + 63, 1)
    program.board.call(ROWS, program.block, out)
    (found,) = program.found()
    assert f"byte {256 * 9 + 63} of the cached block" in found.text


class TestMemoryThatIsPointedTo:
    def test_is_named_with_the_offset_of_its_address(self, program: Program) -> None:
        program.change(8000, 300)
        program.point_at(0, 9000)
        (found,) = program.found()
        assert "reads the memory whose address is at offset 0 of its input block at " in found.text

    def test_the_next_frame_in_the_same_page_is_not_in_its_reach(self, program: Program) -> None:
        program.change(6000, 6000)  # the program works on the second frame, while the op reads the first
        program.point_at(0, 6000)
        program.point_at(0, 6000)
        assert program.found() == []


@pytest.mark.parametrize("checks", ["all"])
@pytest.mark.parametrize("cmd", [READ, BY_IDMA, WRITE])
def test_beside_all_other_checks(program: Program, cmd: int) -> None:
    program.change(0, SIZE)
    program.use(cmd, 0, SIZE)
    assert [one.kind for one in program.found()] == ["unclean-use"]
    program.clean()
    program.use(cmd, 0, SIZE)
    assert [one.times for one in program.found()] == [1]


@pytest.mark.parametrize("checks", ["all"])
@pytest.mark.parametrize(("first", "kinds"), [(0, ["unclean-use"]), (5000, ["unclean-use", "unwritten-read"])])
def test_beside_bytes_that_nobody_wrote(program: Program, first: int, kinds: list[str]) -> None:
    mem = hb.hbSysMem()
    assert hb.hbSysAllocCachedMem(mem, SIZE) == 0  # unlike the Python names, this leaves what an allocation leaves
    mem.view()[first:] = b"\7" * (SIZE - first)
    program.other.view()[:16] = struct.pack("<QQ", 0, SIZE)
    task, ctrl = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = READ
    out = hb.hbSysMem(phyAddr=program.other.phy_addr, memSize=SIZE)
    assert hb.hbDSPRpc(task, mem, out, ctrl) == 0
    assert hb.hbDSPWaitTaskDone(task, 0) == 0
    hb.hbDSPReleaseTask(task)
    assert sorted(one.kind for one in program.found()) == kinds
    hb.hbSysFreeMem(mem)


@pytest.mark.parametrize("checks", ["coherence,fail-fast"])
@pytest.mark.parametrize("cmd", [READ, BY_IDMA, WRITE])
def test_fail_fast_ends_the_op(program: Program, cmd: int) -> None:
    program.change(0, SIZE)
    with pytest.raises(HbrtError, match="The CPU has changed"):
        program.use(cmd, 0, SIZE)


@pytest.mark.parametrize("checks", ["coherence,fail-fast"])
def test_each_of_many_threads_has_its_own(program: Program) -> None:
    blocks = [program.board.alloc(64, cached=True) for _ in range(8)]
    outs = [program.board.alloc(64) for _ in blocks]
    refused = [0] * len(blocks)
    for block in blocks:
        block.clean()

    def work(number: int) -> None:
        for turn in range(20):
            blocks[number].view()[0] = turn + 1
            if number % 2:
                blocks[number].clean()
            try:
                program.board.call(SLEEP, blocks[number], outs[number])
            except HbrtError as error:
                refused[number] += f"{blocks[number].phy_addr:#x}+0x1 there" in str(error)

    in_threads(work, range(len(blocks)))
    assert refused == [20, 0] * 4
    for block in (*blocks, *outs):
        block.free()
