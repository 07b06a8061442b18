"""A core's process as a fork of the daemon, while that is young: no interpreter to start, nothing to import again.

That halves what a board's start costs. It is for the first processes alone: the daemon must have one thread and no
ZeroMQ, whose threads a fork would leave behind in an unknown state. Later ones are interpreters that ``children.spawn``
starts. An image must not notice which of the two it runs in: ``_become_fresh`` undoes what a new one would not have.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NoReturn, TextIO

from dsp_server.process.detach import close_all_but


def is_young() -> bool:
    """Whether this process may be forked: one thread, and no library that keeps threads of its own."""
    return "zmq" not in sys.modules and threading.active_count() == 1


def fork_core(places: Sequence[int], arguments: Sequence[str]) -> int:
    """Start a core's process; returns its id.

    Args:
        places: Descriptors that it gets as 0, 1, 2 and so on; none of them may lie among these numbers.
        arguments: What follows the program's name in ``sys.argv`` (see ``core_process.main``).

    Raises:
        OSError: no process left.
    """
    from dsp_server.core import process  # here, so that every core finds it loaded

    pid = os.fork()
    if pid == 0:
        _be_core(process.main, places, arguments)
    return pid


def _be_core(main: Callable[[], NoReturn], places: Sequence[int], arguments: Sequence[str]) -> NoReturn:
    """The child's life; it never returns into the daemon's stack, whose objects it must not finalise."""
    try:
        _become_fresh(places, arguments)
        main()
    except BaseException:  # noqa: BLE001 - whatever it is belongs into the log, and this process ends here
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


def _become_fresh(places: Sequence[int], arguments: Sequence[str]) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored ones stay so in a new program as well
            signal.signal(number, signal.SIG_DFL)
    os.setpgid(0, 0)  # the terminal's Ctrl-C is the daemon's to handle
    for place, fd in enumerate(places):
        os.dup2(fd, place)
    close_all_but(*range(len(places)))
    sys.stdout, sys.stderr = _unbuffered(1, sys.stdout), _unbuffered(2, sys.stderr)
    if not sys.flags.safe_path:
        del sys.path[0]  # where the program that was forked lies, or the directory that it was called in
    sys.argv = ["-c", *arguments]
    gc.freeze()


def _unbuffered(fd: int, model: TextIO) -> io.TextIOWrapper:
    """A standard stream as ``python -u`` makes it, encoded as the daemon's."""
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding=model.encoding, errors=model.errors, write_through=True)
