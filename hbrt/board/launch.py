"""Start a daemon as its own process, and learn whether it runs. Both sides use it; it imports neither."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hbrt.board import private_files
from hbrt.board.files import daemon_pid, make_directory, remove_files
from hbrt.board.log_file import last_lines
from hbrt.board.paths import BoardPaths
from hbrt.errors import BoardError, DidNotStartError
from hbrt.status import Status

LOAD_SECONDS = 60.0
SPARE_SECONDS = 10.0  # the daemon itself observes load_seconds; this is for one that cannot
END_SECONDS = 5.0
# A start loads only lasting objects; garbage collection would take 5% of it. The running daemon enables it.
PROGRAM = "import gc; gc.disable(); from dsp_server.daemon.daemon import main; main()"
READY_FD, LIFELINE_FD, CONSOLE_FD = 3, 4, 5  # where a launched daemon finds them
_HIGH_FD = 100  # out of the way of these places
FEWEST_FDS = 128  # per process: a daemon with two cores needs about 110 while they start
_KERNEL_CALLS: dict[str, Callable[[], int]] = {  # for the DDR, for the ends of processes, for doorbells
    "memfd_create": lambda: os.memfd_create("hbrt", os.MFD_CLOEXEC),
    "pidfd_open": lambda: os.pidfd_open(os.getpid()),
    "eventfd": lambda: os.eventfd(0, os.EFD_CLOEXEC),
}


class DaemonConfig(NamedTuple):
    """The initial configuration of a daemon."""

    directory: str
    image: str | None = None
    cores: int = 2  # DSP cores; a profile may have none
    ddr_bytes: int = 2 << 30
    ddr_base: int | None = None  # physical address of the DDR's first byte; None for the profile's
    is_reloading: bool = False
    is_private: bool = False  # ends with the process that started it, removing its directory
    load_seconds: float = LOAD_SECONDS  # time limit for loading the image
    is_recovering: bool = True  # whether a crashed core restarts automatically
    profile: str = ""  # the daemon's HBRT_PROFILE; empty for this process's


class Launched(NamedTuple):
    """A running daemon."""

    paths: BoardPaths
    pid: int
    lifeline: int  # a private daemon ends when the last copy of this descriptor closes; -1 for others
    removed: tuple[str, ...] = ()  # names of files left by a dead daemon


def launch(config: DaemonConfig, *, has_console: bool = False) -> Launched:
    """Start a daemon, detached from this terminal and session, and wait until its board is running.

    Args:
        config: Its configuration.
        has_console: Whether ops' output and the board's findings also go to this process's standard error.

    Raises:
        DidNotStartError: it could not start; carries the daemon's message, or the end of its log.
        BoardError: the board's directory cannot be used.
    """
    check_machine()
    paths = BoardPaths(Path(config.directory))
    make_directory(paths)
    try:
        pid, ready_read, life_write = _spawn(config, paths, has_console=has_console)
    except OSError as error:
        raise BoardError(f"Cannot start the daemon of board {paths.name}: {error.strerror}.") from None
    try:
        removed = await_running(pid, ready_read, config)
    except BaseException:
        os.close(life_write)  # which ends a daemon that is not running yet, however far this has come
        raise
    if not config.is_private:
        os.close(life_write)
        life_write = -1
    return Launched(paths, pid, life_write, removed)


def _spawn(config: DaemonConfig, paths: BoardPaths, *, has_console: bool) -> tuple[int, int, int]:
    """Start the daemon's process; returns its id, the descriptor for its report, and its lifeline.

    Raises:
        OSError: no process or file descriptor left. BoardError: the log cannot be opened.
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
        # Passed by number, so that a process started by another thread at the same time inherits none.
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
        places: Its descriptors: which number gets which of this process's. All others are closed.

    Raises:
        OSError: no process could be created.
    """
    actions = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in places.items()]
    return os.posix_spawn(sys.executable, argv, environment, file_actions=actions, setsid=True)


def _standard_error() -> int:
    """Return a copy of this process's standard error above a daemon's descriptor numbers; -1 if it has none."""
    if sys.__stderr__ is None:  # another file may be open as descriptor 2
        return -1
    try:
        return fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except OSError:
        return -1


def check_machine() -> None:
    """Fail early if a board cannot run here; a later failure would have a different message, or none.

    Raises:
        BoardError: this process's limit of descriptors is too low for a daemon with two cores and a program, or the
            kernel refuses what a board is made of, as a sandbox's filter of system calls does.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEWEST_FDS:
        raise BoardError(
            f"A board needs at least {FEWEST_FDS} file descriptors per process, but this process may have {soft}: "
            "raise the limit, for example with 'ulimit -n 1024'."
        )
    for name, call in _KERNEL_CALLS.items():
        try:
            os.close(call())
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                continue
            raise BoardError(
                f"A board needs {name}, which this machine refuses: {error.strerror}. If this is a sandbox or "
                "a container, allow it in its seccomp profile; 'hbrt doctor' checks everything else."
            ) from None


