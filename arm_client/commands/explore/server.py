"""Runs a program again and again, each time in a fork of this process, which has loaded what every run needs.

A job is a line of JSON on standard input, its outcome a line on standard output. ``python -m`` starts this.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import sys
from typing import Any

LOADED = ("numpy", "arm_client.client", "arm_client.transport.scheduled_tasks", "dsp_server.scheduled.cores")
"""By name: this package does not import that of the cores."""
TIMED_OUT = 124


def serve() -> dict[str, Any] | None:
    """Fork for each job; returns the job in the fork, None at the end of the input."""
    for name in LOADED:
        importlib.import_module(name)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if not pid:
            return job
        print(json.dumps({"code": _code_of(pid, job["seconds"])}))
    return None


def _code_of(pid: int, seconds: float) -> int:
    """Exit code of a run, negative for a signal; one that takes too long is killed."""
    pidfd = os.pidfd_open(pid)
    try:
        is_over = bool(select.select([pidfd], [], [], seconds)[0])
        if not is_over:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(pidfd)
    return code if is_over else TIMED_OUT


def be(job: dict[str, Any]) -> None:
    """Become the program of a job, up to its first line of Python; one that is no Python runs from here."""
    os.environ.update(job["settings"])
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for fd, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, fd)
    os.close(null)
    os.close(output)
    if not job["program"].endswith(".py"):
        os.execv(os.path.abspath(job["program"]), [job["program"], *job["arguments"]])  # noqa: S606, PTH100 - the user's
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(fd, mode, closefd=False) for fd, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = [job["program"], *job["arguments"]]
    sys.path[0] = os.path.dirname(os.path.abspath(job["program"]))  # noqa: PTH100, PTH120 - as python does


if __name__ == "__main__":
    mine = serve()
    if mine is not None:
        be(mine)
        runpy.run_path(mine["program"], run_name="__main__")
