"""Cores fork from the fork server, which forks from the young daemon or is a new interpreter: no image must notice."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from dsp_server.lifecycle import fork_server
from dsp_server.lifecycle.fork_server import ForkServer
from dsp_server.process.event_loop import Loop
from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths
from tests.each import each
from tests.limits import PATIENCE_S
from tests.waiting import until

if TYPE_CHECKING:
    from tests.shared import Shell

pytestmark = pytest.mark.usefixtures("new_interpreters")  # a daemon that forks finds what its own start has loaded
# Tells what an image can see of its process, then serves.
IMAGE = """
import json, os, random, signal, sys
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
    "parent": os.getppid() == int(sys.argv[3]),
    "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    "environment": dict(os.environ),
    "random": random.random(),
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


def processes(shell: Shell) -> tuple[psutil.Process, psutil.Process, list[psutil.Process]]:
    """The daemon, its fork server, and the cores that run."""
    daemon = psutil.Process(shell.pid())
    cores = {core["pid"] for core in shell.status()["cores"]}
    (server,) = (child for child in daemon.children() if child.pid not in cores)
    return daemon, server, [child for child in daemon.children() if child.pid in cores]


def how_made(shell: Shell) -> tuple[str, set[str]]:
    """How the fork server and the cores were made: as forks, which run the same interpreter on, or as new programs."""
    daemon, server, cores = processes(shell)
    known = {_stack_of(daemon.pid): "fork of the daemon"}
    how = known.get(_stack_of(server.pid), "program")
    known = {_stack_of(server.pid): "fork"}
    return how, {known.get(_stack_of(core.pid), "program") for core in cores}


def _stack_of(pid: int) -> str:
    """Where a process's stack lies: at random for every program, so that only a fork has its parent's."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return next(line.split("-")[1].split()[0] for line in lines if line.endswith("[stack]"))


def killed(shell: Shell, process: psutil.Process) -> None:
    """Kill the fork server, and wait until the daemon has noticed."""
    process.kill()
    until(lambda: f"The fork server (process {process.pid}) has ended" in shell.good("log"))


def test_an_image_does_not_notice_how_its_process_was_made(shell: Shell) -> None:
    (shell.cwd / "image.py").write_text(IMAGE)
    done = shell.python("-m", "hbrt", "start", "--image", "image.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert how_made(shell) == ("fork of the daemon", {"fork"})
    told = [seen(shell)]
    for is_replaced in (False, True):
        if is_replaced:
            killed(shell, processes(shell)[1])
        done = shell.python("-m", "hbrt", "restart")
        assert (done.returncode, done.stderr) == (0, "")
        told.append(seen(shell))
    assert how_made(shell) == ("program", {"fork"})
    drawn = {one.pop("random") for both in told for one in both}
    assert len(drawn) == 6, "cores draw the same numbers"
    assert told[1] == told[0]
    assert told[2] == told[0]
    assert shell.good("log").count("core 0 loads") == 3


def test_a_daemon_with_threads_starts_its_fork_server_as_a_new_interpreter(shell: Shell) -> None:
    process = shell.start("-m", "hbrt", "start", "--foreground", "--cores", 1)
    assert process.stdout is not None
    assert any("is running" in line for line in process.stdout)
    assert how_made(shell) == ("program", {"fork"})
    shell.good("stop")
    assert process.wait(PATIENCE_S) == 0


def test_ps_tells_the_processes_of_a_board_apart(shell: Shell) -> None:
    shell.good("start", "--board", "titled")
    pid = daemon_pid(BoardPaths(shell.home / "titled")) or 0
    daemon = psutil.Process(pid)
    titled = {f"hbrt {role} of board titled" for role in ("daemon", "fork server", "core 0", "core 1")}
    while {process.cmdline()[0].strip() for process in (daemon, *daemon.children())} != titled:
        pass  # a board that starts sets the daemon's last
    assert daemon.environ()["HBRT_HOME"] == str(shell.home), "the title has overwritten the environment"


def test_forks_keep_nothing_of_the_daemon(shell: Shell) -> None:
    """Above all not the board's lock: it would stay locked while they live."""
    shell.good("start", "--cores", 1)
    shell.good("restart")
    _, server, (core,) = processes(shell)
    for process in (server, core):
        held = {str(entry.readlink()) for entry in Path(f"/proc/{process.pid}/fd").iterdir()}
        assert str(shell.home / "default" / "lock") not in held
        assert not [name for name in held if name.endswith(".sock")]


