"""A core's process as a fork of the young daemon: no interpreter to start, nothing to import again.

This halves the cost of starting a board. It works only for the first processes: the daemon must have a single thread,
since ZeroMQ's threads would be in an unknown state in a fork. ``child.spawn`` starts later processes as new
interpreters. Images must not see a difference: ``_become_fresh`` undoes what a new interpreter would not have.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from dsp_server.process.launch import close_all_but


def is_young() -> bool:
    """Whether this process may be forked: it has only one thread, including those of libraries."""
    return len([*Path("/proc/self/task").iterdir()]) == 1


def fork_core(places: Sequence[int], arguments: Sequence[str]) -> int:
    """Start a core's process; return its id.

    Args:
        places: Descriptors to become 0, 1, 2 and so on; none may have one of these numbers in this process.
        arguments: Its ``sys.argv`` after the program name (see ``core.process.main``).

    Raises:
        OSError: no process could be started.
    """
    from dsp_server.core import process  # imported before the fork, so that all cores share it

    pid = os.fork()
    if pid == 0:
        _be_core(process.main, places, arguments)
    return pid


def _be_core(main: Callable[[], NoReturn], places: Sequence[int], arguments: Sequence[str]) -> NoReturn:
    """Run the child; it never returns to the daemon's stack, whose objects it must not finalize."""
    try:
        _become_fresh(places, arguments)
        main()
    except BaseException:  # noqa: BLE001 - the log gets any error, and this process ends here
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


def _become_fresh(places: Sequence[int], arguments: Sequence[str]) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # a new program also keeps ignored signals ignored
            signal.signal(number, signal.SIG_DFL)
    os.setpgid(0, 0)  # the daemon handles the terminal's Ctrl-C
    for place, fd in enumerate(places):
        os.dup2(fd, place)
    close_all_but(*range(len(places)))
    sys.stdout, sys.stderr = _unbuffered(1, sys.stdout), _unbuffered(2, sys.stderr)
    if not sys.flags.safe_path:
        del sys.path[0]  # the daemon's program directory or working directory
    sys.argv = ["-c", *arguments]
    gc.freeze()
    gc.enable()


def _unbuffered(fd: int, model: TextIO) -> io.TextIOWrapper:
    """Make a standard stream like ``python -u`` does, with the daemon's encoding."""
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding=model.encoding, errors=model.errors, write_through=True)
