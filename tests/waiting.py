"""Wait for a condition, and for the end of a process."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

from tests.limits import PATIENCE_S

LOOK_S = 0.002


def until(condition: Callable[[], Any], what: str = "what a test waits for") -> Any:
    """The first true value of ``condition``, looked at every few milliseconds; ``what`` is for the one who reads."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true within {PATIENCE_S} s"
        time.sleep(LOOK_S)
    return value


def await_end(pid: int) -> None:
    """Wait until a process has ended, whoever collects it."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], PATIENCE_S)[0], f"process {pid} still runs"
    finally:
        os.close(fd)
