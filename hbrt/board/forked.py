"""Forks: how a process tells that it is the child of one, also of one by C code, and what it does then.

In a child of ``os.fork`` Python calls ``notice`` at once. In a child of C code's ``fork`` nothing runs; but the kernel
has emptied ``mark`` there, and what the child calls next looks at it. Where the kernel cannot do that (before 4.14, or
under qemu-user), the process id tells it, in calls that ask the daemon: it costs more to read.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_WIPE_ON_FORK = 18  # MADV_WIPEONFORK, Linux 4.14: the mmap module has no name for it


def wiped_page() -> mmap.mmap:
    """A page whose first byte is 1 in this process, and 0 in its children: the kernel empties it there."""
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # an older kernel
        page.madvise(_WIPE_ON_FORK)
    page[0] = 1
    return page


mark = wiped_page()
"""Its first byte is 0 in a child that has not noticed so far."""

_process = os.getpid()
_in_child: list[Callable[[], object]] = []


def in_child(call: Callable[[], object]) -> None:
    """Have ``call()`` run in every child, when it notices, after the calls that were given before."""
    _in_child.append(call)


def notice() -> None:
    """In a child that has not noticed so far, do what a child has to do."""
    global _process  # noqa: PLW0603 - it is the process's
    pid = os.getpid()
    if mark[0] and pid == _process:
        return
    _process = pid  # first: what a child does may come here again
    mark[0] = 1
    for call in _in_child:
        call()


def end_with(parent: int) -> None:
    """Make this process die with its parent, given by its process id: by SIGKILL, so that nothing stops it."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # it died before the call above


os.register_at_fork(after_in_child=notice)
