"""The entry points of the installed programs: each loads its own modules and runs them.

Until a program is running, Ctrl-C ends it silently: nothing has been started that could be left half done, and nobody
would catch a KeyboardInterrupt in the middle of an import. So this module itself loads almost nothing.
"""

from __future__ import annotations

import gc
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130  # as hbrt.cli.exits.Exit.INTERRUPTED


def hbrt() -> None:
    """Run ``hbrt``."""
    _be("hbrt.cli.group")


def dsp_server() -> None:
    """Run ``dsp_server``."""
    _be("dsp_server.commands.start")


def dsp_relay_server() -> None:
    """Run ``dsp_relay_server``."""
    _be("dsp_server.commands.relay")


def hrt_model_exec() -> None:
    """Run ``hrt_model_exec``."""
    _be("arm_client.commands.model_exec.command")


def _be(module: str) -> None:
    """Load a module and run its ``main``."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise the starter has it ignored
        signal.signal(signal.SIGINT, _leave)
    from importlib import import_module

    # Loaded objects stay: collecting them during loading and at exit would take 10% of a verb's time.
    gc.disable()
    main = import_module(module).main
    gc.freeze()
    gc.enable()
    main()


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


class interruptible:  # noqa: N801 - a context manager
    """While a program is running, make Ctrl-C a KeyboardInterrupt, which lets it clean up.

    Does nothing in a process that is not one of the programs, which handles SIGINT itself.
    """

    def __enter__(self) -> None:
        self._is_ours = signal.getsignal(signal.SIGINT) is _leave
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, _leave)
