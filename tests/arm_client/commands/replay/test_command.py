"""Calls that are recorded in each way to a board, and replayed: the same, changed, killed, cut off, captured by C."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from arm_client.transport.remote_link import RemoteLink
from hbrt.board.paths import RemoteBoard
from hbrt.errors import WrongUseError
from hbrt.profiles.profile import load
from tests.shared import Shell
from tools.docs_tables import REPOSITORY

IMAGE = """
import os, signal
import numpy as np
from dsp_server import hb_dsp_env_init, hb_dsp_mem_map, hb_dsp_mem_unmap, hb_dsp_register_fn, hb_dsp_start

def add(input, output, tm):
    phy, size = (int(word) for word in np.frombuffer(input, np.uint64))
    mapped = hb_dsp_mem_map(phy, size)
    np.frombuffer(output, np.float32)[:] = np.frombuffer(mapped, np.float32) + ADDEND
    np.frombuffer(mapped, np.float32)[0] = -1
    hb_dsp_mem_unmap(mapped)
    return 0

def refuse(input, output, tm):
    return 7

def die(input, output, tm):
    os.kill(os.getpid(), signal.SIGKILL)

def main():
    hb_dsp_env_init()
    for at, op in enumerate((add, refuse, die)):
        hb_dsp_register_fn(0x1000 + at, op)
    hb_dsp_start()
"""
PROGRAM = """
import sys
import numpy as np
import arm_client
from arm_client.errors import HbrtError

with arm_client.connect() as board:
    data, block = board.empty(100), board.empty(2, np.uint64)
    for seed in range(3):
        data[:] = seed
        block[:] = data.phy_addr, data.nbytes
        out = board.empty(100)
        board.call(0x1000, block, out)
    for cmd in map(int, sys.argv[1:]):
        try:
            board.call(cmd)
        except HbrtError:
            pass
