"""What all tests share: hypothesis profiles, a home for boards, and a check that nothing is left of a run."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, settings

from arm_client import testing
from arm_client.session.process import process as client_process
from dsp_server.daemon import start as daemon_start
from hbrt.board import launch
from hbrt.board.files import daemon_pid
from hbrt.board.paths import BoardPaths
from hbrt.cli.group import group
from tests.limits import PATIENCE_S
from tests.nursery import Client, Nursery, Program, run_program

settings.register_profile("dev", deadline=None, max_examples=40)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=40,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


# Every process that a test process starts inherits this variable, and can be told by it from all others.
MARK = "PYTEST_HBRT_RUN"
ENDING_S = 10.0
Once = Callable[[str, Callable[[Path], object]], Path]


def heed_ctrl_c() -> None:
    """Have SIGINT interrupt this process and its children: what a script starts with & ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Give this process's boards their own home: short, since a socket's path is."""
    heed_ctrl_c()
    home = Path(tempfile.mkdtemp(prefix="hbrt-t-", dir="/tmp"))
    os.environ["HBRT_HOME"] = str(home)
    os.environ["HBRT_BOARD"] = "default"
    os.environ[MARK] = home.name
    # OpenBLAS starts a thread for each further CPU, which turns before it sleeps: a quarter of what each of the
    # hundreds of programs that tests start spends on importing numpy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # pytest keeps what it made of a test's file, for this run's inner ones and the next: two thirds of collecting, 5 s.
    sys.dont_write_bytecode = False
    # Nor do the programs that tests start compile the product anew: half of what loading it takes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect modules and tests with no garbage collection: they stay, and each would look through all so far."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collections: 300 000 objects, a fifth of a second each time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Take the home away; the check below has said what was in it."""
    shutil.rmtree(os.environ["HBRT_HOME"], ignore_errors=True)


class Left:
    """What the processes that carry a mark have left, once those that are ending have had their time."""

    def __init__(self, mark: str, home: Path) -> None:
        """``home`` is where their boards live, or would."""
        self.mark = mark
        self.home = home

    def processes(self) -> list[psutil.Process]:
        """Processes with the mark that still live, but for this one."""
        marked = [process for process in psutil.process_iter() if process.pid != os.getpid() and self._is_ours(process)]
        deadline = time.monotonic() + ENDING_S
        return [process for process in marked if not _ends(process.pid, deadline)]

    def problems(self) -> list[str]:
        """Sentences on all that is left: processes, files, shared memory."""
        problems = [f"Process {process.pid} runs: {_command_of(process)}" for process in self.processes()]
        if self.home.exists():
            problems += [f"{path} is there." for path in sorted(self.home.rglob("*"))]
        problems += [f"{path} is there." for path in Path("/dev/shm").glob("*hbrt*")]  # noqa: S108 - only looked at
        return problems

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self.mark
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            return False


def _ends(pid: int, deadline: float) -> bool:
    """Whether a process ends in time; one that waits to be collected has ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], max(0.0, deadline - time.monotonic()))[0])
    finally:
        os.close(pidfd)


def _command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:300]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return "?"


@pytest.fixture
def left() -> type[Left]:
    """``left(mark, home).problems()``: see Left."""
    return Left


@pytest.fixture(scope="session", autouse=True)
def _nursery() -> Iterator[Nursery]:
    """Boards and programs that this process starts fork from warm processes: a third of the work of a start."""
    nursery = Nursery(launch.start_process)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "start_process", nursery.start)
        patch.setattr(daemon_start, "start_detached", launch.launch)  # it would fork this process
        patch.setattr(Program, "nursery", nursery)
        yield nursery


@pytest.fixture
def new_interpreters(_nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards and programs of this process are new interpreters, as those of users: for tests of just that."""
    monkeypatch.setattr(launch, "start_process", _nursery.start_new)
    monkeypatch.setattr(Program, "nursery", None)


