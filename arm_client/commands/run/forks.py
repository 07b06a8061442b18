"""Runs programs one after another, each in a fork of one process, which has loaded the modules that every run needs.

``Forks`` starts that process by ``python -m``. A job is a line of JSON on its standard input, the outcome a line on its
standard output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from hbrt.blocking import install
from hbrt.board.forked import end_with
from hbrt.errors import BoardError
from hbrt.settings import is_given

_CTRL_C = {signal.SIGINT}


@contextmanager
def file_in_memory() -> Iterator[Path]:
    """A file that other processes of this user can write by its path; it ends with the context or this process."""
    fd = os.memfd_create("hbrt")
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{fd}")
    finally:
        os.close(fd)


class Ended(NamedTuple):
    """A process that has ended.

    Attributes:
        code: Its exit code, negative for a signal.
        has_timed_out: Whether it was killed at its time limit.
        output: Its standard output and error.
    """

    code: int
    has_timed_out: bool
    output: str


class Forks:
    """The process as seen by its client; a context manager.

    Args:
        *loaded: Names of the modules that it loads. Each run loads a program's other imports itself.
    """

    def __init__(self, *loaded: str) -> None:
        self._loaded = loaded

    def __enter__(self) -> Self:
        # One thread of a library for arithmetic: the same bytes each time, and forks that work.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _CTRL_C)
        try:  # Ctrl-C interrupts this process and a run, and this process then ends that one
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(os.getpid()), *self._loaded],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()
        self._server.communicate()

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        settings: Mapping[str, str],
        seconds: float,
        function: str = "",
        runner: str = "",
    ) -> Ended:
        """Run a program once.

        Args:
            program: A Python file, or an executable file.
            arguments: Its arguments.
            settings: Environment variables, in addition to those at the process's start.
            seconds: How long it may take; it is killed then.
            function: The function to call in a Python file; empty to run the file as a program.
            runner: Name of a module whose ``main()`` runs the program and returns the exit code; empty for none.

        Raises:
            BoardError: the process that forks has ended.
        """
        questions, answers = cast("IO[str]", self._server.stdin), cast("IO[str]", self._server.stdout)
        with file_in_memory() as output:  # what an earlier run left behind continues writing into its own
            job = {
                "program": program,
                "arguments": list(arguments),
                "settings": dict(settings),
                "seconds": seconds,
                "output": str(output),
                "function": function,
                "runner": runner,
            }
            try:
                print(json.dumps(job), file=questions, flush=True)
                answer = answers.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                raise BoardError("The process that forks for each run of a program has ended; run the command again.")
            code, has_timed_out = json.loads(answer)
            return Ended(code, has_timed_out, output.read_text(encoding="utf-8", errors="replace"))


def _serve(loaded: Sequence[str]) -> dict[str, Any] | None:
    """Fork for each job; returns the job in the fork, None at the end of the input."""
    for name in loaded:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a run would else look through, and so copy, all that was loaded: half of what a short one takes
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        server, pid = os.getpid(), os.fork()
        if not pid:
            end_with(server)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _CTRL_C)
            return job
        print(json.dumps(_end_of(pid, job["seconds"])))
    return None


def _end_of(pid: int, seconds: float) -> tuple[int, bool]:
    """Exit code of a run, negative for a signal, and whether it took too long and was killed."""
    pidfd = os.pidfd_open(pid)
    try:
        is_over = bool(select.select([pidfd], [], [], seconds)[0])
        if not is_over:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(pidfd)
    return code, not is_over


def _be(job: dict[str, Any]) -> None:
    """Become the program of a job, up to its first line of Python; a program not in Python runs from here."""
    os.environ.update(job["settings"])
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(job["output"], os.O_WRONLY)
    for fd, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, fd)
    os.close(null)
    os.close(output)
    path = os.path.abspath(job["program"])  # noqa: PTH100 - as python does
    if not path.endswith(".py"):
        os.execv(path, [job["program"], *job["arguments"]])  # noqa: S606 - the user's
    sys.stdin, sys.stdout = (os.fdopen(fd, mode, closefd=False) for fd, mode in ((0, "r"), (1, "w")))
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # as python's own
    sys.argv = [job["program"], *job["arguments"]]
    sys.path.insert(0, os.path.dirname(path))  # noqa: PTH120
    if is_given("HBRT_SCHEDULE"):  # arm_client does this when it is loaded: perhaps it was, before the fork
        install()


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    mine = _serve(sys.argv[2:])
    if mine is not None:
        _be(mine)
        if mine["runner"]:
            sys.exit(importlib.import_module(mine["runner"]).main())
        elif mine["function"]:
            runpy.run_path(mine["program"])[mine["function"]]()
        else:
            runpy.run_path(mine["program"], run_name="__main__")
