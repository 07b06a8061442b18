"""Detaches a fork from its parent's terminal and descriptors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


def live_detached(life: Callable[[], int], log: int, *kept: int) -> NoReturn:
    """Run a fork's child without the parent's terminal and descriptors; it never returns into the parent's stack.

    Args:
        life: The work of the child; returns its exit code.
        log: Descriptor of the log; it becomes standard output and error.
        kept: Further descriptors that stay open.
    """

    def detached() -> int:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, standard in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, standard)
        close_all_but(0, 1, 2, *kept)
        return life()

    live(detached)


def live(life: Callable[[], int]) -> NoReturn:
    """Run all that a process is for, and end it at once: taking an interpreter down costs a tenth of a board's start.

    Args:
        life: The work; returns the exit code. An error of it is logged.
    """
    code = 3
    try:
        code = life()
    except BaseException:  # noqa: BLE001 - the log gets any error, and this process ends here
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def close_all_but(*kept: int) -> None:
    """Close every descriptor of this process but these."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
                os.close(int(entry.name))
