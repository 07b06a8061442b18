"""A program with any check reaches its own and registered blocks only."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import arm_client as hb
from arm_client.client import Board
from hbrt.board.paths import BoardPaths
from hbrt.ddr import private_pages
from tests.arm_client.conftest import Chip
from tests.limits import PATIENCE_S
from tests.nursery import Program, run_program
from tests.watched import program_with, shared_board

pytestmark = pytest.mark.dsp_board(image="../images/ops.py")

OPS = Path(__file__).parents[1] / "images" / "ops.py"
STRAY = """
import ctypes, sys
import arm_client as hb
from arm_client.session.session import default
mine = hb.hbSysMem()
assert hb.hbSysAllocMem(mine, 64) == 0
phy_addr, does_register = int(sys.argv[1]), int(sys.argv[2])
ddr = default().link.ddr
address = ddr.address + ddr.offset_of(phy_addr)
if does_register:
    theirs = hb.hbSysMem(phyAddr=phy_addr, memSize=64)
    assert hb.hbSysRegisterMem(theirs) == 0
ctypes.memset(address + 5, 7, 1)
if does_register:
    assert hb.hbSysUnregisterMem(theirs) == 0
    if does_register == 2:
        ctypes.memset(address + 5, 8, 1)
assert hb.hbSysFreeMem(mine) == 0
"""


def stray(board: Board, phy_addr: int, does_register: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HBRT_BOARD": str(board.path), "HBRT_AUTOSTART": "0", **settings}
    return run_program(["-c", STRAY, phy_addr, does_register], PATIENCE_S, Program, env=environment)


@pytest.fixture(scope="module")
def paths() -> Iterator[BoardPaths]:
    with shared_board(OPS) as paths:
        yield paths


@pytest.fixture
def board(paths: BoardPaths) -> Iterator[Board]:
    """One on which findings fail no test."""
    with program_with(paths, "tell") as board:
        yield board


def test_stray_pointer_into_the_block_of_another_program(board: Board) -> None:
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 64) == 0
    mem.view()[:] = bytes(64)
    assert stray(board, mem.phyAddr, 1, HBRT_CHECK="dma").returncode == 0
    done = stray(board, mem.phyAddr, 0, HBRT_CHECK="dma")
    assert done.returncode == -signal.SIGSEGV
    assert bytes(mem.view()[:8]) == b"\0" * 5 + b"\7" + b"\0" * 2  # what the program that registered it wrote
    assert f"touches byte 5 of the block {mem.phyAddr:#x}+0x40 of process {os.getpid()}" in done.stderr
    assert f"allocated at {__file__}:" in done.stderr
    assert "hbrt: error: stray-access: <string>:13: a stray access touches" in done.stderr
    (found,) = (
        one for one in board.status()["findings"] if f"touches byte 5 of the block {mem.phyAddr:#x}" in one["text"]
    )
    assert found["kind"] == "stray-access"
    assert hb.hbSysFreeMem(mem) == 0


def test_without_isolation_it_overwrites(chip: Chip) -> None:
    mem = chip.mem(64)
    assert stray(chip.board, mem.phyAddr).returncode == 0
    assert mem.view()[5] == 7


def test_block_is_out_of_reach_once_it_is_not_registered_any_more(board: Board) -> None:
    mem = hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 64) == 0
    done = stray(board, mem.phyAddr, 2, HBRT_CHECK="dma")
    assert done.returncode == -signal.SIGSEGV
    assert mem.view()[5] == 7
    assert hb.hbSysFreeMem(mem) == 0


class TestWhatGoesOn:
    @pytest.fixture(autouse=True)
    def isolated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HBRT_CHECK", "dma")

    def test_blocks_of_all_kinds(self, chip: Chip) -> None:
        assert chip.board.session.link.ddr.private.is_closed
        for cached in (False, True):
            for size_bytes in (1, 4096, 100_000):
                mem, out = chip.mem(size_bytes, b"x", cached=cached), chip.mem(size_bytes)
                assert chip.outcome(chip.ECHO, mem, out)[0] == 0
                assert bytes(out.view()[:1]) == b"x"

    def test_array_outlives_its_block(self, chip: Chip) -> None:
        mem = hb.hbSysMem()
        assert hb.hbSysAllocMem(mem, 4096) == 0
        view = mem.view()
        view[:3] = b"abc"
        assert hb.hbSysFreeMem(mem) == 0
        again = [chip.mem(4096, b"new") for _ in range(4)]
        assert bytes(view[:3]) == b"abc"
        del view
        assert all(bytes(one.view()[:3]) == b"new" for one in again)

    @pytest.mark.usefixtures("no_rest")
    def test_addresses_that_come_again(self, chip: Chip) -> None:
        for _ in range(3):
            mem = hb.hbSysMem()
            assert hb.hbSysAllocMem(mem, 64) == 0
            mem.view()[:] = b"a" * 64
            assert hb.hbSysFreeMem(mem) == 0

    def test_child_of_a_fork_reads_what_its_parent_has(self, chip: Chip) -> None:
        mem = chip.mem(64, b"parent")
        view = mem.view()
        pid = os.fork()
        if not pid:
            os._exit(0 if bytes(view[:6]) == b"parent" else 1)
        assert os.waitpid(pid, 0)[1] == 0

    def test_no_mapping_left(
        self, chip: Chip, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        private = chip.board.session.link.ddr.private
        with monkeypatch.context() as patched:
            patched.setattr(private_pages, "MAX_OPEN", 0)
            mem = chip.mem(64, b"there")
        assert bytes(mem.view()[:5]) == b"there"
        assert not private.is_closed
        (said,) = caplog.messages
        assert "vm.max_map_count" in said
        assert chip.mem(64, b"more").view()[0] == ord("m")