def test_the_fork_server_has_one_thread_and_no_more_modules_than_cores_need(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    shell.good("restart")
    daemon, server, _ = processes(shell)
    assert (daemon.num_threads() > 1, server.num_threads()) == (True, 1)
    libraries = {Path(line.split()[-1]).name for line in Path(f"/proc/{server.pid}/maps").read_text().splitlines()}
    threaded = ("libzmq", "onnxruntime", "libopenblas", "libgomp", "cv2")  # begin threads when they are loaded or used
    assert not [name for name in libraries for one in threaded if one in name]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_core_that_crashes_is_replaced_and_its_end_is_known(shell: Shell, number: signal.Signals) -> None:
    shell.good("start", "--cores", 1)
    _, _, (core,) = processes(shell)
    core.send_signal(number)
    now = until(lambda: (one := shell.status()["cores"][0])["pid"] not in {core.pid, None} and one)
    assert now["state"] == "running"
    assert number.name in now["last_crash"]
    assert how_made(shell) == ("fork of the daemon", {"fork"})


def test_a_killed_fork_server_ends_no_core_and_is_replaced_with_the_next(shell: Shell) -> None:
    shell.good("start")
    daemon, server, cores = processes(shell)
    killed(shell, server)
    assert set(daemon.children()) == set(cores)
    assert {core["pid"] for core in shell.status()["cores"]} == {core.pid for core in cores}
    cores[0].kill()
    until(lambda: shell.status()["cores"][0]["pid"] not in {cores[0].pid, None})
    _, another, now = processes(shell)
    assert another != server
    assert cores[1] in now


def test_the_fork_server_heeds_no_signal_that_asks_a_board_to_end(shell: Shell) -> None:
    """For systemd sends SIGTERM to all processes of a board, and the daemon ends them in order."""
    shell.good("start", "--cores", 1)
    daemon, server, (core,) = processes(shell)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server.send_signal(number)
    shell.good("restart")
    assert server in daemon.children()
    assert "fork server" not in shell.good("log")
    shell.good("stop")
    assert not server.is_running()
    assert not core.is_running()


def test_forks_end_with_a_daemon_that_is_killed(shell: Shell) -> None:
    shell.good("start")
    shell.good("restart")
    daemon, server, cores = processes(shell)
    daemon.kill()
    assert psutil.wait_procs([server, *cores], PATIENCE_S)[1] == []


def test_what_an_op_leaves_behind_is_not_the_daemon_s(shell: Shell) -> None:
    begun = str(shell.cwd / "begun")
    start = f"""
import os, subprocess
if not os.path.exists({begun!r}):  # the core that is started again leaves nothing behind
    open({begun!r}, "w").close()
    subprocess.Popen(["sleep", "1000"], stdout=open("/dev/null"), stderr=open("/dev/null"))
"""
    (shell.cwd / "image.py").write_text(f"{start}{IMAGE}")
    shell.good("start", "--cores", 1, "--image", "image.py")
    daemon, _, (core,) = processes(shell)
    (left,) = core.children()
    try:
        core.kill()
        until(lambda: left.ppid() != core.pid)
        assert left.ppid() != daemon.pid
    finally:
        left.kill()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    """A fork server of this process, whose forks know no core to be: they end with 1."""
    monkeypatch.setattr(fork_server, "is_young", lambda: False)
    loop = Loop()
    with Path(os.devnull).open("w") as log:
        made = ForkServer("none", log.fileno(), loop, lambda _: None)
        made._begin()
        yield made
        made.close()
    loop.close()


def end_of(pid: int) -> int:
    """Exit code of a child."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_is_a_child_whose_exit_code_arrives(server: ForkServer) -> None:
    before = server.pid
    with Path(os.devnull).open("w") as log:
        assert [end_of(server.fork([log.fileno()] * 2, ["nonsense"])) for _ in range(2)] == [1, 1]
    assert server.pid == before


def test_a_process_that_loses_its_parent_while_a_core_forks_is_collected(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopting, orphans = fork_server._adopting_orphans, []

    @contextlib.contextmanager
    def losing_one() -> Iterator[None]:
        with adopting():
            orphans.append(int(subprocess.check_output(["sh", "-c", "sleep 1000 >/dev/null & echo $!"])))
            yield

    monkeypatch.setattr(fork_server, "_adopting_orphans", losing_one)
    assert end_of(server.fork([2, 2], ["nonsense"])) == 1
    (orphan,) = orphans
    parent = psutil.Process(orphan).ppid()
    os.kill(orphan, signal.SIGKILL)
    assert parent == os.getpid()
    server._loop.step()
    assert not psutil.pid_exists(orphan)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_server_that_does_not_answer_is_replaced(server: ForkServer, number: signal.Signals) -> None:
    before = server.pid
    os.kill(before, number)
    server._channel.settimeout(0.01)
    assert end_of(server.fork([2, 2], ["nonsense"])) == 1
    assert server.pid != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_a_server_that_cannot_be_watched_is_ended(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when epoll has no room: nobody would hear of its end."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(server._loop, "watch", refuse)
    before = set(psutil.Process().children())
    with pytest.raises(OSError, match="No space"):
        ForkServer("none", 2, server._loop, print).fork([], [])
    assert set(psutil.Process().children()) == before


@pytest.mark.parametrize("forks", [0, 1])
def test_the_daemon_hears_that_there_is_no_process_left(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch, forks: int
) -> None:
    fork, parent = os.fork, os.getpid()

    def limited() -> int:
        if forks and os.getpid() == parent:
            return fork()
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", limited)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, server._channel:
        fork_server._fork_core(theirs, [], [], lambda: os._exit(0))
        server._channel = ours
        with pytest.raises(BlockingIOError, match="temporarily unavailable"):
            server.fork([], [])


def test_descriptors_that_cannot_be_sent_are_no_fault_of_the_server(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(*_: object) -> int:
        raise OSError(errno.ETOOMANYREFS, "Too many references")

    before = server.pid
    monkeypatch.setattr(socket, "send_fds", too_many)
    with pytest.raises(OSError, match="Too many references"):
        server.fork([2, 2], ["nonsense"])
    monkeypatch.undo()
    assert (server.pid, end_of(server.fork([2, 2], ["nonsense"]))) == (before, 1)


def test_a_starter_may_ignore_the_ends_of_its_children(shell: Shell) -> None:
    code = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    started = shell.python("-c", code, sys.executable, "-m", "hbrt", "start", "--board", "deaf")
    assert started.returncode == 0, started.stderr
    assert shell.hbrt("restart", "--board", "deaf").returncode == 0
    assert shell.hbrt("stop", "--board", "deaf").returncode == 0


@each(
    "program, answer",
    [
        ("", "True"),
        ("import zmq", "True"),
        ("import zmq; socket = zmq.Context().socket(zmq.PAIR)", "False"),
        ("import threading, time; threading.Thread(target=time.sleep, args=(30,), daemon=True).start()", "False"),
    ],
)
def test_only_a_daemon_with_one_thread_is_young(program: str, answer: str) -> None:
    code = f"{program}\nfrom dsp_server.lifecycle.fork_server import is_young\nprint(is_young())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert said.stdout.strip() == answer
