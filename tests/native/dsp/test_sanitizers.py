"""Images that were built with sanitizers: a report is the text of the task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arm_client.client import private_board
from arm_client.errors import CoreLostError
from dsp_server.c_images import sanitizers
from dsp_server.lifecycle.fault_trace import op_lines

Build = Callable[..., Path]
SOURCE = """
#include <stdlib.h>
#include "hb_dsp.h"

int careless(void *input, void *output, void *tm) {
  (void)output, (void)tm;
  volatile int number = 0x7fffffff;
  if (*(int *)input == 1) number += 1;
  volatile char *block = malloc(16);
  free((void *)block);
  if (*(int *)input == 2) return block[3];
  return 0;
}

int main() {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1000, careless, 0);
  hb_dsp_start();
}
"""


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


@pytest.fixture(scope="module")
def image(build: Build) -> Path:
    try:
        return build(SOURCE, "-w", "--sanitize", "address,undefined")
    except AssertionError:
        pytest.skip("the compiler has no sanitizers here")


def test_report_of_a_sanitizer_is_the_text_of_the_task(image: Path) -> None:
    with private_board(image, cores=1) as board:

        def call(way: int) -> None:
            board.call(0x1000, board.from_array(np.array([way, 0], np.int32)))

        call(0)
        with pytest.raises(CoreLostError, match="UBSan: Signed integer overflow: 2147483647 \\+ 1 cannot") as lost:
            call(1)
        assert f'image.c", line {line_of("number += 1")} in careless' in str(lost.value)
        with pytest.raises(CoreLostError, match="AddressSanitizer: heap-use-after-free") as lost:
            call(2)
        assert f"in careless {image.parent}/image.c:{line_of('block[3]')}" in str(lost.value)
        assert "ceval" not in str(lost.value)
        call(0)


def test_process_that_has_not_begun_with_a_sanitizer_says_so(image: Path) -> None:
    names = sanitizers.libraries(image.read_bytes())
    assert sanitizers.missing(names) == sanitizers.first(names)[0]
    assert sanitizers.missing([]) == ""
    assert sanitizers.environment_of([]) == {}


def test_report_ends_with_its_summary() -> None:
    op, runtime = "    #0 0x1 in op /a.c:1", "    #1 0x2 in hbrt_dsp_run /image.c:2\n    #2 0x3 in ffi_call"
    assert op_lines(f"ERROR: bad\n{op}\n{runtime}\n\nSUMMARY: bad\nfa fa") == f"ERROR: bad\n{op}\n\nSUMMARY: bad"
