"""Forks: how a process detects that it is a forked child, even of C code's fork, and what it then does.

In a child of ``os.fork`` Python calls ``notice`` at once. In a child of C code's ``fork`` nothing runs, but the kernel
has zeroed ``mark`` there, which the child's next call checks. If the kernel cannot do that (before 4.14, or under
qemu-user), calls that ask the daemon check the process id, which is slower to read.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_WIPE_ON_FORK = 18  # MADV_WIPEONFORK, Linux 4.14: not named in the mmap module


def wiped_page() -> mmap.mmap:
    """A page whose first byte is 1 in this process, and 0 in its children, where the kernel zeroes it."""
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # an older kernel
        page.madvise(_WIPE_ON_FORK)
    page[0] = 1
    return page


mark = wiped_page()
"""Its first byte is 0 in a child that has not noticed yet."""

_process = os.getpid()
_in_child: list[Callable[[], object]] = []


def in_child(call: Callable[[], object]) -> None:
    """Run ``call()`` in every child when it notices the fork, after the calls registered earlier."""
    _in_child.append(call)


def notice() -> None:
    """In a child that has not noticed yet, run the registered calls."""
    global _process  # noqa: PLW0603 - it is the process's
    pid = os.getpid()
    if mark[0] and pid == _process:
        return
    _process = pid  # first, since these calls may come here again
    mark[0] = 1
    for call in _in_child:
        call()


def end_with(parent: int) -> None:
    """Make this process die with its parent, given by process id: by SIGKILL, which cannot be blocked."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # the parent died before the call above


os.register_at_fork(after_in_child=notice)
