"""What a fork has of its parent and must not keep."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def close_all_but(*kept: int) -> None:
    """Close every descriptor of this process but these."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
                os.close(int(entry.name))
