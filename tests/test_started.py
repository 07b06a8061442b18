"""Programs that tests start are as those of a user: they heed Ctrl-C, and one that forks is as a new interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hbrt.board import launch
from tests.limits import PATIENCE_S
from tests.nursery import Nursery, Program, Server, run_program
from tests.shared import Shell, heed_ctrl_c

IGNORED = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
LOADED = "import sys; print('numpy' in sys.modules)"
# What a program finds, and what may be otherwise in each process, as what it is to its parent and to itself.
LOOKING = """
import atexit, gc, json, os, resource, signal, sys, threading
was_loaded = "numpy" in sys.modules
atexit.register(print, "at exit", flush=True)
threading.Thread(target=threading.main_thread().join).start()
me, parent = os.getpid(), os.getppid()
main = {key: str(value).partition(" object at ")[0] for key, value in globals().items() if key[:2] == "__"}
del main["__builtins__"]
streams = [sys.stdin, sys.stdout, sys.stderr]
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "main": main, "directory": os.getcwd(), "environment": dict(os.environ),
    "descriptors": sorted(os.listdir("/proc/self/fd")), "input": sys.stdin.read(),
    "streams": [[s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.newlines] for s in streams],
    "binary": [[type(s.buffer).__name__, s.seekable(), s.isatty(), s is t] for s, t in
               zip(streams, [sys.__stdin__, sys.__stdout__, sys.__stderr__])],
    "ids": [parent, os.getsid(0) == me or os.getsid(0), os.getpgid(0) == me or os.getpgid(0)],
    "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "collects": [gc.isenabled(), *gc.get_threshold()],
    "limits": [resource.getrlimit(number) for number in range(16)], "flags": str(sys.flags),
    "threads": [thread.name for thread in threading.enumerate()][:1], "hook": sys.excepthook is sys.__excepthook__,
    "files": [str(path) for path in sys.path_importer_cache if path == ""], "tests": "tests" in sys.modules,
}))
print(was_loaded)
"""
ENDS = {
    "": "",
    "a code": "sys.exit(7)",
    "a text": "sys.exit('It is over.')",
    "an error": "def fails():\n    1 / 0\nfails()",
    "no program": "x =",
    "an error of an error": "try:\n    1 / 0\nexcept OSError:\n    pass",
    "Ctrl-C": "raise KeyboardInterrupt",
    "Ctrl-C by a signal": "os.kill(me, signal.SIGINT); signal.pause()",
    "a signal": "os.kill(me, signal.SIGTERM)",
    "at once": "os._exit(3)",
    "a hook": "sys.excepthook = lambda kind, error, trace: print(kind, error, trace.tb_lineno, flush=True)\n1 / 0",
}


def is_ignored_in_a_child() -> bool:
    command = [sys.executable, "-c", IGNORED]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=PATIENCE_S).stdout == "True\n"


def test_ctrl_c_reaches_programs_of_a_run_in_the_background(request: pytest.FixtureRequest) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    assert is_ignored_in_a_child()
    heed_ctrl_c()
    assert not is_ignored_in_a_child()


@pytest.fixture(scope="module")
def warm() -> Any:
    """A nursery that forks: what it is asked for first is a new interpreter."""
    nursery = Nursery(launch.start_process)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "nursery", nursery)
        run_program(["-c", ""], PATIENCE_S, Server)
    yield nursery
    nursery.close()


def run(nursery: Nursery | None, arguments: list[str], **options: Any) -> tuple[int, list[str], str]:
    """Exit code and what a program printed, as a fork of the nursery or a new interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "nursery", nursery)
        done = run_program(arguments, PATIENCE_S, Server, **options)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("group", [{}, {"process_group": 0}, {"start_new_session": True}], ids=["", "group", "session"])
@pytest.mark.parametrize("way", ["-c", "-m"])
def test_a_program_that_forks_finds_what_a_new_interpreter_finds(
    warm: Nursery, tmp_path: Path, way: str, group: dict[str, Any]
) -> None:
    file = tmp_path / "looks.py"
    file.write_text(LOOKING)
    arguments = {"-c": ["-c", LOOKING], "-m": ["-m", "looks"]}
    options = {**group, "cwd": tmp_path, "env": {**os.environ, "ONE": "more"}}
    answers = []
    for nursery in (None, warm):
        (tmp_path / "input").write_text("a line\n")
        with (tmp_path / "input").open() as given:
            answers.append(run(nursery, [*arguments[way], "-v", "two words"], stdin=given, **options))
    new, forked = answers
    assert [new[0], new[1][1:], new[2]] == [0, ["False", "at exit"], ""]
    assert [forked[0], forked[1][1:], forked[2]] == [0, ["True", "at exit"], ""]  # it was a fork
    assert json.loads(forked[1][0]) == json.loads(new[1][0])


