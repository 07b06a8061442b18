"""The process that a board's cores fork from: no interpreter to start, nothing to import again.

A core then takes 20 ms of CPU time to start, not 290. The daemon itself cannot be forked later: ZeroMQ's threads would
be in an unknown state in a fork, and an image would find whatever the daemon has loaded by then. So the daemon begins
with forking a process that only forks cores. That one is a new interpreter if the daemon already has several threads,
or when it must be replaced. Each core becomes the daemon's own child, so the end of the fork server ends no core.

Images must not see a difference to a new interpreter: ``_become_fresh`` undoes what it would not have. One remains: all
cores of a board hash strings alike, also after a restart, so the order of a set of strings is the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import io
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from dsp_server.process.event_loop import END_SIGNALS, Loop
from dsp_server.process.launch import close_all_but, set_title, start_interpreter
from hbrt.board.descriptors import receive_fds
from hbrt.board.forked import end_with

START_SECONDS = 10.0  # a new server takes 0.3 s, on a busy machine seconds
ANSWER_SECONDS = 2.0  # a fork takes 3 ms; the daemon does nothing else meanwhile
_CHANNEL_FD = 3
_MAX_REQUEST_BYTES = 1 << 16
_MAX_FDS = 253  # the kernel's limit for a message
_PR_SET_CHILD_SUBREAPER = 36


class ForkServer:
    """The fork server of a board, as the daemon sees it.

    Args:
        board: Name of the board.
        log_fd: Receives the server's standard output and error.
        loop: The daemon's event loop.
        say: Receives a sentence if the server has ended by itself.
    """

    def __init__(self, board: str, log_fd: int, loop: Loop, say: Callable[[str], None]) -> None:
        self._board = board
        self._log_fd = log_fd
        self._loop = loop
        self._say = say
        self.pid = self._pidfd = -1

    def fork(self, places: Sequence[int], arguments: Sequence[str]) -> int:
        """Start a core's process as a child of this one; return its id.

        Args:
            places: Descriptors to become 1, 2, 3 and so on; its standard input is empty.
            arguments: Its ``sys.argv`` after the program name (see ``core.process.main``).

        Raises:
            OSError: no process could be started.
        """
        answer, before = b"", _children()
        for _ in range(2):  # it may have been killed, or stopped, since it started
            if self.pid < 0:
                self._begin()
            if answer := self._ask(places, arguments):
                break
            self._end()
        number = int(answer or -errno.ETIMEDOUT)
        for orphan in _children() - before - {number, self.pid}:
            self._adopt(orphan)
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        return number

    def close(self) -> None:
        """End the server; cores that have forked from it continue."""
        self._say = lambda _: None
        self._end()

    def _begin(self) -> None:
        """Start the server.

        Raises:
            OSError: out of processes or descriptors.
        """
        with contextlib.ExitStack() as on_error, contextlib.ExitStack() as opened:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            on_error.callback(ours.close)
            opened.enter_context(theirs)
            places, arguments = (self._log_fd, self._log_fd, theirs.fileno()), (str(os.getpid()), self._board)
            pid = _fork_young(places, arguments) if is_young() else start_interpreter(__name__, places, arguments)
            on_error.callback(os.waitpid, pid, 0)
            on_error.callback(ours.close)  # which ends it
            pidfd = os.pidfd_open(pid)
            on_error.callback(os.close, pidfd)
            self._loop.watch(pidfd, self._end)
            on_error.pop_all()
        ours.settimeout(START_SECONDS)
        self.pid, self._pidfd, self._channel = pid, pidfd, ours

    def _ask(self, places: Sequence[int], arguments: Sequence[str]) -> bytes:
        """Ask for a fork; the answer is its id or a negative error number, empty if the server does not answer.

        Raises:
            OSError: the descriptors cannot be sent.
        """
        with _adopting_orphans(), contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._channel, [json.dumps(arguments).encode()], places)
            answer = self._channel.recv(64)
            self._channel.settimeout(ANSWER_SECONDS)
            return answer
        return b""

    def _adopt(self, pid: int) -> None:
        """Collect a process, of an op, that lost its parent while a core forked, when it ends."""

        def collect() -> None:
            self._loop.unwatch(pidfd)
            os.close(pidfd)
            os.waitpid(pid, 0)

        with contextlib.ExitStack() as on_error, contextlib.suppress(OSError):  # it then remains until the daemon ends
            pidfd = os.pidfd_open(pid)
            on_error.callback(os.close, pidfd)
            self._loop.watch(pidfd, collect)
            on_error.pop_all()

    def _end(self) -> None:
        if self.pid < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._loop.unwatch(self._pidfd)
        self._channel.close()
        os.close(self._pidfd)
        os.waitpid(self.pid, 0)
        self._say(
            f"The fork server (process {self.pid}) has ended or did not answer. Running cores are not affected; the "
            "next core that starts takes longer, as it starts another fork server first."
        )
        self.pid = self._pidfd = -1


def is_young() -> bool:
    """Whether this process may be forked: it has only one thread, including those of libraries."""
    return len([*Path("/proc/self/task").iterdir()]) == 1


def _children() -> set[int]:
    """Return the children of this process; none on a kernel that does not list them."""
    found: set[int] = set()
    for one in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended in the meantime
            found.update(map(int, one.read_text(encoding="ascii").split()))
    return found


@contextlib.contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Make a descendant that loses its parent meanwhile a child of this process."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)  # what an op leaves behind otherwise is not the daemon's to collect


def _fork_young(places: Sequence[int], arguments: Sequence[str]) -> int:
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = _unbuffered(1, sys.stdout), _unbuffered(2, sys.stderr)
        if not sys.flags.safe_path:
            del sys.path[0]  # the daemon's program directory or working directory
        _live(main, places, arguments)
    return pid


def main() -> NoReturn:
    """Be the fork server; arguments: ``daemon board``. Descriptor 3 is its connection to the daemon."""
    from dsp_server.core.process import main as be_core  # imported before the forks, so that all cores share it

    end_with(int(sys.argv[1]))
    set_title("fork server", sys.argv[2])
    for number in END_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # they may go to all processes of a board: the daemon ends this one
    gc.disable()
    channel = socket.socket(fileno=_CHANNEL_FD)
    os.set_inheritable(_CHANNEL_FD, False)
    while True:
        raw, places, _ = receive_fds(channel, _MAX_REQUEST_BYTES, _MAX_FDS)
        if not raw:
            os._exit(0)
        _fork_core(channel, places, json.loads(raw), be_core)
        for fd in places:
            os.close(fd)


def _fork_core(
    channel: socket.socket, places: Sequence[int], arguments: Sequence[str], be_core: Callable[[], NoReturn]
) -> None:
    """Fork a core by way of a process that ends at once: the core thereby becomes a child of the daemon."""
    server = os.getpid()
    try:
        if between := os.fork():
            os.waitpid(between, 0)
            return
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            time.sleep(0.0001)
        channel.send(str(os.getpid()).encode())
    except OSError as error:
        with contextlib.suppress(OSError):  # the daemon has given this server up
            channel.send(str(-(error.errno or errno.EAGAIN)).encode())
        if os.getpid() != server:
            os._exit(1)
        return
    _live(be_core, places, arguments)


def _live(main: Callable[[], NoReturn], places: Sequence[int], arguments: Sequence[str]) -> NoReturn:
    """Run a fork; it never returns to its parent's stack, whose objects it must not finalize."""
    try:
        _become_fresh(places, arguments)
        main()
    except BaseException:  # noqa: BLE001 - the log gets any error, and this process ends here
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


def _become_fresh(places: Sequence[int], arguments: Sequence[str]) -> None:
    signal.set_wakeup_fd(-1)
    for number in END_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # a new program also keeps ignored signals ignored
            signal.signal(number, signal.SIG_DFL)
    os.setpgid(0, 0)  # the daemon handles the terminal's Ctrl-C
    for place, fd in enumerate(places, 1):  # each place is below all descriptors that are yet to be moved
        os.dup2(fd, place)
    close_all_but(*range(len(places) + 1))
    sys.argv = ["-c", *arguments]
    gc.freeze()
    gc.enable()


def _unbuffered(fd: int, model: TextIO) -> io.TextIOWrapper:
    """Make a standard stream like ``python -u`` does, with the daemon's encoding."""
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding=model.encoding, errors=model.errors, write_through=True)
