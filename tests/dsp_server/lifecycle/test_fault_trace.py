"""Of a core that died, the op's lines are told and not those of the emulator below it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import dsp_server
from dsp_server.lifecycle.fault_trace import op_lines

if TYPE_CHECKING:
    from tests.shared import Shell

OURS = Path(dsp_server.__file__).parent
CRASHING = """
import ctypes
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def reads_null(input, output, tm):
    return len(ctypes.string_at(0))

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, reads_null, 0)
    hb_dsp_start()
"""
CALL = """
from arm_client import HbrtError, connect
with connect() as board:
    try:
        board.call(0x1000)
    except HbrtError as error:
        print(error.text)
"""


def frame(file: str, line: int, name: str) -> str:
    return f'  File "{file}", line {line} in {name}'


def test_what_called_the_op_is_left_out_of_each_stack() -> None:
    below = [frame(f"{OURS}/core/loop.py", 317, "_run"), frame(f"{OURS}/daemon/daemon.py", 50, "serve")]
    first = ["Thread 0x1 (most recent call first):", frame("/lib/threading.py", 1, "wait")]
    op = ["Current thread 0x2 (most recent call first):", frame("/x/img.py", 4, "inner"), frame("/x/img.py", 9, "op")]
    end = ["", "Extension modules: numpy (total: 1)"]
    assert op_lines("\n".join([*first, "", *op, *below, *end])).splitlines() == [*first, "", *op, *end]


def test_a_stack_of_the_core_alone_is_left_whole() -> None:
    trace = "\n".join(
        ["Fatal Python error: Aborted", "", "Stack:", frame(f"{OURS}/core/loop.py", 5, "serve"), frame("/y", 1, "z")]
    )
    assert op_lines(trace) == trace
    assert op_lines("") == ""


def test_an_installation_behind_a_link_is_known_too(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(OURS.parent)
    core = frame(f"{link}/dsp_server/core/loop.py", 317, "_run")
    trace = "\n".join(["Stack:", frame("/x/img.py", 9, "op"), core])
    program = f"""
from dsp_server.lifecycle import fault_trace
assert fault_trace.__file__.startswith({str(link)!r})
print(fault_trace.op_lines({trace!r}))
"""
    environment = {**os.environ, "PYTHONPATH": str(link)}
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["Stack:", frame("/x/img.py", 9, "op")]


def test_a_program_reads_where_its_op_was_and_nothing_else(shell: Shell) -> None:
    image = shell.cwd / "crashing.py"
    image.write_text(CRASHING)
    shell.good("start", "--image", image)
    lines = shell.python("-c", CALL).stdout.splitlines()
    frames = [line for line in lines if line.startswith("  File ")]
    assert frames[-1] == f'  File "{image}", line 6 in reads_null'
    assert len(frames) == 2
    assert "Fatal Python error: Segmentation fault" in lines
