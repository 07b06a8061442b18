"""Daemons of boards, and programs, that fork from a warm process: what it has imported is not imported again.

A test process starts such helper processes. What forks from one is the test process's own child, with the session or
process group, environment, directory and descriptors that it would have had as a new interpreter. What a fork cannot
change, such as another limit of descriptors, has a new interpreter started; so has a program whose findings or stacks
name all lines that led to it: in a fork there are some of this file.
A daemon and a client find the product imported, a relay the libraries alone: it imports the product itself. A core that
forks from the daemon finds numpy, which loads for each core of a board else, 70 ms. A client's private board forks from
the client, while that is as a new interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import io
import json
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parents[1]
_SOCKET_FD, _HIGH_FD = 3, 100
_MESSAGE_BYTES = 1 << 18
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
# Read while modules are imported, by the interpreter, or by the dynamic linker.
_OF_A_PROCESS = (
    *("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_"),
    *("MSGPACK_", "NPY_", "OPENBLAS_", "OMP_", "HBRT_PROFILE"),
)
_IMPORTED = {
    "daemon": ("dsp_server.daemon.daemon", "dsp_server.daemon.control_socket", "dsp_server.core.process", "numpy"),
    "program": ("numpy", "zmq", "msgpack", "click", "concurrent.futures.thread", "tomllib", "tempfile"),
    "client": (
        *("numpy", "arm_client.client", "arm_client.session.session", "arm_client.transport.choose"),
        *("dsp_server.daemon.daemon", "dsp_server.daemon.control_socket", "dsp_server.core.process"),
    ),
}
_INSTALLED = (sys.prefix, sys.base_prefix)
_daemons: dict[str, types.ModuleType] = {}  # that a client's fork finds imported
_kept: list[object] = []  # by a program's fork, which is to end none of it
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
_LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
_PROGRAM = f"import sys; sys.path.append({str(ROOT)!r}); from tests.nursery import serve; serve(sys.argv[1])"

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


class Request(NamedTuple):
    """What is to fork."""

    arguments: list[str]  # as of an interpreter: "-c" and a program, or "-m" and a module; then its own
    environment: Mapping[str, str]
    directory: str
    places: Mapping[int, int]  # its descriptors: which of this process's is at which number
    group: str = ""  # "session" or "group" for one of its own


class Nursery:
    """The warm processes, from the test process's side: one for each state that tests start things in more than once.

    Args:
        start: Starts a daemon as a new interpreter, for what a fork cannot be.
    """

    def __init__(self, start: Start) -> None:
        self.start_new = start
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._warm: dict[tuple[str, str], tuple[int, socket.socket] | None] = {}

    def start(self, argv: list[str], environment: Mapping[str, str], places: Mapping[int, int]) -> int:
        """Start a daemon; takes and returns what ``hbrt.board.launch.start_process`` does."""
        pid = self.fork("daemon", Request(argv[2:], environment, str(Path.cwd()), places, "session"))
        return self.start_new(argv, environment, places) if pid is None else pid

    def fork(self, kind: str, request: Request) -> int | None:
        """Fork a process; returns its id, or None where it has to be a new interpreter."""
        state = kind, _what_stays(request.environment)
        with self._lock:
            is_file = os.sep in request.environment.get("HBRT_PROFILE", "")  # which a test may have written again
            if os.getpid() != self._owner or is_file or state not in self._warm:
                self._warm[state] = None
                return None
            if (found := self._warm[state]) is None:
                found = self._warm[state] = _warm_process(kind, request.environment)
            places = request.places
            text = json.dumps(request._replace(environment=dict(request.environment), places=dict.fromkeys(places, -1)))
            return _fork_of(found[1], text, list(places.values()))

    def close(self) -> None:
        """End the warm processes; what has forked continues."""
        if os.getpid() == self._owner:
            for found in filter(None, self._warm.values()):
                found[1].close()
                os.waitpid(found[0], 0)
        self._warm.clear()


class Program(subprocess.Popen[str]):
    """A ``subprocess.Popen`` of text; a kind of it may fork from a warm process, where that is the same."""

    nursery: ClassVar[Nursery | None] = None
    ways: ClassVar[tuple[str, ...]] = ()  # by which the interpreter is given what may fork
    warm: ClassVar[str] = "program"  # what it forks from

    def _execute_child(self, *given: Any) -> None:
        start = getattr(super(), "_execute_child")  # noqa: B009 - Popen without its start: nothing public has that
        call = inspect.signature(start).bind(*given).arguments
        pid = self._fork(call)
        if pid is None:
            start(*given)
            return
        self.pid, self._child_created = pid, True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*map(call.get, ends))  # type: ignore[attr-defined]

    def _may_fork(self, way: str) -> bool:
        return way in self.ways or (".py" in self.ways and way.endswith(".py"))

    def _fork(self, call: Mapping[str, Any]) -> int | None:
        unusual = ("executable", "preexec_fn", "pass_fds", "startupinfo", "shell", "gid", "gids", "uid")
        places = {
            place: place if call[end] == -1 else call[end]
            for place, end in enumerate(("p2cread", "c2pwrite", "errwrite"))
        }
        if (
            self.nursery is None
            or not isinstance(call["args"], list)
            or any(call[name] for name in unusual)
            or call["umask"] >= 0
            or call["process_group"] > 0
            or not call["restore_signals"]
            or any(map(os.isatty, places.values()))
        ):
            return None
        interpreter, *arguments = map(os.fsdecode, call["args"])
        directory = os.path.abspath(os.fsdecode(call["cwd"] or "."))  # noqa: PTH100 - of any kind of path
        if interpreter != sys.executable or not arguments or not self._may_fork(arguments[0]):
            return None
        group = "session" if call["start_new_session"] else "group" if call["process_group"] == 0 else ""
        environment = os.environ if call["env"] is None else call["env"]
        return self.nursery.fork(self.warm, Request(arguments, environment, directory, places, group))


class Server(Program):
    """A relay: it has neither a user's lines nor its own daemon, and forks."""

    ways: ClassVar[tuple[str, ...]] = ("-m", "-c")


