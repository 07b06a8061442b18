"""Cached memory, strict and coherent: a missing flush gives the stale bytes that a board would give."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

import arm_client as hb
from arm_client.client import private_board
from arm_client.session.session import Session
from hbrt.board.paths import BoardPaths
from hbrt.settings import BadSettingError
from tests.arm_client.conftest import Chip
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.arm_client.conftest import Peer

CLEAN, INVALIDATE = hb.HB_SYS_MEM_CACHE_CLEAN, hb.HB_SYS_MEM_CACHE_INVALIDATE

pytestmark = [
    pytest.mark.dsp_board(image="../arm_client/images/ops.py"),
    pytest.mark.differs("relay", "its caches are those of direct: a relay carries tasks alone"),
]


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by ``usefixtures``, it comes before the board: the mode is read when a process attaches."""
    monkeypatch.setenv("HBRT_CACHE", "strict")


@pytest.fixture(params=["coherent", "strict"])
def cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setenv("HBRT_CACHE", name)
    return name


def double_in_place(chip: Chip, *, is_cleaned: bool, is_invalidated: bool) -> tuple[bytes, bytes]:
    """One program, with or without its flushes: the CPU writes, the DSP adds 1, the CPU reads. (DSP saw, CPU saw)."""
    source, result = chip.mem(8, cached=True), chip.mem(8, cached=True)
    source.view()[:] = b"\x10" * 8
    if is_cleaned:
        assert hb.hbSysFlushMem(source, CLEAN) == 0
    assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
    if is_invalidated:
        assert hb.hbSysFlushMem(result, INVALIDATE) == 0
    witness = chip.mem(8)  # not cached: what the DSP wrote, without a doubt
    assert chip.outcome(chip.ECHO, result, witness) == (0, "")
    return bytes(witness.view()), bytes(result.view())


OLD, NEW = bytes(8), b"\x11" * 8


class TestStrict:
    pytestmark = pytest.mark.usefixtures("strict")

    def test_without_clean_the_dsp_computes_from_old_bytes(self, chip: Chip) -> None:
        assert double_in_place(chip, is_cleaned=False, is_invalidated=True) == (b"\x01" * 8, b"\x01" * 8)

    def test_without_invalidate_the_cpu_reads_old_bytes(self, chip: Chip) -> None:
        assert double_in_place(chip, is_cleaned=True, is_invalidated=False) == (NEW, OLD)

    def test_uncached_memory_needs_no_flush(self, chip: Chip) -> None:
        source, result = chip.mem(8, b"\x10" * 8), chip.mem(8)
        assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
        assert bytes(result.view()) == NEW
        assert hb.hbSysFlushMem(result, INVALIDATE) == 0
        assert bytes(result.view()) == NEW

    def test_a_flush_moves_its_range_alone(self, chip: Chip) -> None:
        mem, seen = chip.mem(8, b"abcdefgh", cached=True), chip.mem(8)
        part = hb.hbSysMem(phyAddr=mem.phyAddr + 2, virAddr=(mem.virAddr or 0) + 2, memSize=3)
        assert hb.hbSysFlushMem(part, CLEAN) == 0
        assert chip.outcome(chip.ECHO, mem, seen) == (0, "")
        assert bytes(seen.view()) == b"\0\0cde\0\0\0"
        part.view()[:] = b"XYZ"
        assert bytes(mem.view()) == b"abXYZfgh"
        short = hb.hbSysMem(phyAddr=mem.phyAddr + 4, memSize=1)
        assert hb.hbSysFlushMem(short, INVALIDATE) == 0
        assert bytes(mem.view()) == b"abXYefgh"

    def test_clean_and_invalidate_are_not_one_another(self, chip: Chip) -> None:
        mem = chip.mem(4, b"1234", cached=True)
        assert hb.hbSysFlushMem(mem, INVALIDATE) == 0
        assert bytes(mem.view()) == bytes(4)  # what the CPU wrote and did not clean is lost, as on a board

    def test_copies_go_through_the_cpu_view(self, chip: Chip) -> None:
        mem, seen, out = chip.mem(4, cached=True), chip.mem(4), bytearray(4)
        assert hb.hbSysWriteMem(mem, b"1234", 4) == 0
        assert chip.outcome(chip.ECHO, mem, seen) == (0, "")
        assert bytes(seen.view()) == bytes(4)
        assert hb.hbSysReadMem(out, mem, 4) == 0
        assert out == b"1234"
        assert hb.hbSysFlushMem(mem, CLEAN) == 0
        assert chip.outcome(chip.ECHO, mem, seen) == (0, "")
        assert bytes(seen.view()) == b"1234"

    @pytest.mark.differs(
        "remote", "bytes that an op or another program writes are seen after INVALIDATE, or a task's end"
    )
    def test_registered_memory_is_cached(self, peer: Peer, registered: Callable[[int, int], hb.hbSysMem]) -> None:
        phy_addr = peer.alloc(8)
        peer("mem.view()[:] = b'original'")
        mem = registered(phy_addr, 8)
        assert bytes(mem.view()) == b"original"
        peer("mem.view()[:] = b'changed!'")
        assert bytes(mem.view()) == b"original"
        assert hb.hbSysFlushMem(mem, INVALIDATE) == 0
        assert bytes(mem.view()) == b"changed!"
        mem.view()[:] = b"answer.."
        assert peer("bytes(mem.view()).decode()") == "changed!"
        assert hb.hbSysFlushMem(mem, CLEAN) == 0
        assert peer("bytes(mem.view()).decode()") == "answer.."

    def test_a_registration_in_two_parts_has_one_image(
        self, peer: Peer, registered: Callable[[int, int], hb.hbSysMem]
    ) -> None:
        phy_addr = peer.alloc(16)
        whole, part = registered(phy_addr, 16), registered(phy_addr + 8, 8)
        part.view()[:] = b"together"
        assert bytes(whole.view()[8:]) == b"together"

    def test_a_freed_block_leaves_no_image_behind(self, chip: Chip) -> None:
        mem = chip.mem(8, b"previous", cached=True)
        assert hb.hbSysFreeMem(mem) == 0
        again = chip.mem(8, cached=True)
        assert bytes(again.view()) == bytes(8)


