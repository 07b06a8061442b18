"""The check memory around an op. Each mistake is next to a correct call that uses memory alike."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import arm_client as hb
from arm_client import nn
from arm_client.client import Board
from dsp_server.detectors.memory import unwritten_pages
from hbrt.board.paths import BoardPaths
from hbrt.ddr.fill import UNWRITTEN_PAGE, unwritten
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.findings.record import Finding
from tests.watched import findings_of, program_with, shared_board

IMAGE = Path(__file__).parent / "memory_image.py"
COPY, SCRIBBLE, OVER, UNDER, FETCH, STORE, BEHIND, IN_PLACE, DMA = range(0x1000, 0x1009)


@pytest.fixture(scope="module")
def paths() -> Iterator[BoardPaths]:
    with shared_board(IMAGE) as paths:
        yield paths


class Program:
    """Blocks and calls in the C names."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.blocks: list[hb.hbSysMem] = []

    def mem(self, size_bytes: int, content: bytes = b"") -> hb.hbSysMem:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, size_bytes) == 0
        mem.view()[: len(content)] = content
        self.blocks.append(mem)
        return mem

    def call(self, cmd: int, input: hb.hbSysMem, output: hb.hbSysMem) -> int:
        ctrl, task = hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
        hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
        ctrl.rpcCmd = cmd
        assert hb.hbDSPRpc(task, input, output, ctrl) == 0
        status = hb.hbDSPWaitTaskDone(task, 0)
        assert hb.hbDSPReleaseTask(task) == 0
        return status

    def found(self) -> list[Finding]:
        return findings_of(self.board)

    def named(self, kind: str) -> Finding:
        """The one finding, which has the op's line and the one that submitted the task."""
        (found,) = self.found()
        assert found.kind == kind
        sites = {place.what: place.site for place in found.places}
        assert f"{Path(__file__).name}:" in str(sites["submitted"])
        return found


@pytest.fixture
def program(paths: BoardPaths) -> Iterator[Program]:
    with program_with(paths, "memory") as board:
        program = Program(board)
        yield program
        for block in program.blocks:
            hb.hbSysFreeMem(block)


class TestRules:
    def test_pages_that_nobody_wrote(self) -> None:
        raw = bytearray(unwritten(3 * PAGE_BYTES + 100))
        assert unwritten_pages(memoryview(raw)) == [True] * 4
        raw[PAGE_BYTES + 9] ^= 1
        raw[-1] ^= 1
        assert unwritten_pages(memoryview(raw)) == [True, False, True, False]

    def test_the_filling_differs_in_each_part(self) -> None:
        words = np.frombuffer(UNWRITTEN_PAGE, np.uint64)
        assert len(UNWRITTEN_PAGE) == PAGE_BYTES
        assert len(set(words.tolist())) == len(words)
        assert UNWRITTEN_PAGE[4:8] == b"\xcd" * 4

    def test_bytes_too_few_to_tell(self) -> None:
        assert unwritten_pages(memoryview(bytearray(unwritten(7)))) == [False]


def test_reads_of_what_nobody_wrote(program: Program) -> None:
    source, out = program.mem(64, b"a" * 64), program.mem(64)
    assert program.call(COPY, source, out) == 0
    assert program.found() == []
    source = program.mem(64)
    assert program.call(COPY, source, out) == 0
    found = program.named("unwritten-read")
    assert f"reads at {IMAGE}:29 byte 0 of the block {source.phyAddr:#x}+0x40, its input block" in found.text
    assert found.places[0].op == "copy"


@pytest.mark.parametrize("check", ["memory", "memory,dma"])
def test_a_copy_of_what_nobody_wrote_is_named_by_its_own_line(paths: BoardPaths, check: str) -> None:
    lines = IMAGE.read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith("# copies"))
    with program_with(paths, check) as board:
        program = Program(board)
        source, out = program.mem(64), program.mem(64)
        assert program.call(DMA, source, out) == 0
        found = program.named("unwritten-read")
        assert found.places[0].site == f"{IMAGE}:{line}"
        for block in program.blocks:
            assert hb.hbSysFreeMem(block) == 0


def test_second_half_was_never_written(program: Program) -> None:
    source, out = program.mem(4 * PAGE_BYTES, b"a" * 2 * PAGE_BYTES), program.mem(4 * PAGE_BYTES)
    part = hb.hbSysMem(phyAddr=source.phyAddr, memSize=2 * PAGE_BYTES)
    some = hb.hbSysMem(phyAddr=out.phyAddr, memSize=2 * PAGE_BYTES)
    assert program.call(COPY, part, some) == 0
    assert program.call(COPY, source, some) == 0  # of a larger input the op reads a part
    assert program.found() == []
    assert program.call(COPY, source, out) == 0
    found = program.named("unwritten-read")
    assert f"{source.phyAddr + 2 * PAGE_BYTES:#x}+{2 * PAGE_BYTES:#x} since it was allocated" in found.text


