"""A process that an op or an image forks: it does its own work and ends. It never continues as the core.

A core recognizes itself by a page that the kernel empties in a fork's child. So it detects a fork by C code too, for
the cost of one byte read after each op; ``os.getpid`` costs six times as much.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import traceback
from typing import NoReturn

from dsp_server import runtime
from hbrt.board.forked import wiped_page

_CORE_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_held = threading.local()

mark = wiped_page()
"""Its first byte is 1 in a core, and 0 in a child of a core."""


def be_the_core(trace_signal: signal.Signals) -> None:
    """Note that this process is a core.

    Args:
        trace_signal: Makes faulthandler write the core's stack; a child ignores it.
    """
    mark[0] = 1  # empty also in a core that is a fork of its daemon
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=lambda: _become_child(trace_signal)
    )


def _hold_signals() -> None:
    """Block early signals in the child until it has removed the core's handlers."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _CORE_SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _become_child(trace_signal: signal.Signals) -> None:
    mark[0] = 0
    for number in _CORE_SIGNALS:  # a signal ends a child, also one that the core handles or ignores
        signal.signal(number, signal.SIG_DFL)
    faulthandler.unregister(trace_signal)
    faulthandler.enable(file=2, all_threads=False)  # its death is not the core's
    _release_signals()


def leave(what: str, error: BaseException | None = None, came: str = "returned from it. ") -> NoReturn:
    """End a child that returned out of the forking function, without the core's exit handlers, and log it.

    Args:
        what: The function, such as "softmax (command 0x400)".
        error: Its exception. ``sys.exit`` has the exit code; any other gives 1.
        came: How it returned without an exception, up to the next sentence.
    """
    if isinstance(error, SystemExit):
        came = f"called sys.exit({error.code!r}) in it. "
    elif error is not None:
        came = f"raised in it:\n{''.join(traceback.format_exception(error, limit=-20)).rstrip()}\n"
    runtime.DSP_ERR(
        f"{what} forked process {os.getpid()}, which {came}It was ended: a "
        "forked process cannot continue as the core. End it with os._exit(), or use multiprocessing or subprocess."
    )
    code = error.code if isinstance(error, SystemExit) else 1
    os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))
