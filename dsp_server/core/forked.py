"""A process forked by an op or an image: it does its own work and exits. It never carries on as the core.

A core recognizes itself by a page that the kernel clears in a forked child. This also detects forks by C code, and
costs only one byte read after each op; ``os.getpid`` costs six times as much.
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
"""The first byte is 1 in a core and 0 in a child of a core."""


def be_the_core(trace_signal: signal.Signals) -> None:
    """Mark this process as a core.

    Args:
        trace_signal: Makes faulthandler write the core's stack; children ignore it.
    """
    mark[0] = 1  # 0 even in a core that was forked from its daemon
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=lambda: _become_child(trace_signal)
    )


def _hold_signals() -> None:
    """Block early signals in the child until it has removed the core's signal handlers."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _CORE_SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _become_child(trace_signal: signal.Signals) -> None:
    mark[0] = 0
    for number in _CORE_SIGNALS:  # signals end a child, even those that the core handles or ignores
        signal.signal(number, signal.SIG_DFL)
    faulthandler.unregister(trace_signal)
    faulthandler.enable(file=2, all_threads=False)  # a child's death must not look like the core's
    _release_signals()


def leave(what: str, error: BaseException | None = None, came: str = "returned from it. ") -> NoReturn:
    """End a child that returned from the code that forked it, skipping the core's exit handlers, and log why.

    Args:
        what: The code that forked, such as "softmax (command 0x400)".
        error: Its exception. ``sys.exit`` sets the exit code; any other exception exits with 1.
        came: How it returned if there was no exception; continues the sentence "..., which".
    """
    if isinstance(error, SystemExit):
        came = f"called sys.exit({error.code!r}) in it. "
    elif error is not None:
        came = f"raised in it:\n{''.join(traceback.format_exception(error, limit=-20)).rstrip()}\n"
    runtime.DSP_ERR(
        f"{what} forked process {os.getpid()}, which {came}hbrt ended it: a "
        "forked process cannot carry on as the core. End it with os._exit(), or use multiprocessing or subprocess."
    )
    code = error.code if isinstance(error, SystemExit) else 1
    os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))
