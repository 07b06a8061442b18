"""A process that an op or an image forks: it does its own work and ends. It never goes on as the core.

A core knows itself by a page that the kernel empties in a fork's child. So a fork by C code is seen, too, at the cost
of reading one byte where an op returns; ``os.getpid`` costs six times that.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import signal
import threading
import traceback
from typing import NoReturn

from dsp_server import runtime

_WIPE_ON_FORK = 18  # MADV_WIPEONFORK, Linux 4.14: the mmap module has no name for it
_CORE_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_held = threading.local()

mark = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
"""Its first byte is 1, but 0 in a child of a core."""
mark[0] = 1


def be_the_core(trace_signal: signal.Signals) -> None:
    """Note that this process is a core.

    Args:
        trace_signal: What has faulthandler write where the core is; means nothing in a child.
    """
    with contextlib.suppress(OSError):  # an older kernel: a fork by Python code is seen all the same
        mark.madvise(_WIPE_ON_FORK)
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_let_signals_go, after_in_child=lambda: _be_a_child(trace_signal)
    )


def _hold_signals() -> None:
    """Have a signal that comes to the child early wait until it has no handler of the core any more."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _CORE_SIGNALS)


def _let_signals_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _be_a_child(trace_signal: signal.Signals) -> None:
    mark[0] = 0
    for number in _CORE_SIGNALS:  # a child that is told to end ends, whatever the core does
        signal.signal(number, signal.SIG_DFL)
    faulthandler.unregister(trace_signal)
    faulthandler.enable(file=2, all_threads=False)  # where it dies is not where the core died
    _let_signals_go()


def leave(what: str, error: BaseException | None = None, came: str = "returned from it. ") -> NoReturn:
    """End a child that came back out of what forked it, without the core's exit handlers, and say so in the log.

    Args:
        what: What it came back from, such as "softmax (command 0x400)".
        error: What it raised. ``sys.exit`` gives the exit code; else that is 1.
        came: What it did when it raised nothing, up to the next sentence.
    """
    if isinstance(error, SystemExit):
        came = f"called sys.exit({error.code!r}) in it. "
    elif error is not None:
        came = f"raised in it:\n{''.join(traceback.format_exception(error, limit=-20)).rstrip()}\n"
    runtime.DSP_ERR(
        f"{what} forked process {os.getpid()}, which {came}It is ended: a forked "
        "process does not go on as the core. Let it end by os._exit(), or use multiprocessing or subprocess."
    )
    code = error.code if isinstance(error, SystemExit) else 1
    os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))