@pytest.mark.parametrize("way", ["-c", "-m"])
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_forks_ends_as_a_new_interpreter_does(warm: Nursery, tmp_path: Path, way: str, end: str) -> None:
    text = "import atexit, os, signal, sys\nme = os.getpid()\natexit.register(print, 'at exit')\n" + ENDS[end]
    file = tmp_path / "ends.py"
    file.write_text(text)
    arguments = {"-c": ["-c", text], "-m": ["-m", "ends"]}[way]
    new = run(None, arguments, cwd=tmp_path)
    assert run(warm, arguments, cwd=tmp_path) == new


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["-I", "-c", LOADED], {}),
        (["-c", LOADED], {"env": {**os.environ, "LANG": "xx"}}),
        (["-c", LOADED], {"pass_fds": [2]}),
        (["-c", LOADED], {"umask": 0o77}),
    ],
    ids=["an option", "another language", "a descriptor", "a umask"],
)
def test_what_a_fork_cannot_be_is_a_new_interpreter(
    warm: Nursery, arguments: list[str], options: dict[str, Any]
) -> None:
    assert run(warm, arguments, **options) == (0, ["False"], "")


@pytest.mark.parametrize("arguments", [["-c", LOADED], ["looks.py"]], ids=["-c", "a file"])
def test_a_program_whose_callers_are_named_is_a_new_interpreter(
    warm: Nursery, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "looks.py").write_text(LOADED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "nursery", warm)
        assert run_program(arguments, PATIENCE_S, Program, cwd=tmp_path).stdout == "False\n"


SEES = """
import json, os, signal, sys
from dsp_server import hb_dsp_env_init, hb_dsp_start
with open(os.path.join(os.path.dirname(__file__), "seen.json"), "w") as file:
    json.dump({
        "argv": sys.argv[:3], "path": sys.path[1:], "group": os.getpgid(0) == os.getpid(),
        "environment": dict(os.environ), "directory": os.getcwd(), "fds": sorted(os.listdir("/proc/self/fd")),
        "signals": [str(signal.getsignal(number)).split(" at ")[0] for number in sorted(signal.valid_signals())],
        "daemon": os.getsid(os.getppid()) == os.getppid(), "modules": "beside" in sys.modules,
        "streams": [[s.encoding, s.errors, s.write_through] for s in (sys.stdout, sys.stderr)],
    }, file)
with open(os.path.join(os.path.dirname(__file__), "interpreter"), "w") as file:
    file.write(" ".join(sys.orig_argv))
print("a core loads")

def main():
    hb_dsp_env_init()
    hb_dsp_start()
"""
STARTS = """
import os, signal, sys
import beside
from arm_client import connect
sys.path.insert(0, "elsewhere")
signal.signal(signal.SIGUSR1, lambda *_: None)
print("unwritten", end=" ")
with connect() as board:
    log = (board.path / "log").read_text()
    print(log.count("a core loads"), "unwritten" in log)
"""


def test_a_board_that_forks_from_its_program_finds_what_a_new_interpreter_finds(warm: Nursery, tmp_path: Path) -> None:
    (tmp_path / "image.py").write_text(SEES)
    (tmp_path / "beside.py").touch()
    environment = {**os.environ, "HBRT_IMAGE": str(tmp_path / "image.py"), "HBRT_CORES": "1"}
    seen, is_fork = [], []
    for nursery in (None, warm, warm):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Program, "nursery", nursery)
            done = run_program(["-c", STARTS], PATIENCE_S, cwd=tmp_path, env=environment)
        assert (done.returncode, done.stdout) == (0, "unwritten 1 False\n"), done.stderr
        seen.append(json.loads((tmp_path / "seen.json").read_text()))
        is_fork.append("tests.nursery" in (tmp_path / "interpreter").read_text())
    assert is_fork[::2] == [False, True]
    assert seen[2] == seen[0]


def test_a_program_that_forks_is_waited_for_and_killed_as_a_new_interpreter(warm: Nursery) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "nursery", warm)
        text = "print('here', flush=True); input()"
        with Server([sys.executable, "-c", text], stdin=-1, stdout=-1, text=True, process_group=0) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            assert process.poll() is None
            os.killpg(process.pid, signal.SIGKILL)
            assert process.wait(PATIENCE_S) == -signal.SIGKILL
        with contextlib.suppress(ChildProcessError):
            pytest.fail(f"This process has another child: {os.waitpid(process.pid, os.WNOHANG)}")
        with pytest.raises(subprocess.TimeoutExpired):
            run_program(["-c", "import time; time.sleep(1000)"], 0.1, Server)


def test_a_verb_that_asks_runs_in_the_process_of_its_test(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "python", None)
    assert shell.json("ls")["boards"] == []
    shell.environment["OF_THIS_TEST"] = "1"  # which an interpreter may read when it starts
    with pytest.raises(TypeError):
        shell.hbrt("ls")
