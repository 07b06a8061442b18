"""Images in C over time: a new file, an urgent task inside an op, an op in the caller's own process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arm_client.client import connect, private_board
from arm_client.errors import HbrtError
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths
from hbrt.control.ask import ask
from tests.limits import PATIENCE_S
from tests.waiting import until

Build = Callable[..., Path]
SPIN, RELEASE = 0x1000, 0x1001
URGENT = """
#include <string.h>
#include <xtensa/xos.h>
#include "hb_dsp.h"
#include "hbrt/cycles.h"
static uint32_t lap(void) { /* cycles of the work since the last one */
  static uint32_t before;
  const uint32_t now = XT_RSR_CCOUNT(), spent = now - before;
  before = now;
  return spent;
}
static int spin(void *input, void *output, void *tm) {
  const int32_t fails_first = ((int32_t *)input)[1];
  int32_t handle, is_even = 1;
  char *mine = xvAllocateBuffer(tm, 64, XV_MEM_BANK_COLOR_0, 64), text[512];
  memset(mine, 1, 64);
  IDMA_COPY(handle, mine, output, 64)
  if (fails_first) xvAllocateBuffer(tm, 7777777, XV_MEM_BANK_COLOR_0, 64);
  strcpy(text, xvGetErrorInfo(tm));
  for (lap(); !*(volatile int *)input;) {
    for (int n = 0; n < 50; n++) HBRT_CYCLES_COUNT(MUL);
    xos_set_clock_freq(648000000);
    is_even &= lap() == 75; /* a perfect schedule times that of the profile */
  }
  while (idma_desc_done(handle) != 1) {
  }
  is_even &= mine[0] == 1 && mine[63] == 1 && ((char *)output)[63] == 1;
  if (strcmp(text, xvGetErrorInfo(tm))) return 7;
  return xvFreeBuffer(tm, mine) || !is_even;
}
static int release(void *input, void *output, void *tm) {
  (void)input;
  char *tile = xvAllocateBuffer(tm, HB_DSP_DRAM0_POOL_SIZE, XV_MEM_BANK_COLOR_0, 64);
  PRT_IF_COND_RETURN(tile == XVTM_ERROR, HB_DSP_OUT_OF_TCM)
  memset(tile, 2, 64);
  for (int n = 0; n < 70; n++) HBRT_CYCLES_COUNT(MUL);
  *(volatile int *)output = 1;
  xvFreeBuffer(tm, tile);
  xvAllocateBuffer(tm, 8888888, XV_MEM_BANK_COLOR_0, 64);
  return 5;
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


def test_urgent_task_interrupts_an_op_in_c_at_a_call_and_shares_nothing_with_it(build: Build) -> None:
    """Neither TCM, nor cycles, nor why its calls failed; whether Python has the interrupted op or not."""
    with private_board(build(URGENT), cores=1) as board:
        for fails_first in (False, True):
            flag, output = board.from_array(np.array([0, fails_first], np.int32)), board.empty(64, np.uint8)
            spinning = board.submit(SPIN, flag, output)
            while board.status()["tasks"]["running"] == 0:
                time.sleep(0.01)
            with pytest.raises(HbrtError, match=r"release .*returned 5\. xvAllocateBuffer at .*: 8888888 bytes do"):
                board.call(RELEASE, None, flag, priority=255, timeout=PATIENCE_S)
            spinning.result(PATIENCE_S)
        assert board.status()["findings"] == []


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
            until(lambda: answer() == 2, "the library that was built anew")
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