@pytest.fixture
def hangups_count() -> Iterator[None]:
    """Have SIGHUP end what the test starts, also where nohup(1) keeps it from this process."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest, _nursery: Nursery) -> Iterator[None]:
    """At the end of a test process: no process, board, file or DDR of it is left. Else its last test has an error."""
    yield
    client_process.default = (
        None  # a model or a context that is loaded with no board starts one, for its process's life
    )
    while client_process.sessions:
        client_process.sessions.popitem()[1].close()
    testing._pool.close()  # the plugin keeps daemons for the next test until the run ends
    _nursery.close()
    for item in request.session.items:  # the last test's arguments are still there, with the boards that they hold
        (getattr(item, "funcargs", None) or {}).clear()
    gc.collect()
    home = Path(os.environ["HBRT_HOME"])
    problems = Left(os.environ[MARK], home).problems()
    if not request.session.testsfailed:  # the frames of a failed test keep what it had
        links = (path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
        problems += [f"This process still has {link} open." for link in links if "memfd:hbrt" in str(link)]
    if problems:
        pytest.fail("This test process left something behind:\n" + "\n".join(problems), pytrace=False)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """``once(name, make)``: a file of this name, which ``make(path)`` writes in the first process that asks for it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if base.name.startswith("popen-") else base) / "native"

    def made(name: str, make: Callable[[Path], object]) -> Path:
        target = shared / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                new = target.with_name(f"{target.name}.new")
                make(new)
                new.rename(target)
        return target

    return made


