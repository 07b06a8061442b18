"""Starting a daemon as its own process: what its starter hears, and what is left when it does not start."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hbrt.board import launch as launch_module
from hbrt.board.files import daemon_pid
from hbrt.board.launch import DaemonConfig, launch, log_tail
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError, DidNotStartError
from hbrt.status import Status
from tests.limits import PATIENCE_S, open_descriptors
from tests.waiting import await_end

if TYPE_CHECKING:
    from tests.shared import Shell

pytestmark = pytest.mark.usefixtures("new_interpreters")


@pytest.fixture
def config(tmp_path_factory: pytest.TempPathFactory) -> DaemonConfig:
    return DaemonConfig(str(tmp_path_factory.mktemp("boards") / "board"), cores=1, ddr_bytes=1 << 20, is_private=True)


def _pretend(monkeypatch: pytest.MonkeyPatch, program: str) -> list[int]:
    """Start this program in the daemon's place; returns its process ids."""
    pids: list[int] = []
    real = os.posix_spawn

    def spawn(path: str, argv: list[str], *args: object, **options: object) -> int:
        pids.append(real(path, [*argv[:3], program, *argv[4:]], *args, **options))  # type: ignore[arg-type]
        return pids[-1]

    monkeypatch.setattr(os, "posix_spawn", spawn)
    return pids


def _has_ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("name", ["memfd_create", "pidfd_open", "eventfd"])
def test_a_call_that_a_sandbox_refuses_is_named(
    config: DaemonConfig, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, name, refuse)
    with pytest.raises(BoardError, match=f"A board needs {name}, which this machine refuses: Operation not permitted"):
        launch(config)
    assert not Path(config.directory).exists()


def test_launched_daemon_is_detached_and_its_own_session(config: DaemonConfig) -> None:
    launched = launch(config)
    assert os.getsid(launched.pid) == launched.pid
    descriptors = [str(Path(f"/proc/{launched.pid}/fd/{fd}").readlink()) for fd in range(3)]
    assert descriptors == [os.devnull, f"{config.directory}/log", f"{config.directory}/log"]
    assert launched.removed == ()
    os.close(launched.lifeline)
    os.waitpid(launched.pid, 0)
    assert not Path(config.directory).exists()


def test_public_daemon_lives_on_without_its_starter(config: DaemonConfig) -> None:
    program = (
        "import json, sys; from hbrt.board.launch import *; "
        "launched = launch(DaemonConfig(**json.loads(sys.argv[1]))); print(launched.pid, launched.lifeline)"
    )
    asked = json.dumps(config._replace(is_private=False)._asdict())
    said = subprocess.run([sys.executable, "-c", program, asked], check=True, capture_output=True, text=True).stdout
    pid, lifeline = map(int, said.split())
    assert lifeline == -1
    assert daemon_pid(BoardPaths(Path(config.directory))) == pid
    os.kill(pid, signal.SIGTERM)
    await_end(pid)


DEATHS = {
    "dies": ("import os; os._exit(5)", Status.HB_SYS_NOT_RUNNING, "Its daemon ended before it was ready."),
    "raises": ("raise LookupError('lost')", Status.HB_SYS_NOT_RUNNING, "LookupError: lost"),
    "talks nonsense": ("import os; os.write(3, b'[]')", Status.HB_SYS_NOT_RUNNING, "Its daemon ended before it was"),
    "refuses": (
        'import os; os.write(3, b\'{"ok": false, "status": -6000129, "text": "Not today."}\')',
        Status.HB_SYS_INVALID_ARGUMENT,
        "Not today.",
    ),
    "says nothing": ("import time; time.sleep(1000)", Status.HB_DSP_TIMEOUT, "Its daemon was silent for"),
}


