"""A program that does not look at the status of an allocation, and uses the block's address."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S
from tests.nursery import run_program

PROGRAM = """
import ctypes
import arm_client as hb
mem = hb.hbSysMem()
{call}
ctypes.{use}
"""


def run(call: str, use: str, **environment: str) -> tuple[int, str]:
    """Exit status, and what was printed on standard error."""
    done = run_program(["-c", PROGRAM.format(call=call, use=use)], PATIENCE_S, env={**os.environ, **environment})
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("hb.hbSysAllocMem(mem, 1 << 31)", "hbSysAllocMem at <string>:5 was refused: "),
        ("hb.hbSysAllocCachedMem(mem, 0)", "hbSysAllocCachedMem at <string>:5 was refused: "),
        ("hb.hbSysRegisterMem(mem)", "hbSysRegisterMem at <string>:5 was refused: "),
    ],
)
def test_use_of_what_was_not_filled_names_the_refused_call(tmp_path: Path, call: str, reason: str) -> None:
    status, said = run(call, "memset(mem.virAddr or 8, 1, 4)", HBRT_HOME=str(tmp_path), HBRT_DDR="64M")
    assert status == -signal.SIGSEGV, said
    (sentence,) = (line for line in said.splitlines() if line.startswith("hbrt: error: null-pointer: "))
    assert "<string>:6: access to address 0x8, a NULL pointer. " + reason in sentence


def test_a_board_that_does_not_start_says_so_once_and_at_the_fault(tmp_path: Path) -> None:
    image = tmp_path / "image.py"
    image.write_text("raise RuntimeError('no such sensor')\n")
    call = "hb.hbSysAllocMem(mem, 8); hb.hbSysAllocMem(mem, 8)"
    status, said = run(call, "string_at(mem.virAddr or 0)", HBRT_HOME=str(tmp_path), HBRT_IMAGE=str(image))
    assert status == -signal.SIGSEGV, said
    assert said.count("did not start") == 1
    assert "was refused: RuntimeError: no such sensor" in said


@pytest.mark.parametrize("call", ["hb.hbSysAllocMem(mem, 8)", "hb.hbSysFreeMem(mem)"])
def test_other_null_pointers_are_nobodys(tmp_path: Path, call: str) -> None:
    status, said = run(call, "string_at(0)", HBRT_HOME=str(tmp_path))
    assert status == -signal.SIGSEGV
    assert "null-pointer" not in said
