"""What ops print and log: lines with core and command, and the text of the task that failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arm_client.errors import HbrtError

if TYPE_CHECKING:
    from arm_client.arrays import Buffer
    from arm_client.client import Board
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]

IMAGE = """
import sys
from dsp_server import (
    DSP_WARN, hb_dsp_env_init, hb_dsp_mem_map, hb_dsp_ping_pong_frame, hb_dsp_register_fn, hb_dsp_start, idma_desc_done,
)

def speak(input, output, tm):
    print("row", 3, "is", "odd")
    sys.stderr.write("half a line, ")
    sys.stderr.write("and the rest\\n")
    DSP_WARN("scale of %d is large", 7)
    if input[0] == 1:
        return -5
    if input[0] == 2:
        print("no end", end="")
        raise ValueError("bad row")
    return 0

def quiet(input, output, tm):
    return -6

def ignore(input, output, tm):
    handle = hb_dsp_ping_pong_frame(output, input, [bytearray(4)], [], 16, None, None, None)
    while not idma_desc_done(handle):
        pass
    return 0

def main():
    hb_dsp_env_init()
    print("main() runs")
    for cmd, op in ((0x1100, speak), (0x1101, quiet), (0x1102, ignore)):
        hb_dsp_register_fn(cmd, op)
    hb_dsp_start()
"""


def block(board: Board, size_bytes: int, first: int = 0) -> Buffer:
    made = board.alloc(size_bytes)
    made.view()[0] = first
    return made


@pytest.fixture
def running(start: Start, tmp_path: Path) -> Running:
    image = tmp_path / "speaking.py"
    image.write_text(IMAGE, encoding="utf-8")
    return start(image, cores=1)


def test_a_line_has_time_core_and_command(running: Running) -> None:
    board = running.attach()
    board.call(0x1100, block(board, 4))
    log = running.log()
    assert re.search(r"^\d\d:\d\d:\d\d core0 main\(\) runs$", log, re.MULTILINE)
    for line in ("row 3 is odd", "half a line, and the rest", "WARNING scale of 7 is large"):
        assert re.search(rf"^\d\d:\d\d:\d\d core0 0x1100 {line}$", log, re.MULTILINE), log


def test_a_task_that_fails_has_what_its_op_said(running: Running) -> None:
    board = running.attach()
    said = "Its output:\nrow 3 is odd\nhalf a line, and the rest\nscale of 7 is large"
    with pytest.raises(HbrtError) as returned:
        board.call(0x1100, block(board, 4, 1))
    assert returned.value.text == f"speak (command 0x1100) returned -5.\n{said}"
    with pytest.raises(HbrtError) as raised:
        board.call(0x1100, block(board, 4, 2))
    assert raised.value.text.endswith(f"ValueError: bad row\n{said}\nno end")
    with pytest.raises(HbrtError) as silent:
        board.call(0x1101)
    assert silent.value.text == "quiet (command 0x1101) returned -6."


def test_the_error_of_a_frame_that_an_op_ignores_ends_its_wait_at_once(running: Running) -> None:
    board = running.attach()
    with pytest.raises(HbrtError) as failed:
        board.call(0x1102, block(board, 64), block(board, 64))
    text = failed.value.text
    assert "An op waits for iDMA handle -1 at " in text
    assert "speaking.py:24, which is the code of a copy or a frame that failed: A frame needs a length of 0" in text
    assert "(at " in text
    assert "speaking.py:23)" in text
