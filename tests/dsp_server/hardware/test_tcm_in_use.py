"""Which TCM is in use: by arithmetic, and as a board says while an op in Python or in C has tiles."""

from __future__ import annotations

import shutil
import time

import pytest
from hypothesis import given, strategies as st

from dsp_server.hardware.tcm import BANK_RAW_BYTES, Tile, as_text, bits_in_use
from hbrt.ddr.layout import TCM_UNIT_BYTES
from tests.limits import PATIENCE_S
from tests.shared import Shell

PYTHON = """
import time
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def hold(input, output, tm):
    with tm.tile(5000, 1):
        while not input[0]:
            time.sleep(0.01)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, hold)
    hb_dsp_start()
"""
C = """
#include "hb_dsp.h"
#include "hb_dsp_tm.h"
#include <unistd.h>

static int hold(void *input, void *output, void *tm) {
  void *tile = xvAllocateBuffer(tm, 5000, XV_MEM_BANK_COLOR_1, 64);
  while (!*(volatile char *)input) usleep(10000);
  xvFreeBuffer(tm, tile);
  return 0;
}

int main(void) {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, hold, 0);
  return hb_dsp_start();
}
"""
PROGRAM = """
import sys
import time
from pathlib import Path
from arm_client import connect

with connect() as board:
    block = board.alloc(64)
    task = board.submit(0x1000, block, None)
    while not Path("go").exists():
        time.sleep(0.01)
    block.view()[0] = 1
    task.result()
"""


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, BANK_RAW_BYTES - 1), st.integers(1, BANK_RAW_BYTES))))
def test_a_unit_is_in_use_when_one_of_its_bytes_is(tiles: list[tuple[int, int, int]]) -> None:
    placed = [(bank, start, min(size, BANK_RAW_BYTES - start)) for bank, start, size in tiles]
    for bank in (0, 1):
        used = {
            unit
            for tile_bank, start, size in placed
            if tile_bank == bank
            for unit in range(start // TCM_UNIT_BYTES, (start + size - 1) // TCM_UNIT_BYTES + 1)
        }
        found = bits_in_use([Tile(one, start, size, 64, "") for one, start, size in placed], bank)
        assert {unit for unit in range(64) if found >> unit & 1} == used
        assert found < 1 << 64


def test_a_bank_as_text_has_its_usable_units() -> None:
    assert as_text(0b101) == "*.*" + "." * 49


@pytest.mark.parametrize("way", ["python", "c"])
def test_a_board_shows_the_tiles_of_an_op_that_runs(shell: Shell, way: str) -> None:
    image = "image.py"
    (shell.cwd / image).write_text(PYTHON)
    if way == "c":
        if shutil.which("cc") is None:
            pytest.skip("no C compiler is here")
        (shell.cwd / "image.c").write_text(C)
        shell.good("cc", "--dsp", "image.c", "-o", "image.so")
        image = "image.so"
    shell.good("start", "--cores", 1, "--image", image)
    assert shell.status()["cores"][0]["tcm"] == ["." * 52] * 2
    (shell.cwd / "program.py").write_text(PROGRAM)
    program = shell.start("program.py")
    give_up = time.monotonic() + PATIENCE_S
    while shell.status()["cores"][0]["tcm"] != ["." * 52, "***" + "." * 49]:
        assert time.monotonic() < give_up
    (shell.cwd / "go").touch()
    assert program.wait(PATIENCE_S) == 0
    while shell.status()["cores"][0]["tcm"] != ["." * 52] * 2:
        assert time.monotonic() < give_up