def findings(chip: Chip) -> list[str]:
    return [found["text"] for found in chip.board.status()["findings"] if found["kind"] == "missing-clean"]


class TestInputThatWasNotCleaned:
    pytestmark = pytest.mark.usefixtures("strict")

    def test_is_told_once_a_block(self, chip: Chip, caplog: pytest.LogCaptureFixture) -> None:
        source, result = chip.mem(16, cached=True), chip.mem(16)
        source.view()[4:8] = b"abcd"
        for _ in range(3):
            assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
        assert bytes(result.view()) == b"\x01" * 16
        (text,) = findings(chip)
        (said,) = caplog.messages
        assert said == f"missing-clean: {text.partition(': ')[2]}"
        assert "conftest.py:" in said  # the program's line that submitted, here a helper's
        assert f": The input block at {source.phyAddr:#x}+0x10 holds 4 bytes that the CPU changed but did" in said

    def test_a_part_that_was_cleaned_is_in_order(self, chip: Chip) -> None:
        source, result = chip.mem(16, b"0123456789abcdef", cached=True), chip.mem(16)
        part = hb.hbSysMem(phyAddr=source.phyAddr, memSize=8)
        assert hb.hbSysFlushMem(part, CLEAN) == 0
        assert chip.outcome(chip.ECHO, part, result) == (0, "")
        assert findings(chip) == []
        assert chip.outcome(chip.ECHO, source, result) == (0, "")
        (text,) = findings(chip)
        assert "holds 8 bytes" in text

    def test_what_the_dsp_wrote_is_no_change_of_the_cpu(self, chip: Chip) -> None:
        source, between, result = chip.mem(8, b"12345678"), chip.mem(8, cached=True), chip.mem(8)
        assert chip.outcome(chip.ADD_ONE, source, between) == (0, "")
        assert chip.outcome(chip.ADD_ONE, between, result) == (0, "")  # the CPU has not looked at it: no flush is due
        assert bytes(result.view()) == b"3456789:"
        assert hb.hbSysFlushMem(between, INVALIDATE) == 0
        assert chip.outcome(chip.ADD_ONE, between, result) == (0, "")
        assert findings(chip) == []

    def test_registered_memory_is_looked_at_too(
        self, chip: Chip, peer: Peer, registered: Callable[[int, int], hb.hbSysMem]
    ) -> None:
        mem, result = registered(peer.alloc(8), 8), chip.mem(8)
        mem.view()[:] = b"unheard!"
        assert chip.outcome(chip.ECHO, mem, result) == (0, "")
        assert len(findings(chip)) == 1

    def test_memory_that_is_not_cached_needs_none(self, chip: Chip) -> None:
        source, result = chip.mem(8, b"12345678"), chip.mem(8, b"87654321")
        assert chip.outcome(chip.ADD_ONE, source, result) == (0, "")
        assert findings(chip) == []


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("beyond", [100, 4097], ids=["in the last page", "in the guard"])
def test_an_overrun_of_cached_memory_is_found_when_it_is_freed(beyond: int) -> None:
    with private_board() as board:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocCachedMem(mem, 100) == 0
        ctypes.memset((mem.virAddr or 0) + beyond, 0xFF, 2)
        first = mem.phyAddr + beyond
        assert hb.hbSysFreeMem(mem) == 0
        (found,) = board.status()["findings"]
        assert found["kind"] == "overrun"
        assert f"the first bad byte is at {first:#x}" in found["text"]


