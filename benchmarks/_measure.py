"""What the benchmarks share: rounds and percentiles, processes that are surely ended, placement, tables.

Every number is taken in rounds that alternate between the things compared, so that the noise of a shared
machine hits all of them alike; what is reported is the median of the rounds, and a ratio is the median of the
ratios within one round.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PR_SET_PDEATHSIG = 1
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the kernel keeps it


class PeerFailed(Exception):
    """A process of a benchmark did not start, did not answer, or ended; the text has the end of its log."""


@dataclass(frozen=True)
class Rounds:
    """The values of one quantity, one a round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """The distance between the worst and the best round, as a fraction of the median: 0.1 is 10%."""
        return (max(self.values) - min(self.values)) / self.median if self.median else 0.0

    def ratio_to(self, other: Rounds) -> Rounds:
        """Divide round by round, so that what slowed both cancels out."""
        pairs = zip(self.values, other.values, strict=False)
        return Rounds(tuple(mine / theirs for mine, theirs in pairs))

    def less(self, other: Rounds) -> Rounds:
        """Subtract round by round, as ``ratio_to`` divides."""
        return Rounds(tuple(mine - theirs for mine, theirs in zip(self.values, other.values, strict=True)))


def percentile(ordered: Sequence[int], fraction: float) -> int:
    """Return the nearest-rank percentile of values in ascending order; ``fraction`` is 0.5 for the median."""
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def p50_us(action: Callable[[], object], times: int) -> float:
    """Return the median time of ``action``, in microseconds."""
    return p50s_us([action], times)[0]


def p50s_us(actions: Sequence[Callable[[], object]], times: int) -> list[float]:
    """Return the median time of each action; they take turns, as a shared machine's clock changes within a round."""
    found: list[list[int]] = [[] for _ in actions]
    for _ in range(times):
        for action, taken_ns in zip(actions, found, strict=True):
            before_ns = time.perf_counter_ns()
            action()
            taken_ns.append(time.perf_counter_ns() - before_ns)
    return [percentile(sorted(taken_ns), 0.5) / 1e3 for taken_ns in found]


def usable_cpus() -> set[int]:
    """Return the CPUs this process may run on: its affinity, not the machine's count."""
    return os.sched_getaffinity(0)


@contextlib.contextmanager
def pinned(cpus: set[int]) -> Iterator[None]:
    """Keep this process on ``cpus``, and with it every process it starts meanwhile, as ``taskset`` would."""
    before = usable_cpus()
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def spinning() -> Iterator[None]:
    """Keep one CPU busy meanwhile: a process that spins."""
    text = "from benchmarks import _measure; _measure.end_with_parent()\nwhile True: pass"
    spinner = subprocess.Popen([sys.executable, "-c", text], cwd=ROOT)
    try:
        yield
    finally:
        spinner.kill()
        spinner.wait()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time, user and system, of all threads of process ``pid`` so far, in seconds."""
    # The command's name may hold spaces and parentheses: behind it, utime and stime are 11 and 12.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def end_with_parent() -> None:
    """Let the kernel end this process (SIGTERM) when the one that started it dies, even by SIGKILL."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def raise_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit, so that ``finally`` and ``with`` clean up."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


class Child:
    """A process of a benchmark, started by module name, with a two-way channel of Python objects to it.

    Its output goes to a log file. It leads its own session: Ctrl-C reaches only the benchmark, which ends it.
    """

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], directory: Path) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        ours, theirs = socket.socketpair()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments, str(theirs.fileno())],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        theirs.close()
        self._channel = Connection(ours.detach())

    def send(self, message: object) -> None:
        """Send a message; a child that has ended is reported by :meth:`receive`."""
        with contextlib.suppress(BrokenPipeError):
            self._channel.send(message)

    def receive(self, timeout_s: float = 60.0) -> Any:
        """Return the child's next message.

        Raises:
            PeerFailed: the child ended, or said nothing for ``timeout_s`` seconds.
        """
        if not self._channel.poll(timeout_s):
            raise PeerFailed(f"{self.name} said nothing for {timeout_s:g} s. {self._log_end()}")
        try:
            return self._channel.recv()
        except (EOFError, ConnectionResetError):
            status = self._process.wait(timeout=10)
            raise PeerFailed(f"{self.name} ended with status {status}. {self._log_end()}") from None

    def stop(self) -> None:
        """End the process: by SIGTERM, and by SIGKILL when it is still there ten seconds later."""
        self._channel.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _log_end(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"The end of its log: {' | '.join(lines[-3:])}" if lines else "Its log is empty."


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """Make a directory for sockets and logs; afterwards remove it, and shared memory that has its name."""
    # Short, because the address of a Unix socket holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="hbb-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        try:
            yield directory
        finally:
            for segment in SHARED_MEMORY.glob(f"{directory.name}*"):
                segment.unlink(missing_ok=True)


def machine() -> dict[str, str | int]:
    """Describe what the numbers were taken on."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cpus": len(usable_cpus()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0]),
    }


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool = False) -> str:
    """Lay out a table as plain text or as Markdown, all but the first column to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        pairs = [*zip(cells, widths, strict=True)]
        padded = [pairs[0][0].ljust(pairs[0][1]), *(cell.rjust(width) for cell, width in pairs[1:])]
        return f"| {' | '.join(padded)} |" if markdown else "  ".join(padded).rstrip()

    rule = [("-" * width if column == 0 else "-" * (width - 1) + ":") for column, width in enumerate(widths)]
    return "\n".join([line(head), line(rule) if markdown else line(["-" * w for w in widths]), *map(line, rows)])
