"""What reaches a program's standard error: what ops say, what the board finds; and the exit code under HBRT_CHECK."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arm_client.client import Board
from tests.limits import PATIENCE_S
from tests.nursery import run_program

OP = """
from dsp_server import *

def speak(input, output, tm):
    print("row", 3)
    DSP_WARN("scale %d", 7)
    return 0

def leave_tcm(input, output, tm):
    tm.allocate(64)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, speak)
    hb_dsp_register_fn(0x1001, leave_tcm)
    hb_dsp_start()
"""
CLEAN = "import arm_client as hb\nboard = hb.connect()\nboard.call(0x1000)\nprint('done', flush=True)\n"
LEAK = f"{CLEAN}mem = hb.hbSysMem()\nhb.hbSysAllocMem(mem, 100)\n"
LEFT = f"{CLEAN}board.call(0x1001)\n"
# As a pointer of another process may: one of this process faults.
LATE = f"{LEAK}hb.hbSysFreeMem(mem)\nimport os\nddr = board.session.link.ddr\n"
LATE += "os.pwrite(ddr.fd, b'U', ddr.offset_of(mem.phyAddr) + 10)\n"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "op.py"
    path.write_text(OP, encoding="utf-8")
    return path


def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return run_program(["-c", source], PATIENCE_S, env={**os.environ, **environment})


def on_private(source: str, image: Path, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a private board of that image."""
    return run(source, HBRT_IMAGE=str(image), HBRT_HOME=str(tmp_path), HBRT_BOARD="none", **environment)


def test_a_private_board_says_what_its_ops_say(image: Path, tmp_path: Path) -> None:
    done = on_private(CLEAN, image, tmp_path, HBRT_CHECK="fail")
    assert (done.returncode, done.stdout) == (0, "done\n")
    said = [line for line in done.stderr.splitlines() if "private one" not in line]
    assert [re.sub(r"^\d\d:\d\d:\d\d core[01] ", "", line) for line in said] == [
        "0x1000 row 3",
        "0x1000 WARNING scale 7",
    ]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (LEAK, r"daemon WARNING leak: .* ended with 1 block \(100 bytes\) not freed\. Allocated at <string>:6 "),
        (LEFT, r"daemon WARNING tcm-left: leave_tcm \(command 0x1001\) returned on core [01] without .*op\.py:10\."),
        (LATE, r"daemon \w+ write-after-free: A byte at 0x\w+a was written .* of client \d+, freed at <string>:7\."),
    ],
    ids=["leak", "tcm-left", "write-after-free"],
)
def test_a_private_board_says_what_it_found(image: Path, tmp_path: Path, source: str, sentence: str) -> None:
    failed = on_private(source, image, tmp_path, HBRT_CHECK="fail")
    assert len(re.findall(sentence, failed.stderr)) == 1, failed.stderr
    assert (failed.returncode, failed.stdout) == (1, "done\n")
    assert failed.stderr.splitlines()[-1].startswith("1 mistake was found (HBRT_CHECK=fail), the last: ")


def test_what_is_found_fails_no_program_that_does_not_ask_for_it(image: Path, tmp_path: Path) -> None:
    done = on_private(LEAK, image, tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "daemon WARNING leak: " in done.stderr
    assert "HBRT_CHECK" not in done.stderr


def test_a_running_board_tells_a_program_its_own_findings(dsp_board: Board) -> None:
    source = "import arm_client as hb\nmem = hb.hbSysMem()\nhb.hbSysAllocMem(mem, 100)\n"
    for _ in range(2):
        done = run(source, HBRT_BOARD=str(dsp_board.path), HBRT_CHECK="fail")
        assert done.returncode == 1
        lines = done.stderr.splitlines()
        assert re.match(
            r"hbrt: warning: leak: Process \d+ \(-c\) ended with 1 block .* Allocated at <string>:3 ", lines[0]
        )
        assert len(lines) == 2
    clean = run("import arm_client as hb\nhb.connect().ping()\n", HBRT_BOARD=str(dsp_board.path), HBRT_CHECK="fail")
    assert (clean.returncode, clean.stderr) == (0, "")


def test_a_program_that_does_not_read_its_standard_error_keeps_nobody_waiting(image: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    try:
        image.write_text(OP.replace('print("row", 3)', "print('x' * 200_000)"), encoding="utf-8")
        environment = {**os.environ, "HBRT_IMAGE": str(image), "HBRT_HOME": str(tmp_path), "HBRT_BOARD": "default"}
        source = f"{CLEAN}board.call(0x1000)\nboard.call(0x1000)\n"
        command = [sys.executable, "-c", source]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=write, check=False, timeout=PATIENCE_S
        )
        assert (done.returncode, done.stdout) == (0, b"done\n")
    finally:
        os.close(read)
        os.close(write)


def test_a_wrong_value_is_told_when_a_program_attaches() -> None:
    done = run("import arm_client as hb\nhb.connect()\n", HBRT_CHECK="always")
    assert done.returncode == 1
    assert "Unknown word 'always' in HBRT_CHECK: expected tell, fail, " in done.stderr


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "ctypes.CDLL(None)._exit(0)"])
def test_a_program_that_ends_hard_keeps_its_exit_code_and_its_board_says_so(
    image: Path, tmp_path: Path, end: str
) -> None:
    ended = on_private(f"{LEAK}import ctypes, os\n{end}\n", image, tmp_path, HBRT_CHECK="fail")
    assert ended.returncode == (-9 if "kill" in end else 0)
    assert "daemon WARNING leak: " in ended.stderr
    assert re.search(
        r"daemon WARNING exit-code: Process \d+ \(-c\) was ended by os\._exit or a signal, so its exit code does not "
        r"reflect its 1 mistake\. The exit code of 'hbrt run PROGRAM' does",
        ended.stderr,
    )
    clean = on_private(f"{CLEAN}import ctypes, os\n{end}\n", image, tmp_path, HBRT_CHECK="fail")
    assert "exit-code" not in clean.stderr
