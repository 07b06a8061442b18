"""Starting a daemon as its own process, and hearing whether it runs. Both sides use it; it imports neither."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hbrt.board import private_files
from hbrt.board.files import daemon_pid, make_directory, remove_files
from hbrt.board.log_file import last_lines
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError, DidNotStartError
from hbrt.status import Status

LOAD_SECONDS = 60.0
SPARE_SECONDS = 10.0  # the daemon itself keeps to load_seconds; this is for one that cannot
END_SECONDS = 5.0
# What a start loads stays: collecting garbage meanwhile would be a twentieth of it. The daemon enables it when it runs.
PROGRAM = "import gc; gc.disable(); from dsp_server.daemon.daemon import main; main()"
READY_FD, LIFELINE_FD, CONSOLE_FD = 3, 4, 5  # where a launched daemon finds them
_HIGH_FD = 100  # out of the way of these places
FEWEST_FDS = 128  # of each process: a daemon with two cores takes about 110 while these start


class DaemonConfig(NamedTuple):
    """The configuration that a daemon starts with."""

    directory: str
    image: str | None = None
    cores: int = 2  # DSP cores; a profile may have none
    ddr_bytes: int = 2 << 30
    ddr_base: int | None = None  # physical address of its first byte; None for the profile's
    is_reloading: bool = False
    is_private: bool = False  # ends with the process that started it, and removes its directory
    load_seconds: float = LOAD_SECONDS  # how long an image may take to load
    watchdog_ms: int | None = None  # time limit of ops that have no budget; 0 for none, None for HBRT_WATCHDOG_MS
    is_recovering: bool = True  # whether a core that crashed starts again by itself
    profile: str = ""  # as of HBRT_PROFILE, which it is for the daemon; empty for this process's


class Launched(NamedTuple):
    """A daemon that runs."""

    paths: BoardPaths
    pid: int
    lifeline: int  # a private daemon ends when this descriptor's last copy is closed; -1 for others
    removed: tuple[str, ...] = ()  # names of files that a dead daemon had left


def launch(config: DaemonConfig, *, has_console: bool = False) -> Launched:
    """Start a daemon, detached from this terminal and session, and wait until its board is running.

    Args:
        config: Its configuration.
        has_console: Whether what ops say and what the board finds goes to this process's standard error, too.

    Raises:
        DidNotStartError: it could not start; the message has the daemon's own sentence, or the end of its log.
        BoardError: the board's directory cannot be used.
    """
    check_descriptors()
    paths = BoardPaths(Path(config.directory))
    make_directory(paths)
    try:
        pid, ready_read, life_write = _spawn(config, paths, has_console=has_console)
    except OSError as error:
        raise BoardError(f"The daemon of board {paths.name} cannot be started: {error.strerror}.") from None
    try:
        removed = await_running(pid, ready_read, config)
    except BaseException:
        os.close(life_write)  # which ends a daemon that has not come to run, however far this one has come
        raise
    if not config.is_private:
        os.close(life_write)
        life_write = -1
    return Launched(paths, pid, life_write, removed)


def _spawn(config: DaemonConfig, paths: BoardPaths, *, has_console: bool) -> tuple[int, int, int]:
    """Start the daemon's process; returns its id, where it says how it went, and its lifeline.

    Raises:
        OSError: there is no process, or no file descriptor. BoardError: the log cannot be opened.
    """
    with contextlib.ExitStack() as given, contextlib.ExitStack() as kept:

        def closed_by(stack: contextlib.ExitStack, fd: int) -> int:
            stack.callback(os.close, fd)
            return fd

        log = closed_by(given, open_log(paths))
        null = closed_by(given, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        ready_read, ready_write = map(closed_by, (kept, given), _pipe(write_high=True))
        life_read, life_write = map(closed_by, (given, kept), _pipe(write_high=False))
        root = str(Path(__file__).resolve().parents[2])
        program = f"import sys; sys.path.append({root!r})\n{PROGRAM}"
        console = _standard_error() if has_console else -1
        fds = (READY_FD, LIFELINE_FD, CONSOLE_FD if console >= 0 else -1)
        argv = [sys.executable, "-P", "-c", program, json.dumps(config._asdict()), *map(str, fds)]
        # Given by place: a process that another thread starts at the same time inherits nothing of it.
        places = {0: null, 1: log, 2: log, READY_FD: ready_write, LIFELINE_FD: life_read}
        if console >= 0:
            places[CONSOLE_FD] = closed_by(given, console)
        environment = {**os.environ, **({"HBRT_PROFILE": config.profile} if config.profile else {})}
        pid = start_process(argv, environment, places)
        kept.pop_all()
    return pid, ready_read, life_write


def start_process(argv: list[str], environment: Mapping[str, str], places: Mapping[int, int]) -> int:
    """Start an interpreter in its own session; returns its id.

    Args:
        argv: Its command.
        environment: Its environment.
        places: Its descriptors: which of this process's is at which number. All others are closed.

    Raises:
        OSError: there is no process.
    """
    actions = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in places.items()]
    return os.posix_spawn(sys.executable, argv, environment, file_actions=actions, setsid=True)


def _standard_error() -> int:
    """A copy of this process's standard error, out of the way of a daemon's places; -1 when it has none."""
    if sys.__stderr__ is None:  # another file may be open as number 2
        return -1
    try:
        return fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except OSError:
        return -1


def check_descriptors() -> None:
    """Say at once that a board cannot run with so few descriptors: the first failure would have another message.

    Raises:
        BoardError: the limit of this process is below what a daemon with two cores and a program needs.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEWEST_FDS:
        raise BoardError(
            f"A board needs {FEWEST_FDS} file descriptors a process at least, and this process may have {soft}: "
            "raise the limit, as with 'ulimit -n 1024'."
        )