class Client(Server):
    """A verb of ``hbrt``, or a program of a test's own whose callers nobody names; the product is imported as well.

    Its private board forks from it.
    """

    ways = (*Server.ways, ".py")
    warm = "client"


def run_program(
    arguments: Sequence[object], timeout: float, kind: type[Program] = Client, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a ``Program`` of these arguments to its end; returns what it printed, as ``subprocess.run`` does."""
    command = [sys.executable, *map(str, arguments)]
    with kind(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _warm_process(kind: str, environment: Mapping[str, str]) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET_FD)]
        flags = ["-P"] if kind == "daemon" else []
        argv = [sys.executable, *flags, "-c", _PROGRAM, kind]
        return os.posix_spawn(sys.executable, argv, environment, file_actions=actions), ours


def _fork_of(channel: socket.socket, request: str, fds: list[int]) -> int:
    libc = ctypes.CDLL(None)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)  # a process that loses its parent meanwhile becomes a child of this one
    try:
        socket.send_fds(channel, [request.encode()], fds)
        answer = channel.recv(64)
    finally:
        libc.prctl(_SUBREAPER, 0, 0, 0, 0)
    assert answer, "The process that forks for tests has ended, or its fork: see the traceback in what was captured."
    return int(answer)


def serve(kind: str) -> None:
    """Be the warm process: fork for every request, until the test process ends. It returns in a program, at its end."""
    import gc

    gc.disable()
    os.set_inheritable(_SOCKET_FD, False)
    os.closerange(_SOCKET_FD + 1, os.sysconf("SC_OPEN_MAX"))  # what the test process itself was given
    for module in _IMPORTED[kind]:
        with contextlib.suppress(Exception):  # as without a DSP core: a fork that needs it hears the same
            importlib.import_module(module)
    if kind == "client":
        _forget_daemons()
    gc.freeze()
    channel = socket.socket(fileno=_SOCKET_FD)
    while True:
        raw, fds, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 16)
        if not raw:
            os._exit(0)
        read, write = os.pipe()
        between = os.fork()
        if between == 0:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            break
        os.close(write)
        os.waitpid(between, 0)
        with os.fdopen(read, "rb") as answer:
            channel.send(answer.read())
        for fd in fds:
            os.close(fd)
    channel.detach()
    arguments = _become(raw, fds, between, write)
    if kind == "daemon":
        _run_daemon(arguments)
    if kind == "client":
        _be_a_client(arguments)
    gc.enable()
    _run(arguments)


def _become(raw: bytes, fds: Sequence[int], parent: int, answer: int) -> list[str]:
    """Be a process as a new interpreter would be, whose parent has ended, and say its id; returns its arguments."""
    try:
        request = Request(*json.loads(raw))
        if request.group == "session":
            os.setsid()
        elif request.group:
            os.setpgid(0, 0)
        os.chdir(request.directory)
        os.environ.clear()
        os.environ.update(request.environment)
        while os.getppid() == parent:  # a program may ask whose child it is
            time.sleep(0.0001)
        os.write(answer, str(os.getpid()).encode())
        _place(fds, [int(place) for place in request.places])
        del sys.path[-1]
        for name in ("tests", "tests.nursery"):
            sys.modules.pop(name, None)
    except BaseException:  # noqa: BLE001 - its standard error gets any error, and this process ends here
        _end_with_traceback()
    return request.arguments


def _end_with_traceback() -> NoReturn:
    import traceback

    traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(1)


def _run_daemon(arguments: list[str]) -> NoReturn:
    """Be what ``python -P -c program arguments`` is."""
    try:
        sys.argv = ["-c", *arguments[2:]]
        exec(arguments[1], {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102 - as -c does
    except BaseException:  # noqa: BLE001 - its standard error gets any error, and this process ends here
        _end_with_traceback()
    os._exit(1)


def _forget_daemons() -> None:
    """Leave it to a program to load what reads the profile as it is loaded: it may set another one before."""
    from hbrt.profiles.profile import active

    active.cache_clear()
    _daemons.update({name: sys.modules.pop(name) for name in sorted(sys.modules) if name.startswith("dsp_server")})


def _be_a_client(arguments: Sequence[str]) -> None:
    """Begin the run of a program, and have its private board fork from it: a daemon finds the product imported here."""
    from arm_client.session.process import process
    from hbrt.board import launch

    if arguments[0] != "-m":  # a verb begins its own
        process.begin_run()
    known, before, places_of_modules, new = (
        set(sys.modules),
        _read_at_start(os.environ),
        sys.path[1:],
        launch.start_process,
    )

    def start(argv: list[str], environment: Mapping[str, str], places: Mapping[int, int]) -> int:
        is_alone = len([*Path("/proc/self/task").iterdir()]) == 1 and not process.all()
        if not is_alone or _read_at_start(environment) != before:
            return new(argv, environment, places)
        pid = os.fork()
        if pid == 0:
            _become_daemon(argv, environment, places, known, places_of_modules)
        return pid

    launch.start_process = start


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_OF_A_PROCESS)}


def _become_daemon(
    argv: Sequence[str], environment: Mapping[str, str], places: Mapping[int, int], known: set[str], path: Sequence[str]
) -> NoReturn:
    """Be, in a program's fork, the new interpreter that ``hbrt.board.launch.start_process`` starts."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        _place(list(places.values()), list(places))
        # What the program has not written is the program's to write, and what it holds is not to end here.
        _kept.extend((sys.stdin, sys.stdout, sys.stderr, dict(sys.modules)))
        _open_streams()
        for name, module in list(sys.modules.items()):
            if name not in known and not str(getattr(module, "__file__", None) or sys.prefix).startswith(_INSTALLED):
                del sys.modules[name]
        sys.modules.update(_daemons)
        sys.path[1:] = path
        sys.modules["__main__"] = types.ModuleType("__main__")
    except BaseException:  # noqa: BLE001 - its standard error gets any error, and this process ends here
        _end_with_traceback()
    _run_daemon(list(argv[2:]))


def _place(fds: Sequence[int], places: Sequence[int]) -> None:
    """Have descriptors at these numbers, and close all others."""
    import fcntl

    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD) for fd in fds]
    os.closerange(_SOCKET_FD, min(sources))
    for source, place in zip(sources, places, strict=True):
        os.dup2(source, place)
    os.closerange(_HIGH_FD, os.sysconf("SC_OPEN_MAX"))


