"""Daemons of boards that fork from one warm process: nothing is imported again, a third of the work of a start.

A test process has such a process beside it. A daemon out of it is the test process's own child, in a session of its
own, with the environment, directory and descriptors that it would have had as a new interpreter. What a fork cannot
change, such as another limit of descriptors, has a new interpreter started; so has every ``hbrt start`` of the tests.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
_SOCKET_FD, _HIGH_FD = 3, 100
_MESSAGE_BYTES = 1 << 18
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
# Read while modules are imported, by the interpreter, or by the dynamic linker.
_OF_A_PROCESS = ("PYTHON", "LD_", "MSGPACK_", "OPENBLAS_", "HBRT_PROFILE")
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
_LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
_PROGRAM = f"import sys; sys.path.append({str(ROOT)!r}); from tests.nursery import serve; serve()"

Start = Callable[[list[str], Mapping[str, str], Mapping[int, int]], int]


def _what_stays(environment: Mapping[str, str]) -> str:
    """All that a fork has from the process that it forks from, and that a test may change."""
    umask = next(line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line[:6] == "Umask:")
    stays = (
        sorted(item for item in environment.items() if item[0].startswith(_OF_A_PROCESS)),
        [resource.getrlimit(limit) for limit in _LIMITS],
        [signal.getsignal(number) is signal.SIG_IGN for number in _SIGNALS],
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        umask,
        os.sched_getaffinity(0),
        os.getpriority(os.PRIO_PROCESS, 0),
    )
    return repr(stays)


class Nursery:
    """The warm processes, from the test process's side: one for each state that tests start boards in more than once.

    Args:
        start: Starts a new interpreter, for what a fork cannot be.
    """

    def __init__(self, start: Start) -> None:
        self.start_new = start
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._warm: dict[str, tuple[int, socket.socket] | None] = {}

    def start(self, argv: list[str], environment: Mapping[str, str], places: Mapping[int, int]) -> int:
        """Start a daemon; takes and returns what ``hbrt.board.launch.start_process`` does."""
        stays = _what_stays(environment)
        with self._lock:
            is_file = os.sep in environment.get("HBRT_PROFILE", "")  # which a test may have written anew
            if os.getpid() != self._owner or is_file or stays not in self._warm:
                self._warm[stays] = None
                return self.start_new(argv, environment, places)
            if (found := self._warm[stays]) is None:
                found = self._warm[stays] = _warm_process(environment)
            request = json.dumps([argv[3:], dict(environment), str(Path.cwd()), list(places)])
            return _fork_of(found[1], request, list(places.values()))

    def close(self) -> None:
        """End the warm processes; their daemons go on."""
        if os.getpid() == self._owner:
            for found in filter(None, self._warm.values()):
                found[1].close()
                os.waitpid(found[0], 0)
        self._warm.clear()


def _warm_process(environment: Mapping[str, str]) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET_FD)]
        argv = [sys.executable, "-P", "-c", _PROGRAM]
        return os.posix_spawn(sys.executable, argv, environment, file_actions=actions), ours


def _fork_of(channel: socket.socket, request: str, fds: list[int]) -> int:
    libc = ctypes.CDLL(None)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)  # a process that loses its parent meanwhile becomes a child of this one
    try:
        socket.send_fds(channel, [request.encode()], fds)
        answer = channel.recv(64)
    finally:
        libc.prctl(_SUBREAPER, 0, 0, 0, 0)
    assert answer, "The process that daemons of tests fork from has ended: see its traceback in what was captured."
    return int(answer)


def serve() -> NoReturn:
    """Be the warm process: fork for every request, until the test process ends."""
    import gc

    gc.disable()
    for module in ("dsp_server.daemon.daemon", "dsp_server.core.process"):
        with contextlib.suppress(Exception):  # as without a DSP core: a fork that needs it hears the same
            importlib.import_module(module)
    gc.freeze()
    os.set_inheritable(_SOCKET_FD, False)
    with socket.socket(fileno=_SOCKET_FD) as channel:
        while True:
            raw, fds, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 16)
            if not raw:
                os._exit(0)
            channel.send(str(_orphan(raw, fds)).encode())
            for fd in fds:
                os.close(fd)


def _orphan(raw: bytes, fds: Sequence[int]) -> int:
    """Fork a process whose parent has ended; returns its id."""
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        pid = os.fork()
        if pid == 0:
            _be_program(raw, fds)
        os.write(write, str(pid).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(parent, 0)
    with os.fdopen(read, "rb") as answer:
        return int(answer.read())


def _be_program(raw: bytes, fds: Sequence[int]) -> NoReturn:
    """Become what ``python -P -c program arguments`` would be."""
    try:
        (program, *arguments), environment, directory, places = json.loads(raw)
        os.setsid()
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        import fcntl

        sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD) for fd in fds]
        os.closerange(_SOCKET_FD, _HIGH_FD)
        for source, place in zip(sources, places, strict=True):
            os.dup2(source, place)
        os.closerange(_HIGH_FD, max(sources) + 1)
        sys.path.remove(str(ROOT))
        sys.argv = ["-c", *arguments]
        for name in ("tests", "tests.nursery"):
            sys.modules.pop(name, None)
        exec(program, {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102 - as -c does
    except BaseException:  # noqa: BLE001 - its standard error gets any error, and this process ends here
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(1)
