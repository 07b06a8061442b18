"""What all tests share: hypothesis profiles, and a home for boards that ends with the test run."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from hbrt.board import BoardPaths, daemon_pid

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure() -> None:
    """Give this process's boards a home of their own: short, since a socket's path is."""
    home = Path(tempfile.mkdtemp(prefix="hbrt-t-", dir="/tmp"))
    os.environ["HBRT_HOME"] = str(home)
    os.environ["HBRT_BOARD"] = "default"


def pytest_unconfigure() -> None:
    """Take the home away; a board that still lives in it is a defect that test_nothing_left.py names."""
    shutil.rmtree(os.environ["HBRT_HOME"], ignore_errors=True)


@pytest.fixture
def board_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short directory for boards that a test starts by command, removed afterwards."""
    del tmp_path_factory
    path = Path(tempfile.mkdtemp(prefix="hbrt-h-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Shell:
    """The ``hbrt`` command as a user has it: real processes, with a home of their own for boards."""

    LIMIT_S = 50.0

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("HBRT_")}
        self.environment["HBRT_HOME"] = str(home)
        self._started: list[subprocess.Popen[str]] = []

    def hbrt(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run ``hbrt`` with these arguments to its end."""
        return self.python("-m", "hbrt", *arguments)

    def good(self, *arguments: object) -> str:
        """Standard output of ``hbrt`` with these arguments; it must succeed and have nothing to complain about."""
        answer = self.hbrt(*arguments)
        assert (answer.returncode, answer.stderr) == (0, ""), answer
        return answer.stdout

    def status(self) -> dict[str, Any]:
        """What ``hbrt status --json`` prints; its exit code says whether the board is healthy."""
        answer = self.hbrt("status", "--json")
        status: dict[str, Any] = json.loads(answer.stdout)
        assert (answer.returncode, answer.stderr) == (0 if status["healthy"] else 3, ""), answer
        return status

    def json(self, *arguments: object) -> Any:
        """The one JSON document that ``hbrt ... --json`` prints."""
        return json.loads(self.good(*arguments, "--json"))

    def python(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the interpreter with these arguments to its end."""
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
            timeout=self.LIMIT_S,
        )

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start the interpreter with these arguments, in a process group of its own, as a terminal would."""
        process = subprocess.Popen(
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
        for log in self.home.glob("**/log"):
            pid = daemon_pid(BoardPaths(log.parent))
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
