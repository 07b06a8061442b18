"""Ops in C: their calls of the runtime, and how each of their ends reaches the caller."""

from __future__ import annotations

import os
import platform
import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arm_client import nn
from arm_client.client import Board, private_board
from arm_client.errors import CoreLostError, HbrtError
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from hbrt.status import Status
from tests.native.dsp.conftest import IMAGES, WARNINGS

if TYPE_CHECKING:
    from arm_client.arrays import Buffer

    Build = Callable[..., Any]

TWICE, MISBEHAVE, BOX, LIMITED = 0x1000, 0x1001, 0x1002, 0x1003
SOURCE = IMAGES / "ops.c"
_ENUM = re.search(r"enum \{ (ASIDE.*?) \}", SOURCE.read_text())
WAYS = _ENUM[1].split(", ") if _ENUM else []


def params(board: Board, source: Any, *, is_32bit: bool) -> Any:
    return board.from_array(np.frombuffer(struct.pack("<iiQ", source.size, is_32bit, source.phy_addr), np.uint8))


def misbehave(board: Board, way: str, output: Buffer | None = None, cmd: int = MISBEHAVE) -> None:
    board.call(cmd, board.from_array(np.array([WAYS.index(way), 0], np.int32)), output)


@pytest.mark.parametrize("is_32bit", [False, True])
def test_op_in_c_maps_copies_and_answers(board: Board, *, is_32bit: bool) -> None:
    numbers = np.arange(5000, dtype=np.float32)
    source, output = board.from_array(numbers), board.empty(5000, np.float32)
    board.call(TWICE, params(board, source, is_32bit=is_32bit), output)
    np.testing.assert_array_equal(np.asarray(output), numbers * 2)


def test_copies_in_two_and_three_dimensions(board: Board) -> None:
    space = np.arange(96, dtype=np.uint8).reshape(2, 6, 8)
    output = board.empty(45, np.uint8)
    board.call(BOX, board.from_array(space), output)
    expected = np.concatenate([space[0, :5, :3].ravel(), space[:, :5, :3].ravel()])
    np.testing.assert_array_equal(np.asarray(output), expected)


def test_packaged_ops_in_python_stand_beside_ops_in_c(board: Board) -> None:
    names = board.ops()
    assert (names[TWICE], names[MISBEHAVE], names[0x400]) == ("twice", "misbehave", "softmax")
    rows = np.linspace(-4, 4, 64, dtype=np.float32)
    assert nn.softmax(board, rows).sum() == pytest.approx(1, abs=1e-6)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


CRASHES = {
    "NO_ADDRESS": (r"SIGSEGV \(invalid memory reference\) at address 0x0 in an image's C code", "return *place"),
    "ABORT": (r"SIGABRT \(abort\) in an image's C code", "case ABORT"),
    "DIVISION": (r"SIGFPE \(division by zero", "case DIVISION"),
    "STACK": (r"SIGSEGV \(stack overflow\) at address 0x", "? fill_stack(frame)"),
    "LIBC": (r"SIGSEGV .* at address 0x8 in", "case LIBC"),
    "UNCHECKED": (r"a call had failed: xvAllocateBuffer at .*ops\.c:\d+: 1048576 bytes do not fit", "UNCHECKED: tile"),
}  # fmt: skip
if platform.machine() == "aarch64":  # where x / 0 is 0
    del CRASHES["DIVISION"]


@pytest.mark.parametrize("way", CRASHES)
def test_op_that_crashes_costs_its_task_and_names_its_line(board: Board, way: str) -> None:
    text, line = CRASHES[way]
    with pytest.raises(CoreLostError, match=text) as lost:
        misbehave(board, way)
    frames = [one for one in str(lost.value).splitlines() if one.startswith("  File ")]
    assert f'"{SOURCE}", line {line_of(line)} in ' in "".join(frames[:2]), lost.value
    assert "in misbehave" in frames[-1] or way == "STACK", lost.value
    misbehave(board, "ASIDE")  # the core is back