def test_mapped_memory_that_nobody_wrote(program: Program) -> None:
    target, out = program.mem(64), program.mem(64)
    params = program.mem(16, struct.pack("<QQ", target.phyAddr, 64))
    assert program.call(STORE, params, out) == 0  # writing is what it is for
    assert program.call(FETCH, params, out) == 0
    assert program.found() == []
    source = program.mem(64)
    params = program.mem(16, struct.pack("<QQ", source.phyAddr, 64))
    assert program.call(FETCH, params, out) == 0
    assert "memory that it mapped" in program.named("unwritten-read").text


def test_writes_into_the_input(program: Program) -> None:
    block, out = program.mem(64, b"a" * 64), program.mem(64)
    assert program.call(IN_PLACE, block, block) == 0
    params = program.mem(4096, struct.pack("<QQ", 0, 0))
    params.view()[:16] = struct.pack("<QQ", params.phyAddr + 512, 64)
    assert program.call(STORE, params, out) == 0  # a structure and its target in one block
    assert program.found() == []
    assert program.call(SCRIBBLE, block, out) == 0
    found = program.named("input-written")
    assert f"writes at {IMAGE}:35 into its input: byte 5 of the block {block.phyAddr:#x}+0x40" in found.text
    assert block.view()[5] == 1  # as on a board


@pytest.mark.parametrize(("cmd", "over"), [(OVER, PAGE_BYTES), (UNDER, 1)])
def test_writes_past_the_output(program: Program, cmd: int, over: int) -> None:
    source, out = program.mem(64, b"a" * 64), program.mem(4096 if cmd == OVER else 100)
    assert program.call(cmd, source, out) == 0
    found = program.found()[-1]
    assert found.kind == "overrun"
    assert f"wrote past the end of the block {out.phyAddr:#x}+{out.memSize:#x}" in found.text
    assert f"at {out.phyAddr + out.memSize:#x}, 1 byte past the end" in found.text


@pytest.mark.parametrize("size_bytes", [4096, 100])
def test_an_overrun_of_an_op_is_one_finding(program: Program, size_bytes: int) -> None:
    source, times = program.mem(64, b"a" * 64), 3
    for _ in range(times):  # the third is counted by the core, and not told
        out = program.mem(size_bytes)
        program.blocks.remove(out)
        assert program.call(OVER, source, out) == 0
        assert hb.hbSysFreeMem(out) == 0
    found = program.named("overrun")
    assert "1 byte past the end" in found.text
    assert {place.what for place in found.places} == {"written", "submitted", "allocated"}


def test_reads_past_the_input(program: Program) -> None:
    source, out = program.mem(64, b"a" * 64), program.mem(64)
    assert program.call(BEHIND, source, out) == 0
    assert "past the end of the block" in program.named("out-of-block").text


@pytest.mark.parametrize("case", ["freed", "beyond", "virtual"])
def test_maps_what_it_may_not_use(program: Program, case: str) -> None:
    source, out = program.mem(64, b"a" * 64), program.mem(128)
    address, size_bytes = source.phyAddr, 64
    params = program.mem(16, struct.pack("<QQ", address, size_bytes))
    assert program.call(FETCH, params, out) == 0
    assert program.found() == []
    if case == "freed":
        program.blocks.remove(source)
        assert hb.hbSysFreeMem(source) == 0
    elif case == "beyond":
        params.view()[:] = struct.pack("<QQ", address, 65)
    else:
        params.view()[:] = struct.pack("<QQ", (source.virAddr or 0) + (1 << 46), size_bytes)
    assert program.call(FETCH, params, out) != 0
    expected = {"freed": "use-after-free", "beyond": "out-of-block", "virtual": "virtual-address"}
    found = program.named(expected[case])
    assert f"{IMAGE}:64" in found.text
    if case == "freed":
        here = re.escape(__file__)
        assert re.search(rf"allocated at {here}:\d+ \(called from \S+\) and freed at {here}:\d+", found.text)
        assert {place.what for place in found.places} == {"mapped", "freed", "allocated", "submitted"}


def test_fail_fast_ends_the_op(paths: BoardPaths) -> None:
    with program_with(paths, "memory,fail-fast") as board:
        program = Program(board)
        block, out = program.mem(64, b"a" * 64), program.mem(64)
        assert program.call(SCRIBBLE, block, out) != 0
        assert "into its input" in hb.last_error()
        for one in program.blocks:
            assert hb.hbSysFreeMem(one) == 0


def test_packaged_ops_are_clean(program: Program) -> None:
    rng = np.random.default_rng(1)
    for shape in ((4, 8), (64, 1000)):
        x = program.board.from_array(rng.standard_normal(shape).astype(np.float32))
        y = nn.softmax(program.board, x)
        assert np.allclose(np.sum(y, axis=-1), 1, atol=1e-4)
        del x, y
    assert program.found() == []
