"""Starts a new interpreter as a child of a server, with its descriptors in fixed places."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_interpreter(
    module: str, places: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> int:
    """Start a process that calls ``main()`` of a module; returns its id.

    Args:
        module: Name of the module.
        places: Its descriptors 0, 1, 2 and so on; none of them may have one of these numbers here.
        arguments: Its ``sys.argv`` after the program's name.
        environment: Variables beside those of this process.

    Raises:
        OSError: no process can be started.
    """
    root = str(Path(__file__).resolve().parents[2])
    find = f"import sys; {root!r} in sys.path or sys.path.append({root!r})"
    argv = [sys.executable, "-P", "-u", "-c", f"{find}; from {module} import main; main()", *arguments]
    actions = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(places)]
    # A process group of its own: only the daemon handles the terminal's Ctrl-C.
    return os.posix_spawn(
        sys.executable, argv, {**os.environ, **(environment or {})}, file_actions=actions, setpgroup=0
    )