@pytest.mark.parametrize("case", DEATHS)
def test_daemon_that_does_not_come_to_run_is_told_and_leaves_nothing(
    config: DaemonConfig, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    program, status, text = DEATHS[case]
    monkeypatch.setattr(launch_module, "SPARE_SECONDS", 0.3)
    pids = _pretend(monkeypatch, program)
    open_before = open_descriptors()
    with pytest.raises(DidNotStartError) as caught:
        launch(config._replace(load_seconds=0.2 if case == "says nothing" else 20.0))
    assert text in str(caught.value)
    assert caught.value.status == status
    assert _has_ended(pids[0])
    assert not Path(config.directory).exists()
    assert open_descriptors() == open_before


@pytest.mark.parametrize("is_private", [False, True])
def test_starter_that_is_interrupted_ends_the_daemon(
    config: DaemonConfig, monkeypatch: pytest.MonkeyPatch, *, is_private: bool
) -> None:
    pids = _pretend(monkeypatch, "import time; time.sleep(1000)")
    main = threading.get_ident()
    real = launch_module._read_to_end

    def read_interrupted(fd: int, timeout_s: float) -> bytes | None:
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
        return real(fd, timeout_s)

    monkeypatch.setattr(launch_module, "_read_to_end", read_interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(config._replace(is_private=is_private))
    assert _has_ended(pids[0])
    assert Path(config.directory).exists() is not is_private


def test_process_that_another_thread_starts_inherits_nothing_of_a_launch(
    config: DaemonConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the lifeline or of the ready pipe in a stranger would keep the board, or its starter, waiting."""
    seen: list[int] = []
    real = os.posix_spawn
    before = _pipes_of_a_stranger()

    def spawn(path: str, argv: list[str], *args: object, **options: object) -> int:
        monkeypatch.setattr(os, "posix_spawn", real)
        seen.append(_pipes_of_a_stranger())
        return real(path, argv, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "posix_spawn", spawn)
    launched = launch(config)
    assert seen == [before]
    os.close(launched.lifeline)
    os.waitpid(launched.pid, 0)


def _pipes_of_a_stranger() -> int:
    """How many pipes a process has that is started now and closes nothing; its own output is one."""
    listing = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')[:-1]])"
    with subprocess.Popen([sys.executable, "-c", listing], stdout=subprocess.PIPE, close_fds=False) as stranger:
        return stranger.communicate()[0].decode().count("pipe:")


def test_log_tail_is_the_end_or_a_note(tmp_path: Path) -> None:
    paths = BoardPaths(tmp_path)
    assert log_tail(paths) == "(no log)"
    paths.log.write_bytes(b"")
    assert log_tail(paths) == "(empty log)"
    paths.log.write_bytes(b"".join(b"line %d\xff\n" % number for number in range(100)))
    assert log_tail(paths, 2) == "line 98\ufffd\nline 99\ufffd"


def test_log_tail_of_a_log_that_is_larger_than_memory(tmp_path: Path) -> None:
    paths = BoardPaths(tmp_path)
    with paths.log.open("wb") as file:
        file.truncate(1 << 40)  # a hole, which takes no room
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    assert log_tail(paths, 2) == "last but one\nlast"


def test_too_few_descriptors_are_named_before_anything_is_started(shell: Shell) -> None:
    few = ["sh", "-c", f"ulimit -n 64; exec {sys.executable} -m hbrt start"]
    answer = subprocess.run(few, env=shell.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert answer.stderr.endswith(
        "A board needs at least 128 file descriptors per process, but this process may have 64: raise the limit, "
        "for example with 'ulimit -n 1024'.\n"
    )
    assert "Traceback" not in answer.stderr
    assert shell.hbrt("status").returncode == 3


def test_a_daemon_whose_directory_was_removed_ends_and_leaves_the_next_one_its_files(config: DaemonConfig) -> None:
    shared = config._replace(is_private=False)
    first = launch(shared)
    shutil.rmtree(config.directory)
    second = launch(shared)
    os.waitpid(first.pid, 0)  # nobody can reach it anymore
    files = sorted(path.name for path in Path(config.directory).iterdir())
    assert daemon_pid(second.paths) == second.pid
    assert {"attach.sock", "control.sock", "lock"} <= set(files)
    os.kill(second.pid, signal.SIGTERM)
    os.waitpid(second.pid, 0)
