"""However a program that uses a board ends: no process, socket, directory or shared memory of it is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Left

MARK = "PYTEST_HBRT_RUN"

ATTACH = """
import os, signal, sys, threading
from arm_client.client import connect
board = connect()
block = board.from_array(list(range(1000)))
board.ping()
"""
IMAGE = """
import time
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def slow(input, output, tm):
    input[0] = 1
    time.sleep(1000)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, slow)
    hb_dsp_start()
"""
SAY = "print('ready', flush=True)\n"
WAIT = "signal.pause()\n"
RUN_SLOW = """
flags = board.alloc(8)
task = board.submit(0x1000, flags)
while not flags.view()[0]:
    pass
"""

# Each ends by itself.
ENDINGS: dict[str, str] = {
    "at its end": "",
    "by abort": "os.abort()",
    "at its end, with a thread that waits": "threading.Thread(target=board.ping, daemon=True).start()",
    "at its end, with an op that runs": RUN_SLOW,
    "by os._exit, with an op that runs": RUN_SLOW + "os._exit(0)",
    "by an exception, with callbacks": "board.submit(0).add_done_callback(print); raise RuntimeError('oops')",
    "with a child that continues": "os.fork() or (signal.setitimer(signal.ITIMER_REAL, 0.2), signal.pause())",
    "with two boards": "from arm_client.client import private_board\\nwith private_board() as other: other.ping()",
}
# Each waits until it is ended.
SIGNALS: dict[str, tuple[str, signal.Signals]] = {
    "Ctrl-C while it waits for a task": (RUN_SLOW + SAY + "task.result()", signal.SIGINT),
    "SIGTERM": (WAIT, signal.SIGTERM),
    "SIGHUP": (WAIT, signal.SIGHUP),
    "SIGKILL while it waits for a task": (RUN_SLOW + SAY + "task.result()", signal.SIGKILL),
}


class Place:
    """Where a program runs: its home for boards, its mark, and what it leaves."""

    def __init__(self, home: Path, cwd: Path, left: type[Left]) -> None:
        self.home = home
        self.cwd = cwd
        (cwd / "image.py").write_text(IMAGE)
        mark = home.name
        self.left = left(mark, home)
        self.environment = {
            **os.environ,
            "HBRT_HOME": str(home / "boards"),
            "HBRT_IMAGE": str(cwd / "image.py"),
            "HBRT_AUTOSTART": "1",
            MARK: mark,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,  # a terminal's Ctrl-C goes to the whole group
        )

    def check(self) -> None:
        assert self.left.processes() == []
        boards = self.home / "boards"
        if boards.exists():
            boards.rmdir()  # the user's own directory; nothing may be in it
        assert self.left.problems() == []


def await_file(path: Path, program: subprocess.Popen[str]) -> None:
    """Wait until a program that runs has made a file; leaves it the CPU meanwhile."""
    while not path.exists():
        assert program.poll() is None
        time.sleep(0.005)


@pytest.fixture
def place(tmp_path: Path, left: type[Left]) -> Iterator[Place]:
    home = Path(tempfile.mkdtemp(prefix="hbrt-n-", dir="/tmp"))
    place = Place(home, tmp_path, left)
    yield place
    for process in place.left.processes():
        process.kill()
    shutil.rmtree(home)


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_of_a_program_that_ends(place: Place, ending: str) -> None:
    program = place.start("-c", ATTACH + ENDINGS[ending].replace("\\n", "\n"))
    output, _ = program.communicate()
    expected = {
        "by abort": -signal.SIGABRT,
        "by an exception, with callbacks": 1,
    }
    assert program.returncode == expected.get(ending, 0), output
    place.check()


@pytest.mark.usefixtures("hangups_count")
@pytest.mark.parametrize("way", SIGNALS)
def test_nothing_is_left_of_a_program_that_is_ended(place: Place, way: str) -> None:
    rest, number = SIGNALS[way]
    program = place.start("-c", ATTACH + ("" if SAY in rest else SAY) + rest)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    os.killpg(program.pid, number)
    output, _ = program.communicate()
    assert program.returncode in {-number, 1}, output
    place.check()


def test_nothing_is_left_of_a_program_that_is_killed_while_its_board_starts(place: Place) -> None:
    (place.cwd / "image.py").write_text(
        "open('loading', 'w').close()\n" + IMAGE.replace("def main():", "time.sleep(1000)\n\ndef main():")
    )
    program = place.start("-c", ATTACH)
    await_file(place.cwd / "loading", program)
    os.killpg(program.pid, signal.SIGKILL)
    program.communicate()
    place.check()


def test_default_home_goes_with_its_last_board(place: Place) -> None:
    runtime = place.home / "run"
    runtime.mkdir()
    del place.environment["HBRT_HOME"]
    place.environment["XDG_RUNTIME_DIR"] = str(runtime)
    program = place.start(
        "-c", ATTACH + "import pathlib; print(list(pathlib.Path(sys.argv[1]).glob('hbrt/*')))", str(runtime)
    )
    output, _ = program.communicate()
    assert program.returncode == 0
    assert "private-" in output
    assert list(runtime.iterdir()) == []
    runtime.rmdir()
    place.check()


TESTS = """
import pytest

def test_good(dsp_board):
    dsp_board.ping()

def test_bad(dsp_board):
    kept = dsp_board.alloc(100)
    assert kept is None

def test_that_leaves_memory(dsp_board):
    global kept
    kept = dsp_board.alloc(100)

@pytest.mark.dsp_board(image="image.py", fresh=True)
def test_with_a_task_that_runs(dsp_board):
    flags = dsp_board.alloc(8)
    task = dsp_board.submit(0x1000, flags)
    while not flags.view()[0]:
        pass
    (lambda: SAY)()
"""


@pytest.mark.long
@pytest.mark.parametrize("how", ["with workers", "Ctrl-C", "SIGKILL"])
def test_nothing_is_left_of_a_test_run(place: Place, how: str) -> None:
    wait = "import pathlib, signal; pathlib.Path('waiting').touch(); signal.pause()"
    is_ended = how in {"Ctrl-C", "SIGKILL"}
    (place.cwd / "test_mine.py").write_text(TESTS.replace("(lambda: SAY)()", wait if is_ended else "pass"))
    place.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others' plugins are most of a short run's time
    options = ["-q", "-p", "no:cacheprovider", "-p", "arm_client.testing"]
    run = place.start("-m", "pytest", *options, *(["-p", "xdist", "-n", "2"] if how == "with workers" else []))
    if is_ended:
        await_file(place.cwd / "waiting", run)
        os.killpg(run.pid, signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
    output, _ = run.communicate()
    if not is_ended:
        assert "test_bad" in output
        assert run.returncode == 1, output
    place.check()


def test_check_finds_a_process_that_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: it sees a process that was detached, and a file."""
    monkeypatch.setattr(sys.modules[type(place.left).__module__], "ENDING_S", 0.1)
    program = place.start("-c", "import os, time; os.setsid() if os.fork() == 0 else os._exit(0); time.sleep(1000)")
    program.wait()
    assert program.stdout is not None
    program.stdout.close()
    (place.home / "file").write_text("")
    problems = place.left.problems()
    assert len(problems) == 2
    assert problems[0].startswith("Process ")
    assert problems[1] == f"{place.home / 'file'} is there."
    for process in place.left.processes():
        process.kill()
