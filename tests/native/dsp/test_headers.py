"""The headers for images: clean in C and C++, in any order, and with the numbers that Python has."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import dsp_server
from dsp_server.hardware import tile_manager, transfers
from hbrt import status
from tests.limits import PATIENCE_S
from tests.native.dsp.conftest import WARNINGS
from tests.shared import build_c

Build = Callable[..., Path]
HEADERS = [
    "hb_dsp.h", "hb_dsp_log.h", "hb_dsp_tm.h", "nn/core.h", "cv/core.h", "xtensa/xos.h", "xtensa/idma.h",
    "xtensa/tie/xt_timer.h",
]  # fmt: skip
NUMBERS = [
    "HB_ERR_MMAP_FAILED", "HB_DSP_INVALID_ARGUMENT", "HB_DSP_OUT_OF_TCM",
    "HB_DSP_LOG_NONE", "HB_DSP_LOG_DEBUG", "HB_DSP_LOG_INFO", "HB_DSP_LOG_WARNING", "HB_DSP_LOG_ERROR",
    "HB_DSP_LOG_FATAL",
    "HB_DSP_DRAM0_POOL_SIZE", "HB_DSP_DRAM1_POOL_SIZE",
    "XV_MEM_BANK_COLOR_0", "XV_MEM_BANK_COLOR_1", "XV_MEM_BANK_COLOR_ANY", "XVTM_SUCCESS", "XVTM_FREE_ERROR",
    "IDMA_OK", "IDMA_ERR_BAD_TRANSFER", "IDMA_ERR_QUEUE_FULL", "IDMA_ERR_UNKNOWN_HANDLE",
]  # fmt: skip
USES = """
#define IDMA_USE_MULTICHANNEL
{includes}
IDMA_BUFFER_DEFINE(buffer, 2, IDMA_2D_DESC);
int use(void *dst, void *src) {{
  idma_init(0, 0, MAX_BLOCK_16, 16, TICK_CYCLES_1, 0, NULL);
  idma_init_loop(0, buffer, IDMA_2D_DESC, 2, NULL, NULL);
  int handle = idma_copy_desc(0, dst, src, 8, DESC_NOTIFY_W_INT);
  handle = idma_copy_2d_desc(0, dst, src, 8, DESC_IDMA_PRIOR_H, 1, 8, 8);
  if (idma_buffer_status(0) > 0) idma_sleep(0);
  idma_hw_wait_all(0);
  void *(*map)(uint64_t, int64_t) = hb_dsp_mem_map;
  int32_t (*release)(xvTileManager *, const void *) = xvFreeBuffer;
  return idma_desc_done(0, handle) + (map != NULL) + (release != NULL) + (int)XT_MAX(1, KB(2));
}}
int main(void) {{ HB_DSP_REGISTER_NN_ALL; HB_DSP_REGISTER_CV_ALL; return use(NULL, NULL); }}
"""


@pytest.mark.parametrize(("suffix", "standard"), [(".c", "-std=c11"), (".cc", "-std=c++17"), (".cc", "-std=c++20")])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_headers_compile_without_a_warning(build: Build, suffix: str, standard: str, *, is_reversed: bool) -> None:
    includes = "\n".join(f'#include "{name}"' for name in (reversed(HEADERS) if is_reversed else HEADERS))
    build(USES.format(includes=includes), *WARNINGS, standard, suffix=suffix)


def test_numbers_are_those_of_python(build: Build) -> None:
    image = ctypes.CDLL(str(build(f'#include "hb_dsp.h"\nint numbers[] = {{{", ".join(NUMBERS)}}};\n')))
    found = list((ctypes.c_int * len(NUMBERS)).in_dll(image, "numbers"))
    homes = [dsp_server, tile_manager, transfers, status.Status]
    expected = [next(getattr(home, name) for home in homes if hasattr(home, name)) for name in NUMBERS]
    assert found == expected


PLAIN = """
    #include <hb_dsp.h>
    int main() {
      uint32_t start, end;
      volatile float sum = 0;
      HB_DSP_TIME_STAMP(start);
      for (int i = 0; i < 100; i++) sum += i;
      CHARGE;
      HB_DSP_TIME_STAMP(end);
      printf("%d\\n", end - start);
    }"""


@pytest.mark.parametrize(
    ("charge", "cycles", "said"),
    [
        ("", 0, "XT_RSR_CCOUNT was read 2 times without any charge in between: plain C is not counted. "),
        ("hb_dsp_charge(1600, 32, (struct hb_dsp_operations){.load = 1, .gather = 1, .scalar = 2})", 1875, ""),
    ],
)
def test_measuring_program_in_plain_c_says_that_nothing_was_charged(
    tmp_path: Path, charge: str, cycles: int, said: str
) -> None:
    source, program = tmp_path / "plain.c", tmp_path / "plain"
    source.write_text(PLAIN.replace("CHARGE", charge))
    build_c("--dsp", "--sim", source, "-o", program)
    ran = subprocess.run([program], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert ran.stdout == f"{cycles}\n"
    assert ran.stderr.startswith(said)
    assert bool(said) == bool(ran.stderr)


def test_program_without_a_core_counts_its_own_cycles_and_is_told_what_it_lacks(tmp_path: Path) -> None:
    """The guide measures an op in its own program (10.2.3.3.4)."""
    source = tmp_path / "sim.cc"
    source.write_text("""
        #include <hb_dsp.h>
        #include <xtensa/tie/xt_ivpn.h>
        float HB_ALIGN64 data[KB(1)] _HB_LOCAL_DRAM0_;
        int main() {
          uint32_t start, end;
          HB_DSP_TIME_STAMP(start);
          xb_vecN_2xf32 sum = 0.f;
          for (int i = 0; i < KB(1); i += IVP_N_2) sum = IVP_ADDN_2XF32(sum, *(xb_vecN_2xf32 *)(data + i));
          HB_DSP_TIME_STAMP(end);
          printf("%d %d\\n", end - start >= KB(1) / IVP_N_2 / 2, hb_dsp_env_init() == HB_DSP_INVALID_ARGUMENT);
          return IVP_RADDN_2XF32(sum) != 0;
        }""")
    program = tmp_path / "sim"
    build_c("--dsp", "--sim", source, "-o", program)
    ran = subprocess.run([program], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert ran.stdout == "1 1\n"
    assert (
        ran.stderr
        == "hb_dsp_env_init: this program does not run on a core. Run it as an image: hbrt start --image FILE.\n"
    )
