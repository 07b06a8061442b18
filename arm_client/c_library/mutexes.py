"""Threads of this process waiting for a mutex in C, and its holder, for ``hbrt why``.

The kernel reports the word that a thread sleeps on; in glibc's mutex, the owner is next to that word. The line comes
from the first return address on the thread's stack that is in the program.

Based on futex(2); proc_pid_syscall(5); glibc 2.36, sysdeps/nptl/bits/struct_mutex.h and lowlevellock.h.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

_FUTEX: Final = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
_COMMAND, _WAIT, _CONTENDED = 0x7F, 0, 2  # from futex(2), and glibc's lock word while a thread sleeps on it
_OWNER: Final = struct.Struct("<8xi")  # offset in pthread_mutex_t
_STACK_BYTES, _MAX_CALLERS = 4096, 4
_THREADS: Final = Path("/proc/self/task")


class Blocked(NamedTuple):
    """A thread waiting for a mutex.

    Attributes:
        thread: The kernel's thread id.
        mutex: Its address.
        holder: The thread that holds it.
        callers: Return addresses in code files, innermost first.
    """

    thread: int
    mutex: int
    holder: int
    callers: tuple[int, ...]


def blocked() -> list[Blocked]:
    """Return the threads now waiting for a mutex; empty if the kernel does not report them."""
    if _FUTEX is None:
        return []
    try:
        threads = {int(name) for name in os.listdir(_THREADS)}  # noqa: PTH208 - numbers, not paths
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            is_code = _code()
            found = [_blocked(thread, threads, memory, is_code) for thread in sorted(threads)]
    except OSError:
        return []
    return [one for one in found if one is not None]


def _blocked(thread: int, threads: set[int], memory: BinaryIO, is_code: Callable[[int], bool]) -> Blocked | None:
    try:
        words = (_THREADS / str(thread) / "syscall").read_text().split()
        if len(words) != 9 or int(words[0]) != _FUTEX:
            return None
        mutex, operation, value = (int(word, 16) for word in words[1:4])
        if operation & _COMMAND != _WAIT or value != _CONTENDED:
            return None
        (holder,) = _OWNER.unpack(_read(memory, mutex, _OWNER.size))
        if holder not in threads or holder == thread:
            return None
        stack = _read(memory, int(words[7], 16), _STACK_BYTES)
    except (OSError, struct.error):  # the thread continued, or ended
        return None
    return Blocked(thread, mutex, holder, tuple(islice(filter(is_code, _words(stack)), _MAX_CALLERS)))


def _read(memory: BinaryIO, address: int, size_bytes: int) -> bytes:
    return os.pread(memory.fileno(), size_bytes, address)


def _words(stack: bytes) -> Iterator[int]:
    for (word,) in struct.iter_unpack("<Q", stack[: len(stack) & ~7]):
        yield word


def _code() -> Callable[[int], bool]:
    """Whether an address is in the code of a file."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, access, _, _, _, *path = line.split(maxsplit=5)
        if "x" in access and path and path[0].startswith("/"):
            start, _, end = addresses.partition("-")
            ranges.append(range(int(start, 16), int(end, 16)))
    return lambda address: any(address in one for one in ranges)