OVERRUNS = """
import ctypes, arm_client as hb
mem = hb.hbSysMem()
assert hb.hbSysAllocCachedMem(mem, 100) == 0
ctypes.memset(mem.virAddr, 0xFF, 102)
"""


@pytest.mark.usefixtures("strict")
@pytest.mark.differs("remote", "what is written last by a program that ends without freeing goes nowhere")
def test_an_overrun_of_cached_memory_is_found_when_its_process_ends() -> None:
    with private_board() as board:
        environment = {**os.environ, "HBRT_BOARD": str(board.path)}
        subprocess.run([sys.executable, "-c", OVERRUNS], env=environment, timeout=PATIENCE_S, check=True)
        Chip.until(lambda: len(board.status()["findings"]) > 1, "the end of its lease")
        assert {found["kind"] for found in board.status()["findings"]} == {"overrun", "leak"}


def test_coherent_mode_has_nothing_to_find(chip: Chip) -> None:
    assert double_in_place(chip, is_cleaned=False, is_invalidated=False) == (NEW, NEW)
    assert findings(chip) == []


def test_a_program_with_its_flushes_is_right_in_both_modes(cache: str, chip: Chip) -> None:
    assert double_in_place(chip, is_cleaned=True, is_invalidated=True) == (NEW, NEW)


def test_arrays_of_python_habits(cache: str, chip: Chip) -> None:
    board = chip.board
    source = board.from_array(np.full(8, 0x10, np.uint8), cached=True)  # from_array cleans
    result = board.empty_like(source, cached=True)
    board.call(chip.ADD_ONE, source, result)
    assert result.tolist() == [0 if cache == "strict" else 0x11] * 8
    assert result.board_buffer is not None
    result.board_buffer.invalidate()
    assert result.tolist() == [0x11] * 8
    source[:] = 0x20
    assert source.board_buffer is not None
    source.board_buffer.clean()
    board.call(chip.ADD_ONE, source, result)
    result.board_buffer.invalidate()
    assert result.tolist() == [0x21] * 8


@pytest.mark.differs("remote", "looks into the board's directory")
def test_an_unknown_mode_is_refused_where_it_is_read(monkeypatch: pytest.MonkeyPatch, chip: Chip) -> None:
    monkeypatch.setenv("HBRT_CACHE", "strickt")
    with pytest.raises(BadSettingError, match="Invalid HBRT_CACHE 'strickt': must be coherent, strict"):
        Session(BoardPaths(chip.board.path))
    chip.until(lambda: len(chip.programs()) == 1, "the end of the attachment that was given up")
