"""Where this process's threads wait for the board or a program lock, with lines, for ``hbrt why``."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from hbrt.borders.guests import PACKAGES
from hbrt.protocol.frame_values import acquired, held
from hbrt.protocol.stacks import NO_SLOT, Frame, Wait

_WAITING = {"hbrt.attach.waiting", "hbrt.attach.tasks"}
_RUNTIME = {*PACKAGES, "ctypes", "numpy"}
_MAX_FRAMES = 12
_CORE = "dsp_server.core."  # below a program that runs as an op


def _none_in_c(slots: Mapping[int, int]) -> list[Wait]:
    del slots
    return []


of_c: Callable[[Mapping[int, int]], list[Wait]] = _none_in_c
"""Returns the waits of C code, given the slots that Python threads wait for; set by arm_client.c_library."""


def waits() -> list[Wait]:
    """Return the waits of this process's threads: those for known tasks first, those for locks last.

    If only the runtime's own threads wait (for callbacks, for asyncio), return the main thread's stack.
    """
    frames = sys._current_frames()  # noqa: SLF001 - the only way to the other threads
    of_threads = {thread: _wait_of(frame) for thread, frame in frames.items()}
    found = [wait for wait in of_threads.values() if wait is not None]
    in_c = of_c({thread: wait.slot for thread, wait in of_threads.items() if wait is not None})
    found += [wait for wait in in_c if not wait.lock]
    if not any(wait.stack for wait in found):
        main = frames.get(threading.main_thread().ident or 0)
        found = [Wait(-1, _stack_of(main))]
    found = sorted((wait for wait in found if wait.stack), key=lambda wait: wait.slot, reverse=True)
    with contextlib.suppress(Exception):  # searching arbitrary stacks must not break a wait of the program
        locked = {thread: one for thread, frame in frames.items() if (one := _wait_for_lock(frame, frames, of_threads))}
        found += in_circles(
            {thread: wait for thread, (wait, _) in locked.items()}, {t: h for t, (_, h) in locked.items()}
        )
    return found + [wait for wait in in_c if wait.lock]


def in_circles(waits: Mapping[int, Wait], holders: Mapping[int, int]) -> list[Wait]:
    """Return the waits for locks, marking threads that wait for each other as described in ``Wait``.

    Args:
        waits: Wait of each thread.
        holders: Holder of the lock that each thread waits for.
    """
    found: dict[int, Wait] = {}
    circles = NO_SLOT
    for thread in waits:
        circle = [thread]
        while (after := holders.get(circle[-1], 0)) in waits and after not in circle:
            circle.append(after)
        if after == thread and thread not in found:
            circles -= 1
            found |= {one: waits[one]._replace(slot=circles) for one in circle}
    return [*found.values(), *(wait for thread, wait in waits.items() if thread not in found)]


def _wait_for_lock(
    frame: FrameType, frames: dict[int, FrameType], waits: dict[int, Wait | None]
) -> tuple[Wait, int] | None:
    """Return a thread's wait for a lock named in its own line, and the holder; None for any other thread."""
    lock = None if _is_library(frame) else acquired(frame)
    if lock is None:
        return None
    kind = f"{type(lock.value).__name__} '{lock.text}'"
    holder, since = _holder(lock.value, frames)
    if holder not in frames or frames[holder] is frame:
        return Wait(NO_SLOT, _stack_of(frame), f"{kind}; its holder is unknown"), 0
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    name = " ".join(str(names.get(holder, holder)).split())
    wait = waits[holder]
    is_known = wait is not None and wait.slot >= 0
    then = f", which waits for task {wait.slot}" if wait is not None and is_known else ""
    slot = wait.slot if wait is not None else NO_SLOT
    return Wait(slot, _stack_of(frame), f"{kind}, which thread {name} holds{since}{then}"), holder


def _holder(lock: Any, frames: dict[int, FrameType]) -> tuple[int, str]:
    """Return the thread that holds a lock, and the line that took it; 0 if unknown."""
    for thread, innermost in frames.items():
        frame: FrameType | None = innermost
        while frame is not None:
            for one, line in () if _is_library(frame) else held(frame):
                if one.value is lock:
                    return thread, f" (with: {_frame(frame).file}:{line})"
            frame = frame.f_back
    owner = re.search(r" owner=(\d+) ", repr(lock))  # only an RLock knows it
    return int(owner[1]) if owner else 0, ""


def _wait_of(innermost: FrameType) -> Wait | None:
    """Return a thread's wait, None if it is not waiting for the board."""
    frame: FrameType | None = innermost
    waits, slot = False, -1
    while frame is not None and slot < 0:
        if frame.f_globals.get("__name__") in _WAITING:
            waits = True
            slot = frame.f_locals.get("slot", -1) if "slot" in frame.f_code.co_varnames else -1
        frame = frame.f_back
    return Wait(slot, _stack_of(innermost)) if waits else None


def _stack_of(frame: FrameType | None) -> tuple[Frame, ...]:
    """Return a thread's stack from the program's own line on, without library calls above it."""
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    stack: list[Frame] = []
    while frame is not None and len(stack) < _MAX_FRAMES and not str(frame.f_globals.get("__name__")).startswith(_CORE):
        stack.append(_frame(frame))
        frame = frame.f_back
    return tuple(stack)


def _frame(frame: FrameType) -> Frame:
    code = frame.f_code
    file = code.co_filename.encode("utf-8", "replace").decode().replace("\0", "?")  # a name may contain any bytes
    return Frame(file.replace("\n", "?"), frame.f_lineno, code.co_name)


def _is_library(frame: FrameType) -> bool:
    top = str(frame.f_globals.get("__name__")).partition(".")[0]
    return top in _RUNTIME or (top in sys.stdlib_module_names and top != "__main__")
