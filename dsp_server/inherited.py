"""What a fork has of its parent and must not keep."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def leave_terminal(log: int, *kept: int) -> None:
    """In a fork's child: leave the terminal and the session, and close all descriptors but these.

    Args:
        log: Descriptor of the log, which becomes standard output and error.
        kept: Others that stay open.
    """
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, standard in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, standard)
    close_all_but(0, 1, 2, *kept)


def close_all_but(*kept: int) -> None:
    """Close every descriptor of this process but these."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
                os.close(int(entry.name))