def _pipe(*, write_high: bool) -> tuple[int, int]:
    """A pipe whose end for the daemon has a high number."""
    ends = list(os.pipe())
    low = ends[write_high]
    try:
        ends[write_high] = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except OSError:
        os.close(ends[not write_high])
        raise
    finally:
        os.close(low)
    return ends[0], ends[1]


def open_log(paths: BoardPaths) -> int:
    """Descriptor that appends to a board's log.

    Raises:
        BoardError: the log cannot be opened.
    """
    try:
        return private_files.open_file(paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        raise BoardError(f"The log {paths.log} cannot be opened: {error.strerror}.") from None


def await_running(pid: int, ready_fd: int, config: DaemonConfig) -> tuple[str, ...]:
    """Wait for what a daemon that was just started says; closes ``ready_fd``.

    Args:
        pid: The daemon, a child of this process. It is ended when it does not come to run, or this wait is interrupted.
        ready_fd: Gets one JSON line from it.
        config: Its configuration.

    Returns:
        Names of files that a dead daemon had left, and this one removed.

    Raises:
        DidNotStartError: as for ``launch``.
    """
    paths = BoardPaths(Path(config.directory))
    try:
        message = _read_to_end(ready_fd, config.load_seconds + SPARE_SECONDS)
    except BaseException:
        _end(pid)
        if config.is_private:
            _remove_left(paths)
        raise
    finally:
        os.close(ready_fd)
    answer = _parse(message or b"")
    if answer.get("ok"):
        return tuple(answer["removed"])
    _end(pid)
    tail = log_tail(paths)
    if config.is_private:
        _remove_left(paths)
    if message is None:
        status = Status.HB_DSP_TIMEOUT
        why = f"Its daemon said nothing for {config.load_seconds + SPARE_SECONDS:.0f} s. The end of its log:\n{tail}"
    else:
        status = Status(answer.get("status", Status.HB_SYS_NOT_RUNNING))
        why = answer.get("text") or f"Its daemon ended before it was ready. The end of its log:\n{tail}"
    if status != Status.HB_SYS_INVALID_ARGUMENT:  # else the sentence is about what was asked for
        why = f"The board {paths.name} did not start. {why}"
    raise DidNotStartError(status, why)


def _read_to_end(fd: int, timeout_s: float) -> bytes | None:
    """Everything that comes until the other end closes; None when that takes too long."""
    deadline = time.monotonic() + timeout_s
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    message = b""
    while True:
        left_ms = (deadline - time.monotonic()) * 1000
        if left_ms <= 0 or not poller.poll(left_ms):
            return None
        chunk = os.read(fd, 65536)
        message += chunk
        if not chunk:
            return message


def _parse(message: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(message)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def end_private(daemon: Launched, seconds: float | None = None) -> None:
    """End a private board, and remove what its daemon left if it was killed.

    Args:
        daemon: Its daemon, a child of this process.
        seconds: How long the daemon may take before it is killed; None for as long as it takes.
    """
    os.close(daemon.lifeline)
    if seconds is None:
        with contextlib.suppress(ChildProcessError):  # someone else collected it
            os.waitpid(daemon.pid, 0)
    else:
        _collect(daemon.pid, seconds)
    _remove_left(daemon.paths)


def _remove_left(paths: BoardPaths) -> None:
    """Remove the files of a private board, unless another daemon serves it by now."""
    with contextlib.suppress(BoardError):  # of a directory that is not a board's any more
        if daemon_pid(paths) is None:
            remove_files(paths, keep_log=False)


def _end(pid: int) -> None:
    """Make sure that a child has ended, and collect it."""
    _collect(pid, END_SECONDS, signal.SIGTERM)


def _collect(pid: int, seconds: float, first: signal.Signals | None = None) -> None:
    """Wait for the end of a child, after a first signal; kill it after this many seconds."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return  # someone else collected it
    try:
        if first is not None:
            signal.pidfd_send_signal(pidfd, first)
        if not select.select([pidfd], [], [], seconds)[0]:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ChildProcessError, ProcessLookupError):
        pass  # as above
    finally:
        os.close(pidfd)


def log_tail(paths: BoardPaths, lines: int = 15) -> str:
    """Last lines of a board's log, or a note that there is none."""
    try:
        found = last_lines(paths.log, lines)
    except OSError:
        return "(no log)"
    return found.decode("utf-8", "replace").removesuffix("\n") or "(empty log)"
