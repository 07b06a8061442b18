"""A sample in its own process: its output, and its end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from typing import NamedTuple


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


def run_module(
    name: str,
    arguments: Collection[str],
    environment: Mapping[str, str],
    timeout_s: float,
    pass_fds: Collection[int] = (),
) -> Ended:
    """Run a module of this package; it is ended when it takes longer than ``timeout_s``."""
    command = [sys.executable, "-P", "-m", f"arm_client.commands.run.{name}", *arguments]
    has_timed_out = False
    # A file for its output: children that it leaves behind may hold a pipe open.
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=environment, pass_fds=pass_fds
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            has_timed_out = True
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        printed.seek(0)
        return Ended(process.returncode, has_timed_out, printed.read().decode("utf-8", "replace"))
