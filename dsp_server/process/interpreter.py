"""A new interpreter as a child of a server, with its descriptors in places that it knows."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def start_interpreter(module: str, places: Sequence[int], arguments: Sequence[str]) -> int:
    """Start a process that calls ``main()`` of a module; returns its id.

    Args:
        module: Its name.
        places: Descriptors that it gets as 0, 1, 2 and so on; none of them may lie among these numbers.
        arguments: What follows the program's name in ``sys.argv``.

    Raises:
        OSError: no process left.
    """
    root = str(Path(__file__).resolve().parents[2])
    find = f"import sys; {root!r} in sys.path or sys.path.append({root!r})"
    argv = [sys.executable, "-P", "-u", "-c", f"{find}; from {module} import main; main()", *arguments]
    actions = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(places)]
    # A process group of its own: the terminal's Ctrl-C is the daemon's to handle.
    return os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setpgroup=0)
