"""A pointer that runs out of cached memory with its own image."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from arm_client.memory.block import MARGIN_BYTES
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from hbrt.ddr.layout import PAGE_BYTES
from tests.limits import PATIENCE_S
from tests.nursery import Program, run_program
from tests.waiting import until
from tests.watched import shared_board

IMAGE = Path(__file__).parent.parent / "images" / "ops.py"

STRAY = """
import ctypes, sys
import arm_client as hb
blocks = [hb.hbSysMem() for _ in range(3)]
for block in blocks:
    assert hb.hbSysAllocCachedMem(block, 100) == 0
at = blocks[1].virAddr + int(sys.argv[1])
ctypes.memset(at, 1, 1) if sys.argv[2] == "write" else ctypes.string_at(at, 1)
for block in blocks:
    assert hb.hbSysFreeMem(block) == 0
"""


@pytest.fixture(scope="module")
def paths() -> Iterator[BoardPaths]:
    with shared_board(IMAGE) as paths:
        yield paths


def stray(paths: BoardPaths, at: int, way: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HBRT_BOARD": str(paths.path), **settings}
    return run_program(["-c", STRAY, at, way], PATIENCE_S, Program, env=environment)


def found_on(paths: BoardPaths) -> list[str]:
    return [one["kind"] for one in ask(paths, "status")["findings"]]


CHECKED, STRICT = {"HBRT_CHECK": "coherence"}, {"HBRT_CACHE": "strict"}


@pytest.mark.parametrize(
    ("settings", "at", "way", "where"),
    [
        (CHECKED, 2 * PAGE_BYTES, "read", "8093 past the end of"),
        (CHECKED, PAGE_BYTES + MARGIN_BYTES, "write", "69533 past the end of"),
        (CHECKED, -1, "write", "1 before"),
        (CHECKED, -MARGIN_BYTES, "read", "65536 before"),
        (STRICT, 2 * PAGE_BYTES, "read", "8093 past the end of"),
        (STRICT, -1, "write", "1 before"),
    ],
)
def test_it_ends_with_a_sentence(paths: BoardPaths, settings: dict[str, str], at: int, way: str, where: str) -> None:
    ask(paths, "forget")
    done = stray(paths, at, way, **settings)
    assert done.returncode == -signal.SIGSEGV
    (line,) = (line for line in done.stderr.splitlines() if "stray-access" in line)
    assert line.startswith(f"hbrt: error: stray-access: <string>:8: a stray access touches byte {where} the cached ")
    assert "+0x64, allocated at <string>:6." in line
    until(lambda: len(found_on(paths)) == 2, "the daemon has seen the program's end")
    assert found_on(paths) == ["stray-access", "leak"]


@pytest.mark.parametrize("at", [0, 99])
def test_the_block_itself_is_open(paths: BoardPaths, at: int) -> None:
    done = stray(paths, at, "write", HBRT_CACHE="strict")
    assert (done.returncode, done.stderr) == (0, "")