"""


@pytest.fixture
def work(shell: Shell) -> Shell:
    (shell.cwd / "image.py").write_text(f"ADDEND = 1\n{IMAGE}")
    (shell.cwd / "program.py").write_text(PROGRAM)
    shell.environment["HBRT_IMAGE"] = "image.py"
    return shell


@pytest.mark.parametrize("way", ["HB_DSP_RPC_MODE=relay", "HBRT_CHECK=all"])
def test_each_way_to_a_core_is_recorded_whole(work: Shell, way: str) -> None:
    name, value = way.split("=")
    work.environment[name] = value
    work.good("run", "--record", "calls", "program.py", 0x1001)
    found = work.json("replay", "calls", "--image", "image.py")
    assert found == {"recording": "calls", "calls": 4, "same": 4, "different": [], "not_ended": [], "notes": []}
    calls = [json.loads(path.read_text()) for path in sorted((work.cwd / "calls/calls").glob("*/call.json"))]
    added = [call for call in calls if call["cmd"] == 0x1000]
    assert len(added) == 3
    for call in added:  # the parameter block, the output, and the mapped array, which the op changes
        assert [bool(used["after"]) for used in call["ranges"]] == [False, True, True]
        assert 0 < call["submitted_ns"] < call["claimed_ns"] < call["started_ns"] < call["ended_ns"]
    assert [(call["op"], call["status"]) for call in calls if call["cmd"] != 0x1000] == [("refuse", 7)]


def test_the_first_difference_is_named_with_its_element(work: Shell) -> None:
    work.good("run", "--record", "calls", "program.py")
    (work.cwd / "new.py").write_text(f"ADDEND = np.eye(1, 100, 9, dtype='float32')[0] + 1\n{IMAGE}")
    text = (work.cwd / "new.py").read_text()
    (work.cwd / "new.py").write_text("import numpy as np\n" + text)
    arguments = ("replay", "calls", "--image", "new.py", "--as", "float32")
    answer = work.hbrt(*arguments)
    assert answer.returncode == 1
    _, summary, first = answer.stdout.splitlines()
    assert summary == "3 calls replayed: 0 the same, 3 different."
    assert "byte 36 of the output block at 0x" in first
    assert first.endswith("element 9 as float32: recorded 1.0, replayed 2.0. 1 of 100 elements differ, by 1 at most.")
    assert "\n3 calls replayed: 3 the same" in work.good(*arguments, "--tolerance", 1)
    assert work.hbrt(*arguments, "--diff").stdout.count("output block") == 4


def test_a_call_that_killed_its_core_is_there_without_an_outcome(work: Shell) -> None:
    work.hbrt("run", "--record", "calls", "program.py", 0x1002, 0x1001)
    answer = work.hbrt("replay", "calls", "--image", "image.py")
    assert answer.returncode == 0, answer
    told, summary = answer.stdout.splitlines()[1], answer.stdout.splitlines()[-1]
    assert "did not finish when it was recorded. Replayed, it ends with HB_DSP_CORE_LOST" in told
    assert summary == "5 calls replayed: 4 the same, 0 different."


def test_a_damaged_recording_leaves_nothing_on_its_board(work: Shell) -> None:
    work.environment["HBRT_CORES"] = "1"  # of two, either may run the second call
    work.good("run", "--record", "calls", "program.py")
    before = min((work.cwd / "calls/calls/core0-000002").glob("*.before"))
    before.unlink()
    answer = work.hbrt("replay", "calls", "--image", "image.py")
    assert (answer.returncode, before.name in answer.stderr) == (2, True), answer
    assert "leak" not in answer.stderr


def test_a_recording_that_passes_its_limit_says_so_in_three_places(work: Shell) -> None:
    work.environment["HBRT_CORES"] = "1"
    small = "import dsp_server.detectors.recording as recording\nrecording.MAX_BYTES = 1024\n"
    (work.cwd / "image.py").write_text(f"{small}ADDEND = 1\n{IMAGE}")
    answer = work.hbrt("run", "--record", "calls", "program.py")
    assert answer.returncode == 1
    assert "recording-stopped" in answer.stderr
    assert "exceed the limit of 1.0 KiB per core" in (work.cwd / "calls/index.jsonl").read_text()
    assert "\nThe recording stops early: " in work.good("replay", "calls", "--image", "image.py")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("run", "--record", ".", "program.py"), 2, "exists and is not an empty directory"),
        (("replay", "."), 2, "recording.json: "),
        (("replay", "calls", "--tolerance", "1"), 2, "--tolerance needs --as"),
        (("replay", "calls", "a"), 2, "has no call 'a'; there are none"),
    ],
)
def test_wrong_use_is_refused(work: Shell, arguments: tuple[str, ...], code: int, why: str) -> None:
    (work.cwd / "calls/calls").mkdir(parents=True)
    (work.cwd / "calls/recording.json").write_text('{"format": "hbrt-recording", "version": 1}')
    answer = work.hbrt(*arguments)
    assert (answer.returncode, why in answer.stderr) == (code, True), answer


def test_a_board_of_another_machine_is_not_recorded(tmp_path: Path) -> None:
    link = object.__new__(RemoteLink)
    link.paths = RemoteBoard(Path("127.0.0.1:1"))
    with pytest.raises(WrongUseError, match="is on another machine"):
        link.record(tmp_path / "calls")
    assert not (tmp_path / "calls").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")
def test_the_recorder_for_boards_captures_a_c_program(shell: Shell) -> None:
    samples = REPOSITORY / "samples/c"
    shell.good("cc", "-o", "softmax", samples / "softmax.c", "-lm")
    strict = ("-Wall", "-Wextra", "-Werror")
    shell.good("cc", *strict, "-shared", "-fPIC", "-o", "librecorder.so", samples / "recorder.c", "-ldl")
    shell.environment |= {"RECORD_INTO": "calls", "LD_PRELOAD": str(shell.cwd / "librecorder.so")}
    shell.good("run", "./softmax")
    del shell.environment["LD_PRELOAD"]
    assert shell.good("replay", "calls") == (
        "Runs on a private board: profile j5, DSP image the packaged ops.\n1 call replayed: 1 the same, 0 different.\n"
    )
    (call,) = (shell.cwd / "calls/calls").glob("*/call.json")
    times = json.loads(call.read_text())
    assert 0 < times["submitted_ns"] < times["waited_ns"] < times["ended_ns"]
    told = shell.json("estimate", "calibrate", "calls")
    assert (told["notes"], told["held_out"]) == ([], {})
    assert list(load(shell.cwd / "fitted.toml").measured) == ["softmax"]
    after = next(iter(call.parent.glob("*.after")))
    after.write_bytes(bytes(16))
    assert shell.hbrt("replay", "calls").returncode == 1