def _run(arguments: list[str]) -> None:
    """Be what ``python arguments`` is; this process ends as its interpreter's end has it."""
    _open_streams()
    importlib.invalidate_caches()
    names = vars(sys.modules["__main__"])
    for name in [name for name in names if not name.startswith("__")]:
        del names[name]
    way = arguments[0]
    sys.argv = [way, *arguments[2:]] if way in {"-c", "-m"} else arguments
    if not sys.flags.safe_path:
        sys.path[0] = {"-c": "", "-m": str(Path.cwd())}.get(way, str(Path(way).resolve().parent))
    try:
        if way == "-m":
            getattr(runpy, "_run_module_as_main")(arguments[1])  # noqa: B009 - what -m calls: it has no public name
        else:
            is_file = way != "-c"
            text = Path(way).read_bytes() if is_file else arguments[1]
            names.update({"__file__": way} if is_file else {})
            exec(compile(text, way if is_file else "<string>", "exec", dont_inherit=True), names)  # noqa: S102 - as -c
    except SystemExit:
        raise
    except BaseException as error:  # what an interpreter says has no line of this file
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        if isinstance(error, KeyboardInterrupt):
            sys.excepthook = lambda *_: None
            raise
        sys.exit(1)


def _open_streams() -> None:
    """Make the standard streams anew: those of the warm process have asked what its own descriptors are."""
    is_direct = bool(os.environ.get("PYTHONUNBUFFERED"))
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        if old is None:
            continue
        is_raw = is_direct and fd > 0
        is_by_line = fd == 2 and not is_direct
        binary: Any = open(fd, "wb" if fd else "rb", 0 if is_raw else -1, closefd=False)  # noqa: SIM115
        (binary if is_raw else binary.raw).name = f"<{name}>"
        stream = io.TextIOWrapper(binary, old.encoding, old.errors, "\n", is_by_line, is_direct)
        stream.mode = "w" if fd else "r"  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
