"""Images in C over time: a new file, an urgent task inside an op, an op in the caller's own process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from arm_client.client import connect, private_board
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from tests.limits import PATIENCE_S

Build = Callable[..., Path]
SPIN, RELEASE = 0x1000, 0x1001
URGENT = """
#include "hb_dsp.h"
static int spin(void *input, void *output, void *tm) {
  (void)output;
  char *mine = xvAllocateBuffer(tm, 64, XV_MEM_BANK_COLOR_0, 64);
  *mine = 1;
  while (!*(volatile int *)input) hb_dsp_core_id();
  int is_kept = *mine == 1;
  return xvFreeBuffer(tm, mine) || !is_kept;
}
static int release(void *input, void *output, void *tm) {
  (void)input;
  char *tile = xvAllocateBuffer(tm, HB_DSP_DRAM0_POOL_SIZE, XV_MEM_BANK_COLOR_0, 64);
  PRT_IF_COND_RETURN(tile == XVTM_ERROR, HB_DSP_OUT_OF_TCM)
  *tile = 2;
  *(volatile int *)output = 1;
  return xvFreeBuffer(tm, tile);
}
int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, spin, 0);
  hb_dsp_register_fn(0x1001, release, 0);
  hb_dsp_start();
}
"""
ANSWER = """
#include "hb_dsp.h"
static int answer(void *input, void *output, void *tm) { (void)input, (void)tm; *(int *)output = ANSWER; return 0; }
int main() { hb_dsp_env_init(); hb_dsp_register_fn(0x1000, answer, 0); return hb_dsp_start(); }
"""


def test_urgent_task_interrupts_an_op_in_c_at_a_call_and_has_tcm_of_its_own(build: Build) -> None:
    with private_board(build(URGENT), cores=1) as board:
        flag = board.from_array(np.zeros(16, np.int32))
        spinning = board.submit(SPIN, flag)
        while board.status()["tasks"]["running"] == 0:
            time.sleep(0.01)
        board.call(RELEASE, None, flag, priority=255, timeout=PATIENCE_S)
        spinning.result(PATIENCE_S)


def test_reload_takes_a_library_that_was_built_anew(build: Build, board_home: Path) -> None:
    image = board_home / "vdsp0.so"
    image.write_bytes(build(ANSWER, "-DANSWER=1").read_bytes())
    launch(DaemonConfig(str(board_home / "board"), str(image), cores=1, is_reloading=True))
    paths = BoardPaths(board_home / "board")
    try:
        with connect(str(paths.path)) as board:

            def answer() -> int:
                output = board.empty(1, np.int32)
                board.call(0x1000, None, output)
                return int(np.asarray(output)[0])

            assert answer() == 1
            image.write_bytes(b"\x7fELF, half of it")
            new = board_home / "new.so"
            new.write_bytes(build(ANSWER, "-DANSWER=2").read_bytes())
            new.replace(image)
            deadline = time.monotonic() + PATIENCE_S
            while answer() != 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        ask(paths, "stop", PATIENCE_S)


def test_op_in_c_runs_in_the_callers_process(build: Build, tmp_path: Path, board_home: Path) -> None:
    program = tmp_path / "inline.py"
    program.write_text(
        "import os\nimport numpy as np\nfrom arm_client import connect\n"
        "with connect() as board:\n"
        "    output = board.empty(1, np.int32)\n"
        "    board.call(0x1000, None, output)\n"
        "    print(np.asarray(output)[0], 'libhbrt_dsp.so' in open('/proc/self/maps').read())\n"
    )
    image = str(build(ANSWER, "-DANSWER=7"))
    environment = {**os.environ, "HBRT_INLINE": "1", "HBRT_IMAGE": image, "HBRT_HOME": str(board_home)}
    ran = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (ran.stdout, ran.stderr) == ("7 True\n", "")
