"""``hbrt run PROGRAM``: what is found in any process of it, and what of the program comes through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arm_client.client import Board
from hbrt.native.files import NotBuiltError, library
from tests.limits import PATIENCE_S
from tests.nursery import run_program

PROGRAM = """
import ctypes, multiprocessing, os, subprocess, sys
import arm_client as hb
print("mine", flush=True)

def leak():
    mem = hb.hbSysMem()
    hb.hbSysAllocMem(mem, 100)
    return mem

def in_child(how):
    hb.connect()
    child = multiprocessing.get_context("fork").Process(target=leak)
    child.start()
    child.join()

def fault():
    mem = leak()
    address = mem.virAddr
    hb.hbSysFreeMem(mem)
    ctypes.memset(address, 1, 4)

{
    "nothing": lambda: None,
    "leak": leak,
    "exit": lambda: (leak(), os._exit(0)),
    "fault": fault,
    "fork": lambda: in_child("fork"),
    "subprocess": lambda: subprocess.run([sys.executable, __file__, "exit"]),
}[sys.argv[1]]()
"""
UNDER_RUN = ["-m", "hbrt", "run"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PROGRAM)
    return path


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_program([*map(str, command)], PATIENCE_S, env={**os.environ, **environment})


def kinds_in(sarif: Path) -> list[tuple[str, str]]:
    """Kind and line of each result."""

    def line_of(result: dict[str, Any]) -> str:
        where = result["locations"][0]["physicalLocation"]
        return f"{Path(where['artifactLocation']['uri']).name}:{where['region']['startLine']}"

    return [(one["ruleId"], line_of(one)) for one in json.loads(sarif.read_text())["runs"][0]["results"]]


@pytest.mark.parametrize(
    ("how", "code", "kinds"),
    [
        ("nothing", 0, []),
        ("leak", 1, [("leak", "mine.py:8")]),
        ("exit", 1, [("leak", "mine.py:8")]),
        ("fork", 1, [("leak", "mine.py:8")]),
        ("subprocess", 1, [("leak", "mine.py:8")]),
        ("fault", -signal.SIGSEGV, [("use-after-free", "mine.py:21")]),
    ],
)
def test_what_any_process_left_is_the_runs(
    program: Path, tmp_path: Path, how: str, code: int, kinds: list[tuple[str, str]]
) -> None:
    sarif = tmp_path / "log.sarif"
    sarif.write_text("of a run before this one")
    done = run(*UNDER_RUN, "--json", program, how, HBRT_SARIF=str(sarif))
    assert done.returncode == code, done.stderr
    assert kinds_in(sarif) == kinds
    assert ("mistake was found" in done.stderr) == (code == 1)
    assert "mine\n" in done.stderr
    document = json.loads(done.stdout)
    own = code if how in {"leak", "fault"} else 0  # another process, or one that ended hard, has left it
    assert (document["program"], document["exit_code"], document["passed"]) == (str(program), own, not kinds)
    assert [found["kind"] for found in document["findings"]] == [kind for kind, _ in kinds]


@pytest.mark.parametrize(
    ("how", "code", "count"), [("nothing", 0, 0), ("fork", 1, 1), ("subprocess", 1, 1), ("exit", 0, 1)]
)
def test_a_program_that_is_its_own_first_process(
    program: Path, tmp_path: Path, how: str, code: int, count: int
) -> None:
    sarif = tmp_path / "log.sarif"
    done = run(program, how, HBRT_CHECK="fail", HBRT_SARIF=str(sarif))
    assert done.returncode == code, done.stderr
    assert [kind for kind, _ in kinds_in(sarif)] == ["leak"] * count


def test_a_started_board_says_what_it_found(program: Path, tmp_path: Path, dsp_board: Board) -> None:
    sarif = tmp_path / "log.sarif"
    for how in ("exit", "fork"):
        done = run(*UNDER_RUN, program, how, HBRT_SARIF=str(sarif), HBRT_BOARD=str(dsp_board.path))
        assert done.returncode == 1, done.stderr
        assert kinds_in(sarif) == [("leak", "mine.py:8")]
    done = run(*UNDER_RUN, program, "nothing", HBRT_SARIF=str(sarif), HBRT_BOARD=str(dsp_board.path))
    assert (done.returncode, kinds_in(sarif)) == (0, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_program_and_verb(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "sleeps.py"
    path.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, *UNDER_RUN, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as verb:
        assert verb.stdout is not None
        watched = os.pidfd_open(int(verb.stdout.readline()))
        verb.send_signal(number)
        assert verb.wait(PATIENCE_S) == -number
        assert verb.stdout.read() == ""  # the program has it open as well: it has ended
        os.close(watched)


def test_what_is_open_and_printed_is_the_programs(tmp_path: Path) -> None:
    path = tmp_path / "talks.py"
    path.write_text("import os, sys\nprint(sys.stdin.read())\nos.write(int(sys.argv[1]), b'here')\nsys.exit(9)\n")
    read, write = os.pipe()
    command = [sys.executable, *UNDER_RUN, str(path), str(write)]
    done = subprocess.run(command, input="typed", stdout=subprocess.PIPE, text=True, check=False, pass_fds=[write])
    os.close(write)
    assert (done.returncode, done.stdout, os.read(read, 10)) == (9, "typed\n", b"here")
    os.close(read)


def test_a_library_of_a_vendors_name_is_found_behind_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "loads.py"
    path.write_text("import ctypes\nprint(ctypes.CDLL('librknnrt.so').rknn_destroy(ctypes.c_uint64(7)))\n")
    try:
        library("libhbrt.so")
    except NotBuiltError as error:
        pytest.skip(str(error))
    done = run(*UNDER_RUN, path, LD_LIBRARY_PATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "-7\n"), done.stderr
    (tmp_path / "librknnrt.so").write_text("none")
    assert "file too short" in run(*UNDER_RUN, path, LD_LIBRARY_PATH=str(tmp_path)).stderr


def test_image_is_the_private_boards(tmp_path: Path, dsp_board: Board) -> None:
    image, mine = tmp_path / "image.py", tmp_path / "mine.py"
    image.write_text(
        "from dsp_server import *\ndef main():\n    hb_dsp_env_init()\n    hb_dsp_init_global_tm()\n"
        "    hb_dsp_register_fn(0x1000, lambda src, dst, tm: 0, 100)\n    hb_dsp_start()\n"
    )
    mine.write_text(
        "import arm_client as hb\nwith hb.connect() as board:\n    board.call(0x1000)\n    print('served')\n"
    )
    done = run(*UNDER_RUN, "--image", image, mine)
    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr
    done = run(*UNDER_RUN, "--board", dsp_board.path, "--image", image, mine)
    assert done.returncode == 2
    assert "--image has no effect: board" in done.stderr
