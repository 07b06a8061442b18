"""The guide's DSP program, out of the guide's own text, which is not ours to carry: HBRT_GUIDE_TEXT names it."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arm_client.client import Board, private_board

Build = Callable[..., Path]
GUIDE_TEXT = "HBRT_GUIDE_TEXT"
LIMIT = 2e-7
SOFTMAX = 0x400

pytestmark = pytest.mark.skipif(GUIDE_TEXT not in os.environ, reason=f"{GUIDE_TEXT} does not name the guide's text")

# What the page leaves out: it prints vecsum in the place of vecmul, and uses these tiles, limits and variables.
OURS = """
#define TILE_SIZE (50 * 1024)
static uint32_t cyclesStart, cyclesStop, selfCycles;
static void vecmul(float *out, const float *in, float factor, int n) {
  for (int i = 0; i < n; i++) out[i] = in[i] * factor;
}
static void tile_max(float *, float *src, int n, float *out, float) { *out = XT_MAX(*out, vecmaxf(src, n)); }
static void tile_sum(float *dst, float *src, int n, float *out, float most) {
  vecexpf_max(dst, src, n, most);
  *out += vecsum(dst, n);
}
static void tile_mul(float *dst, float *src, int n, float *, float sum) { vecmul(dst, src, 1 / sum, n); }
"""
# Waits for handles that no copy has set (docs/c-images.md).
MENDS = (
    ("int vret_out[2];", "int vret_out[2] = {0, 0};"),
    ("with_out_idma && idma_desc_done(vret_out[ping_pong])",
     "with_out_idma && vret_out[ping_pong] > 0 && idma_desc_done(vret_out[ping_pong])"),
)  # fmt: skip


def program(*, is_mended: bool) -> str:
    """The whole image: the functions in the order that a compiler needs, else letter for letter."""
    text = Path(os.environ[GUIDE_TEXT]).read_text(encoding="utf-8")

    def part(head: str, end: str) -> str:
        begin = text.index(head)
        return text[begin : text.index(end, begin) + len(end)]

    frame = part("int hb_dsp_ping_pong_frame(float *dst,", "vret_out[ping_pong ^ 0x01]) != 1) {\n}\nreturn 0;\n}")
    for old, new in MENDS if is_mended else ():
        assert old in frame
        frame = frame.replace(old, new)
    main = part("#include <stdio.h>\n#include <sys/time.h>", "// Should never get here\nreturn -1;\n}")
    includes, rest = main.split('#include "src/softmax_ivp.h"\n')
    return "\n".join([
        includes,
        "#include <hbrt/dsp_math.h>\n#include <xtensa/tie/xt_ivpn.h>",
        part("typedef struct {\nint data_size;", "} hbDSPSoftmaxParam;"),
        part("float32_t vecmaxf(", "} /* vecmaxf() */"),
        part("void vecexpf_max(", "} /* vecexpf() */"),
        part("static float32_t vecsum(", "return sum;\n}"),
        OURS,
        frame,
        "#define OPT\n#define PROF\n",
        part("int hb_dsp_softmax(void *input", "hb_dsp_mem_unmap((uint32_t)src);\nreturn 0;\n}"),
        rest,
    ])  # fmt: skip


def softmax(board: Board, x: np.ndarray) -> np.ndarray:
    source, output = board.from_array(x), board.empty(x.size, np.float32)
    param = np.frombuffer(struct.pack("<iiQ", x.nbytes, 0, source.phy_addr), np.uint8)
    board.call(SOFTMAX, board.from_array(param), output)
    return np.array(output)


@pytest.mark.parametrize("check", [None, "all"])
def test_image_of_the_guide_returns_softmax(build: Build, check: str | None) -> None:
    image = build(program(is_mended=True), suffix=".cc")
    with private_board(image, cores=1, check=check) as board:
        for count in (1, 17, 1000, 12_800, 25_600, 100_000):
            x = np.random.default_rng(count).standard_normal(count).astype(np.float32) * 4
            power = np.exp(x.astype(np.float64) - float(x.max()))
            assert np.abs(softmax(board, x) - power / power.sum()).max() < LIMIT, count
            found = {one["kind"] for one in board.status()["findings"]}
            # From three tiles on it refills a buffer whose results are under way, and it awaits one of two last copies.
            assert found == (set() if check is None or count <= 12_800 else {"dma-busy", "dma-left"}), count


def test_waits_of_the_guide_for_handles_that_no_copy_has_set_are_named(build: Build) -> None:
    image = build(program(is_mended=False), "-ftrivial-auto-var-init=zero", suffix=".cc")
    x = np.ones(100, np.float32)
    for check in (None, "all"):
        with private_board(image, cores=1, check=check) as board:
            np.testing.assert_allclose(softmax(board, x), 0.01, atol=LIMIT)
            found: dict[str, Any] = {one["kind"]: one for one in board.status()["findings"]}
        assert ".cc:" in found["dma-handle"]["places"][0]["site"]