def test_op_that_does_not_end_is_ended_and_its_line_named(board: Board) -> None:
    with pytest.raises(HbrtError, match=r"exceeded its time limit of 300 ms; core 0 was ended") as ended:
        misbehave(board, "LOOP", cmd=LIMITED)
    assert ended.value.status == Status.HB_DSP_WATCHDOG
    assert f" at {SOURCE}:{line_of('for (;;) pause();')} in way" in str(ended.value)
    assert "in misbehave" in str(ended.value)
    misbehave(board, "ASIDE", cmd=LIMITED)


def test_value_of_an_op_is_its_tasks(board: Board) -> None:
    with pytest.raises(HbrtError, match=r"misbehave \(command 0x1001\) returned -42\.") as failed:
        misbehave(board, "VALUE")
    assert failed.value.status == -42


def test_what_an_op_prints_is_in_the_text_of_its_task(board: Board) -> None:
    with pytest.raises(HbrtError, match=r"Its output:\nrow 3 is odd\nscale 0\.5\ndone"):
        misbehave(board, "SAY")


def test_mistake_in_a_call_ends_the_op_with_its_line(board: Board) -> None:
    with pytest.raises(
        HbrtError, match=rf"waits for iDMA handle -1 at {SOURCE}:{line_of('case HANDLE')}, which is the code of a copy"
    ):
        misbehave(board, "HANDLE")


def test_tile_manager_and_idma_refuse_what_they_cannot_do(board: Board) -> None:
    misbehave(board, "TILES", board.alloc(4096))


def test_what_an_op_left_is_found_with_its_lines(build: Build) -> None:
    with private_board(build(SOURCE, *WARNINGS), cores=1) as board:
        misbehave(board, "LEAVE", board.alloc(64))
        found = {one["kind"]: one["text"] for one in board.status()["findings"]}
        misbehave(board, "BY_POINTER")
        texts = " ".join(one["text"] for one in board.status()["findings"])
    assert f"from {SOURCE}:{line_of('return allocate(tm')}. Free it" in texts
    assert f"{SOURCE}:{line_of('(tm, 64, XV_MEM_BANK')}" in found["tcm-left"]
    assert f"{SOURCE}:{line_of('IDMA_COPY(handle, output, tile')}" in found["dma-left"]


MISTAKES = {
    "OVERRUN": ("overrun", "case OVERRUN"),
    "OWN_INPUT": ("input-written", "return *place"),
    "EARLY": ("dma-early", "zero = ((volatile char *)tile)"),
}


if os.environ.get("UNDER_QEMU"):  # which does not say whether a fault was a write
    del MISTAKES["OVERRUN"]


def test_detectors_name_lines_of_c(build: Build) -> None:
    with private_board(build(SOURCE, *WARNINGS), cores=1, check="memory,dma") as board:
        for way, (kind, text) in MISTAKES.items():
            parameter = np.zeros(1024, np.int32)
            parameter[0] = WAYS.index(way)
            board.call(MISBEHAVE, board.from_array(parameter), board.from_array(np.zeros(1024, np.int32)))
            found = {one["kind"]: one for one in board.status()["findings"]}
            assert f"{SOURCE}:{line_of(text)}" in found[kind]["text"]


def test_op_that_ends_its_process_costs_its_task(board: Board) -> None:
    with pytest.raises(CoreLostError, match="exited with code 3 while running misbehave"):
        misbehave(board, "EXIT")


def test_process_that_an_op_forks_does_not_go_on_as_the_core(board: Board) -> None:
    for _ in range(3):
        misbehave(board, "FORK")


FORKED_POLL = """
#include <sys/wait.h>
#include <unistd.h>
#include "hb_dsp.h"
static int polls(void *input, void *output, void *tm) {
  char *tile = (char *)xvAllocateBuffer((xvTileManager *)tm, 4096, XV_MEM_BANK_COLOR_0, 64);
  int handle;
  IDMA_COPY(handle, input, tile, 4096)
  pid_t child = fork();
  if (child == 0) _exit(idma_desc_done(handle) < 0 ? 0 : 1);
  waitpid(child, (int *)output, 0);
  while (idma_desc_done(handle) != 1) {
  }
  return xvFreeBuffer((xvTileManager *)tm, tile);
}
int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, polls, 0);
  return hb_dsp_start();
}
"""


