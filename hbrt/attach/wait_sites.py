"""Which threads of this process wait for the board, and where in the program: told to the daemon for ``hbrt why``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType

from hbrt.mailbox.handle import slot_of
from hbrt.protocol.stacks import Frame, Wait

_WAITING = "hbrt.attach.waiting"
_RUNTIME = {"arm_client", "hbrt", "dsp_server", "ctypes", "numpy"}
_MOST_FRAMES = 12
_CORE = "dsp_server.core."  # below a program that is an op


of_c: Callable[[], list[tuple[int, str]]] = list
"""The waits of C code, which arm_client.c_library sets: a task's handle, 0 for one that is not known, and the line."""


def waits() -> list[Wait]:
    """The waits of this process's threads, those for a known task first.

    When only the runtime's own threads wait (for callbacks, for asyncio), it is the main thread's stack.
    """
    frames = sys._current_frames()  # noqa: SLF001 - the only way to the other threads
    found = [wait for frame in frames.values() if (wait := _wait_of(frame)) is not None]
    found += [_wait_in_c(handle, site) for handle, site in of_c()]
    if not any(wait.stack for wait in found):
        main = frames.get(threading.main_thread().ident or 0)
        found = [Wait(-1, _stack_of(main))]
    return sorted((wait for wait in found if wait.stack), key=lambda wait: wait.slot, reverse=True)


def _wait_in_c(handle: int, site: str) -> Wait:
    file, _, line = site.rpartition(":")
    is_known = line.isdigit()
    return Wait(
        slot_of(handle) if handle else -1, (Frame(file if is_known else site, int(line) if is_known else 0, "C"),)
    )


def _wait_of(innermost: FrameType) -> Wait | None:
    """The wait of a thread, None for one that does not wait for the board."""
    frame: FrameType | None = innermost
    waits, slot = False, -1
    while frame is not None and slot < 0:
        if frame.f_globals.get("__name__") == _WAITING:
            waits = True
            slot = frame.f_locals.get("slot", -1) if "slot" in frame.f_code.co_varnames else -1
        frame = frame.f_back
    return Wait(slot, _stack_of(innermost)) if waits else None


def _stack_of(frame: FrameType | None) -> tuple[Frame, ...]:
    """A thread's stack from the program's own line on: without the calls of libraries above it."""
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    stack: list[Frame] = []
    while (
        frame is not None and len(stack) < _MOST_FRAMES and not str(frame.f_globals.get("__name__")).startswith(_CORE)
    ):
        code = frame.f_code
        file = code.co_filename.encode("utf-8", "replace").decode().replace("\0", "?")  # a name may be any bytes
        stack.append(Frame(file.replace("\n", "?"), frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(stack)


def _is_library(frame: FrameType) -> bool:
    top = str(frame.f_globals.get("__name__")).partition(".")[0]
    return top in _RUNTIME or (top in sys.stdlib_module_names and top != "__main__")