@pytest.fixture
def board_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short directory for boards that a test starts by command, removed afterwards."""
    del tmp_path_factory
    path = Path(tempfile.mkdtemp(prefix="hbrt-h-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def in_process(*arguments: object, environment: Mapping[str, str] | None = None) -> Result:
    """Run ``hbrt`` in this process, a tenth of the work of starting one, in this environment if one is given."""
    before = dict(os.environ)
    others = {} if environment is None else dict.fromkeys(set(before) - set(environment))
    try:
        return CliRunner(env={**others, **(environment or {})}).invoke(
            group, list(map(str, arguments)), prog_name="hbrt"
        )
    finally:  # a verb may have set more
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def build_c(*arguments: object) -> None:
    """``hbrt cc`` with these arguments, in this process; what the compiler says is the output of the test."""
    answer = in_process("cc", *arguments)
    assert answer.exit_code == 0, answer.output


class Shell:
    """The ``hbrt`` command as a user has it: real processes, with their own home for boards."""

    # Verbs that start a daemon, send it a request, or read its files, and print the answer. That they do the same as
    # processes, and what any verb does as one (signals, closed pipes, terminals), is in tests/hbrt/cli.
    ASKING = frozenset(
        {
            *("start", "stop", "restart", "status", "why", "ops", "tasks", "mem", "ps", "ls", "log"),
            *("recovery", "inject", "keys", "trace", "rm", "prune", "doctor", "replay", "cc", "op", "estimate"),
        }
    )
    INSIDE = frozenset({("run", "nn"), ("run", "cv")})  # samples are processes of their own
    OF_A_PROCESS = frozenset({"-f", "--follow", "--foreground", "--profile", "--self-check"})

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd
        others = ("HBRT_", "PYTEST_CURRENT_TEST")  # the latter's value is another one in each phase of a test
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        self.environment["HBRT_HOME"] = str(home)
        self._started: list[subprocess.Popen[str]] = []

    def hbrt(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run ``hbrt`` with these arguments to its end; in this process, where a process of its own adds nothing."""
        is_asking = bool(arguments) and arguments[0] in self.ASKING and self.OF_A_PROCESS.isdisjoint(arguments)
        if arguments[:1] == ("estimate",):  # a program writes to the verb's own standard error
            is_asking = is_asking and not any(str(one).endswith(".py") for one in arguments)
        if not (is_asking or arguments[:2] in self.INSIDE) or any(map(self._is_of_a_process, self.environment)):
            return self.python("-m", "hbrt", *arguments)
        answer = self._inside(*arguments)
        return subprocess.CompletedProcess(list(map(str, arguments)), answer.exit_code, answer.stdout, answer.stderr)

    def _is_of_a_process(self, name: str) -> bool:
        """Whether a variable of the environment has another value here, and is read before there are verbs, or once."""
        is_ours = name.startswith(("HBRT_", "HB_")) and name != "HBRT_PROFILE"
        return not is_ours and self.environment[name] != os.environ.get(name)

    def refused(self, *arguments: object) -> tuple[int, str]:
        """Exit code and all that ``hbrt`` prints, in this process: for what is refused before anything is done."""
        answer = self._inside(*arguments)
        return answer.exit_code, answer.output

    def _inside(self, *arguments: object) -> Result:
        with contextlib.chdir(self.cwd):
            return in_process(*arguments, environment=self.environment)

    def good(self, *arguments: object) -> str:
        """Standard output of ``hbrt`` with these arguments; it must succeed and have nothing to complain about."""
        answer = self.hbrt(*arguments)
        assert (answer.returncode, answer.stderr) == (0, ""), f"{arguments}\n{answer.stdout}{answer.stderr}"
        return answer.stdout

    def status(self) -> dict[str, Any]:
        """What ``hbrt status --json`` prints; its exit code says whether the board is healthy."""
        answer = self._inside("status", "--json")
        status: dict[str, Any] = json.loads(answer.stdout)
        assert (answer.exit_code, answer.stderr) == (0 if status["healthy"] else 3, ""), answer
        return status

    def ops(self) -> list[dict[str, Any]]:
        """What ``hbrt ops --json`` prints."""
        answer = self._inside("ops", "--json")
        assert (answer.exit_code, answer.stderr) == (0, ""), answer
        ops: list[dict[str, Any]] = json.loads(answer.stdout)
        return ops

    def json(self, *arguments: object) -> Any:
        """The one JSON document that ``hbrt ... --json`` prints."""
        return json.loads(self.good(*arguments, "--json"))

    def python(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the interpreter with these arguments to its end."""
        return run_program(arguments, PATIENCE_S, cwd=self.cwd, env=self.environment, stdin=subprocess.DEVNULL)

    def start(self, *arguments: object, kind: type[Program] = Client) -> subprocess.Popen[str]:
        """Start the interpreter with these arguments, in its own process group, as a terminal would."""
        process = kind(
            [sys.executable, *map(str, arguments)],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._started.append(process)
        return process

    def paths(self, board: str = "default") -> BoardPaths:
        """Paths of a board."""
        return BoardPaths(self.home / board)

    def pid(self, board: str = "default") -> int:
        """Process id of a board's daemon, which must run."""
        pid = daemon_pid(self.paths(board))
        assert pid is not None, f"no daemon runs on {board}"
        return pid

    def files(self, board: str = "default") -> list[str]:
        """Names of the files in a board's directory."""
        return sorted(path.name for path in (self.home / board).iterdir())

    def close(self) -> None:
        """End every process that was started here, and every daemon of this home."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for directory in self.home.iterdir():  # no glob: it fails where a board that ends takes its directory away
            is_board = not directory.is_symlink() and (directory / "log").exists()
            pid = daemon_pid(BoardPaths(directory)) if is_board else None
            if pid is not None:
                pidfd = os.pidfd_open(pid)
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)
                signal.pidfd_send_signal(pidfd, signal.SIGTERM)
                if not select.select([pidfd], [], [], 20)[0]:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)


@pytest.fixture
def shell(board_home: Path, tmp_path: Path) -> Iterator[Shell]:
    """Runs ``hbrt`` in an empty directory; ends what the test left running."""
    made = Shell(board_home, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """As ``shell``, for a whole module, with a running board that its tests only look at."""
    home = Path(tempfile.mkdtemp(prefix="hbrt-h-", dir="/tmp"))
    made = Shell(home, tmp_path_factory.mktemp("running"))
    made.good("start")
    yield made
    made.close()
    shutil.rmtree(home, ignore_errors=True)