def test_process_that_an_op_forks_is_refused_a_poll_of_a_copy_that_is_under_way(build: Build) -> None:
    with private_board(build(FORKED_POLL, *WARNINGS), cores=1) as board:
        status = board.from_array(np.full(2, 77, np.int32))
        board.call(0x1000, board.from_array(np.zeros(4096, np.uint8)), status)
        assert status[0] == 0


POLLS = """
#include "hb_dsp.h"
static int polls(void *input, void *output, void *tm) {
  uint32_t *found = output;
  const uint32_t size = *(uint32_t *)input;
  char *tile = (char *)xvAllocateBuffer((xvTileManager *)tm, size, XV_MEM_BANK_COLOR_0, 64);
  int handle, other;
  found[0] = XT_RSR_CCOUNT();
  IDMA_COPY(handle, input, tile, size)
  IDMA_COPY(other, input, tile, size)
  for (found[1] = 0; idma_desc_done(handle) != 1;) found[1]++;
  found[2] = XT_RSR_CCOUNT();
  for (found[3] = 0; idma_desc_done(other) != 1;)
    if (++found[3] % 3 == 0) (void)idma_buffer_status(); /* a call of another kind between polls */
  found[4] = XT_RSR_CCOUNT();
  xvFreeBuffer((xvTileManager *)tm, tile);
  return 0;
}
int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, polls, 0);
  hb_dsp_start();
  return -1;
}
"""


@pytest.mark.parametrize("size", [64, 4096, 20_000])
def test_polls_in_vain_cost_in_c_what_they_cost_in_python(
    build: Build, dsp_board_factory: Callable[..., Any], size: int
) -> None:
    counter, memory = CycleCounter(), bytearray(2 * size)
    idma = Idma(counter)
    source, target = memoryview(memory)[:size], memoryview(memory)[size:]
    expected = [0]
    first, second = idma.copy(target, source), idma.copy(target, source)
    polls = 0
    while not idma.desc_done(first):
        polls += 1
    expected += [polls, counter.cycles]
    polls = 0
    while not idma.desc_done(second):
        polls += 1
        if polls % 3 == 0:
            idma.poll()
    expected += [polls, counter.cycles]
    with dsp_board_factory(image=str(build(POLLS, *WARNINGS)), cores=1) as board:
        block = board.from_array(np.full(size // 4, size, np.uint32))
        output = board.empty(5, np.uint32)
        board.call(0x1000, block, output)
        start, in_first, then, in_second, end = (int(value) for value in output)
    assert [0, in_first, then - start, in_second, end - start] == expected


FREES_NULL = """
#include "hb_dsp.h"
static int frees_null(void *input, void *output, void *tm) {
  (void)input, (void)output;
  xvFreeBuffer((xvTileManager *)tm, NULL);
  return 5;
}
int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, frees_null, 0);
  hb_dsp_start();
  return -1;
}
"""


def test_a_free_of_null_is_named(build: Build, dsp_board_factory: Callable[..., Any]) -> None:
    says = r"image\.c:5: NULL is not in TCM: free what xvAllocateBuffer returned\."
    with (
        dsp_board_factory(image=str(build(FREES_NULL, *WARNINGS)), cores=1) as board,
        pytest.raises(HbrtError, match=says),
    ):
        board.call(0x1000)


WAITS = """
#include "hb_dsp.h"
#include "xtensa/idma.h"
static int op(void *input, void *output, void *tm) {
  (void)tm;
  while (idma_desc_done(*(int *)input) != 1) {
  }
  *(int *)output = 7;
  return 0;
}
int main(void) { hb_dsp_env_init(); hb_dsp_register_fn(0x1000, op, 0); hb_dsp_start(); }
"""


def test_a_wait_for_whatever_the_stack_held_counts_as_done_and_is_named(build: Build) -> None:
    with private_board(build(WAITS), cores=1) as board:
        for handle in (0, 1, -1, 12345, -12345, 2**31 - 1, -(2**31)):
            output = board.empty(1, np.int32)
            board.call(0x1000, struct.pack("<i", handle), output)
            assert output[0] == 7
        found = [one["text"] for one in board.status()["findings"] if one["kind"] == "dma-handle"]
    assert found
    assert re.search("image.c:6, which (no copy has set|may be the code of a copy)", found[0])
