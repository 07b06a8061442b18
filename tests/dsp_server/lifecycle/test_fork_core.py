"""A core's first process is a fork of the daemon, later ones are new interpreters: an image must not notice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from dsp_server.lifecycle.fork_core import is_young
from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths
from tests.each import each
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

pytestmark = pytest.mark.usefixtures("new_interpreters")  # a daemon that forks finds what its own start has loaded
# Tells what an image can see of its process, then serves.
IMAGE = """
import json, os, signal, sys
from dsp_server import hb_dsp_env_init, hb_dsp_start

def what(fd):
    try:
        name = os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        return None  # of the listing itself
    return name.partition(":[")[0]

fds = {fd: what(fd) for fd in sorted(map(int, os.listdir("/proc/self/fd")))}
seen = {
    "fds": {fd: name for fd, name in fds.items() if name is not None},
    "inheritable": [fd for fd, name in fds.items() if name is not None and os.get_inheritable(fd)],
    "path": sys.path[1:],
    "argv": [sys.argv[0], sys.argv[1], sys.argv[2]],
    "handlers": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)],
    "wakeup": signal.set_wakeup_fd(-1),
    "stdout": [sys.stdout.encoding, sys.stdout.errors, sys.stdout.write_through, type(sys.stdout.buffer).__name__],
    "stderr": [sys.stderr.encoding, sys.stderr.errors, sys.stderr.write_through, type(sys.stderr.buffer).__name__],
    "group": os.getpgid(0) == os.getpid(),
    "session": os.getsid(0) == os.getsid(os.getppid()),
    "directory": os.getcwd(),
    "threads": len(os.listdir("/proc/self/task")),
}
print(f"core {sys.argv[1]} loads")
with open(os.path.join(os.path.dirname(__file__), f"seen-{sys.argv[1]}.json"), "w") as file:
    json.dump(seen, file)

def main():
    hb_dsp_env_init()
    hb_dsp_start()
"""


def seen(shell: Shell) -> list[dict[str, Any]]:
    return [json.loads((shell.cwd / f"seen-{core}.json").read_text()) for core in range(2)]


def how_made(shell: Shell) -> set[str]:
    """How the cores' processes were made: as forks, which run the daemon's interpreter on, or as new programs."""
    daemon = psutil.Process(shell.pid())
    return {"fork" if _stack_of(core.pid) == _stack_of(daemon.pid) else "program" for core in daemon.children()}


def _stack_of(pid: int) -> str:
    """Where a process's stack lies: at random for every program, so that only a fork has its parent's."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return next(line.split("-")[1].split()[0] for line in lines if line.endswith("[stack]"))


def test_an_image_does_not_notice_how_its_process_was_made(shell: Shell) -> None:
    (shell.cwd / "image.py").write_text(IMAGE)
    done = shell.python("-m", "hbrt", "start", "--image", "image.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert how_made(shell) == {"fork"}
    forked = seen(shell)
    done = shell.python("-m", "hbrt", "restart")
    assert (done.returncode, done.stderr) == (0, "")
    assert how_made(shell) == {"program"}
    assert seen(shell) == forked
    assert shell.good("log").count("core 0 loads") == 2


def test_ps_tells_the_daemon_and_its_cores_apart(shell: Shell) -> None:
    shell.good("start", "--board", "titled")
    pid = daemon_pid(BoardPaths(shell.home / "titled")) or 0
    daemon = psutil.Process(pid)
    titled = {f"hbrt {role} of board titled" for role in ("daemon", "core 0", "core 1")}
    while {process.cmdline()[0].strip() for process in (daemon, *daemon.children())} != titled:
        pass  # a board that starts sets them last
    assert daemon.environ()["HBRT_HOME"] == str(shell.home), "the title has overwritten the environment"


def test_a_core_keeps_nothing_of_the_daemon(shell: Shell) -> None:
    """Above all not the board's lock: it would stay locked while the core lives."""
    shell.good("start", "--cores", 1)
    (core,) = psutil.Process(shell.pid()).children()
    held = {str(entry.readlink()) for entry in Path(f"/proc/{core.pid}/fd").iterdir()}
    assert str(shell.home / "default" / "lock") not in held
    assert not [name for name in held if name.endswith(".sock")]


def test_the_first_process_may_crash_and_is_replaced(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    (core,) = psutil.Process(shell.pid()).children()
    core.send_signal(signal.SIGSEGV)
    while (now := shell.status()["cores"][0])["pid"] in {core.pid, None}:
        pass
    assert now["state"] == "running"
    assert "SIGSEGV" in now["last_crash"]


@each(
    "program, answer",
    [
        ("", "True"),
        ("import zmq", "True"),
        ("import zmq; socket = zmq.Context().socket(zmq.PAIR)", "False"),
        ("import threading, time; threading.Thread(target=time.sleep, args=(30,), daemon=True).start()", "False"),
    ],
)
def test_only_a_daemon_with_one_thread_is_forked(program: str, answer: str) -> None:
    code = f"{program}\nfrom dsp_server.lifecycle.fork_core import is_young\nprint(is_young())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert said.stdout.strip() == answer
    assert callable(is_young)
