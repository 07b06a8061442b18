"""A block that was freed is out of reach, and whoever uses it still is told which block it was."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import arm_client as hb
from arm_client import Board
from arm_client.memory import freed
from tests.limits import PATIENCE_S
from tests.nursery import run_program

ALLOCATED, FREED, USED = 3, 8, 10
MAX_BLOCKS = 200
PROGRAM = """import ctypes, numpy, os, sys, arm_client as hb
mem, keep = hb.hbSysMem(), hb.hbSysMem()
assert hb.{alloc}(mem, 100) == 0
assert hb.hbSysAllocMem(keep, 4096) == 0
numbers = numpy.ctypeslib.as_array((ctypes.c_uint8 * 100).from_address(mem.virAddr))
address = mem.virAddr
{before}
assert hb.hbSysFreeMem(mem) == 0
assert hb.hbSysAllocMem(hb.hbSysMem(), 100) == 0
{use}
"""
USES = {
    "memmove": "ctypes.memmove(mem.virAddr + 40, bytes(1), 1)",
    "reading": "ctypes.string_at(mem.virAddr + 40, 1)",
    "a view that no board knows": "numbers[40] = 1",
    "a copy of its bytes": "numpy.empty(1, 'u1')[:] = numbers[40:41]",
    "another thread": "import threading; t = threading.Thread(target=lambda: numbers.fill(1)); t.start(); t.join()",
}


def run(use: str, alloc: str = "hbSysAllocMem", before: str = "", **environment: str) -> tuple[int, str, str]:
    """Exit status, what was printed on stderr, and the file's name in messages."""
    program = PROGRAM.format(alloc=alloc, use=use, before=before)
    done = run_program(["-c", program], PATIENCE_S, env={**os.environ, **environment})
    return done.returncode, done.stderr, "<string>"


@pytest.mark.parametrize(
    ("use", "alloc"), [*((use, "hbSysAllocMem") for use in USES), ("memmove", "hbSysAllocCachedMem")]
)
def test_fault_says_which_block_it_was(tmp_path: Path, use: str, alloc: str) -> None:
    status, said, name = run(USES[use], alloc, HBRT_CACHE="strict", HBRT_HOME=str(tmp_path))
    assert status == -signal.SIGSEGV, said
    (sentence,) = (line for line in said.splitlines() if line.startswith("hbrt: error: use-after-free: "))
    assert f": {name}:{USED}: byte {0 if 'thread' in use else 40} of the block 0x8" in sentence
    assert f"allocated at {name}:{ALLOCATED}, was freed at {name}:{FREED}. Free a block after its" in sentence


def test_a_handler_that_was_there_before_gets_the_fault_too(tmp_path: Path) -> None:
    status, said, _ = run(USES["memmove"], before="import faulthandler; faulthandler.enable()", HBRT_HOME=str(tmp_path))
    assert status == -signal.SIGSEGV
    # Its line comes in pieces, between which the board may say its own.
    assert said.index("hbrt: error: use-after-free") < said.index("Fatal Python error")


@pytest.mark.parametrize("use", ["ctypes.string_at(8)", "os.kill(os.getpid(), 11)", "os.kill(os.getpid(), 7)"])
def test_other_faults_are_as_they_were(tmp_path: Path, use: str) -> None:
    status, said, _ = run(use, HBRT_HOME=str(tmp_path))
    assert status in {-signal.SIGSEGV, -signal.SIGBUS}
    assert "use-after-free" not in said


def test_a_task_on_freed_memory_is_told_who_freed_it_and_where(dsp_board: Board) -> None:
    mem, live = hb.hbSysMem(), hb.hbSysMem()
    assert hb.hbSysAllocMem(mem, 100) == hb.hbSysAllocMem(live, 100) == 0
    assert hb.hbSysFreeMem(mem) == 0
    client = dsp_board.session.link.client_id
    where = f"the block {mem.phyAddr:#x}+0x64 of client {client}, freed at "
    handle, control = hb.hbDSPTask_t(), hb.hbDSPRpcCtrlParam()
    control.rpcCmd = hb.HB_DSP_RPC_CMD_NN_SOFTMAX
    assert hb.hbDSPRpc(handle, mem, live, control) == hb.HB_DSP_INVALID_ADDRESS
    assert where in hb.last_error()
    assert "test_freed.py:" in hb.last_error()
    assert hb.hbSysRegisterMem(mem) == hb.HB_SYS_REGISTER_MEM_FAILED
    assert where in hb.last_error()
    assert hb.hbSysFreeMem(live) == 0


def test_many_freed_blocks_cost_the_kernel_few_mappings_and_memory_goes_on(
    dsp_board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freed, "MAX_BLOCKS", MAX_BLOCKS)

    def mappings() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    before = mappings()
    mems = [hb.hbSysMem() for _ in range(2 * MAX_BLOCKS)]
    for mem in mems:
        assert hb.hbSysAllocMem(mem, 100) == 0
    for mem in mems[::2]:  # a live block between any two that were freed
        assert hb.hbSysFreeMem(mem) == 0
    assert mappings() < before + 3 * MAX_BLOCKS
    for mem in mems[1::2]:
        mem.view()[:] = b"x" * 100
        assert hb.hbSysFreeMem(mem) == 0
    del dsp_board