def _pipe(*, write_high: bool) -> tuple[int, int]:
    """Create a pipe whose daemon end has a high number."""
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
    """Open a descriptor that appends to a board's log.

    Raises:
        BoardError: the log cannot be opened.
    """
    try:
        return private_files.open_file(paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        raise BoardError(f"Cannot open the log {paths.log}: {error.strerror}.") from None


def await_running(pid: int, ready_fd: int, config: DaemonConfig) -> tuple[str, ...]:
    """Wait for a new daemon's report; closes ``ready_fd``.

    Args:
        pid: The daemon, a child of this process. It is killed if it fails to start, or if this wait is interrupted.
        ready_fd: Receives one JSON line from it.
        config: Its configuration.

    Returns:
        Names of files left by a dead daemon and removed by this one.

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
        why = f"Its daemon was silent for {config.load_seconds + SPARE_SECONDS:.0f} s. The end of its log:\n{tail}"
    else:
        status = Status(answer.get("status", Status.HB_SYS_NOT_RUNNING))
        why = answer.get("text") or f"Its daemon ended before it was ready. The end of its log:\n{tail}"
    if status != Status.HB_SYS_INVALID_ARGUMENT:  # otherwise the message is about the request
        why = f"Board {paths.name} did not start. {why}"
    raise DidNotStartError(status, why)


def _read_to_end(fd: int, timeout_s: float) -> bytes | None:
    """Return everything received until the other end closes; None if that takes too long."""
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
    """Stop a private board, and remove what its daemon left if it was killed.

    Args:
        daemon: Its daemon, a child of this process.
        seconds: Time limit before the daemon is killed; None for no limit.
    """
    with contextlib.suppress(OSError):  # a program that closes all descriptors has closed it
        os.close(daemon.lifeline)
    if seconds is None:
        with contextlib.suppress(ChildProcessError):  # someone else reaped it
            os.waitpid(daemon.pid, 0)
    else:
        _collect(daemon.pid, seconds)
    _remove_left(daemon.paths)


def _remove_left(paths: BoardPaths) -> None:
    """Remove the files of a private board, unless another daemon is serving it by now."""
    with contextlib.suppress(BoardError):  # no longer a board's directory
        if daemon_pid(paths) is None:
            remove_files(paths, keep_log=False)


def _end(pid: int) -> None:
    """Make sure that a child has ended, and reap it."""
    _collect(pid, END_SECONDS, signal.SIGTERM)


def _collect(pid: int, seconds: float, first: signal.Signals | None = None) -> None:
    """Send a child a signal and wait for it to end; kill it after this many seconds."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return  # someone else reaped it
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
    """Return the last lines of a board's log, or a note that there are none."""
    try:
        found = last_lines(paths.log, lines)
    except OSError:
        return "(no log)"
    return found.decode("utf-8", "replace").removesuffix("\n") or "(empty log)"
