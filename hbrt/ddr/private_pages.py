"""Private pages that replace shared ones: the last bytes of blocks that a process freed but still reads.

A view refers to an address, so its bytes cannot move. When the block is freed, the pages at that address are atomically
replaced by a copy private to this process: the view keeps the last bytes, and no other program sees writes. Memory
without views can be made inaccessible: an access through an old pointer causes a fault.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Range = tuple[int, int]
"""Start and end in the DDR file, page-aligned."""

_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2
_MAP_FIXED, _MAP_NORESERVE = 0x10, getattr(mmap, "MAP_NORESERVE", 0x4000)
_NO_ACCESS = 0
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_PRIVATE = mmap.MAP_PRIVATE | _MAP_NORESERVE
_ANONYMOUS = _PRIVATE | mmap.MAP_ANONYMOUS
_FAILED = ctypes.c_void_p(-1).value
_CHUNK_BYTES = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _mremap = _libc.mmap, _libc.mremap
_mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)  # fmt: skip
_mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
_mmap.restype = _mremap.restype = ctypes.c_void_p
mprotect = _libc.mprotect
"""The system call: address, bytes, protection; returns 0 on success."""
mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def map_shared(address: int, size_bytes: int, fd: int, offset: int, access: int = _READ_WRITE) -> None:
    """Map a file range over the pages at an address: shared, and left out of core dumps as the whole mapping is.

    Raises:
        OSError: out of memory, or the file does not allow it.
    """
    _check(_mmap(address, size_bytes, access, mmap.MAP_SHARED | _MAP_FIXED, fd, offset))
    _libc.madvise(address, size_bytes, mmap.MADV_DONTDUMP)


MAX_OPEN = 24_000
"""Each open part of a closed mapping costs the kernel two mappings; a program needs some for itself."""

AnyBytes = ctypes.c_ubyte * (1 << 32)
"""Bytes at an address, up to the size of a block; the creator sets the actual number."""


def bytes_at(address: int, size_bytes: int) -> memoryview:
    """Return the bytes at an address, writable; nothing keeps them mapped."""
    return memoryview(AnyBytes.from_address(address)).cast("B")[:size_bytes]


class PrivatePages:
    """Which pages of one mapping of the DDR file are private.

    Args:
        fd: The file.
        address: Address of the mapping in this process.
        data_runs: Parts of a range of the file that are not holes.
    """

    def __init__(self, fd: int, address: int, data_runs: Callable[[int, int, int], Iterator[Range]]) -> None:
        self._fd = fd
        self._address = address
        self._data_runs = data_runs
        self._lock = threading.RLock()
        self._starts: list[int] = []  # sorted
        self._kept: dict[int, tuple[int, weakref.ref[Any]]] = {}  # start -> end, and the object that shows it is viewed
        self._forbidden: dict[int, int] = {}  # start -> end of ranges inaccessible now, or after their last view
        self._forbidden_starts: list[int] = []  # sorted
        self._unviewed: deque[int] = deque()  # starts of ranges whose last view is gone
        self._opened: set[int] | None = None  # in a closed mapping: starts of accessible ranges
        self._is_final = False

    def overlap(self, start: int, end: int) -> bool:
        """Whether a file range cannot be reached through the mapping, because some of its pages are private."""
        if not self._starts:
            return False
        self.share_unviewed()
        with self._lock:
            at = bisect_left(self._starts, end) - 1
            return at >= 0 and self._kept[self._starts[at]][0] > start

    def keep(self, start: int, end: int, viewed: Any, source: tuple[int, int] | None = None) -> None:
        """Make a range private, until ``viewed`` is gone.

        Args:
            start: Start of the range in the DDR file.
            end: Likewise.
            viewed: The range stays private as long as this object lives.
            source: Another file mapped in the range, and its offset there.

        Raises:
            OSError: no memory for the copy, or no mappings left.
        """
        with self._lock:
            self.share_unviewed()
            if self._is_final:
                return
            self.exchange(self._address + start, start, end, [(start, end)], source=source)
            note = self._unviewed.append
            self._kept[start] = (end, weakref.ref(viewed, lambda _: note(start)))
            insort(self._starts, start)

    def share(self, start: int) -> None:
        """Undo ``keep``: the mapping shows the file again."""
        with self._lock:
            kept = None if self._is_final else self._kept.pop(start, None)
            if kept is not None:
                self._starts.remove(start)
                is_shut = start in self._forbidden or (self._opened is not None and start not in self._opened)
                access = _NO_ACCESS if is_shut else _READ_WRITE
                map_shared(self._address + start, kept[0] - start, self._fd, start, access)

    def forbid(self, start: int, end: int) -> None:
        """Make every access to a range fault once it has no views.

        A range stays accessible if the kernel has no mappings left; nothing depends on the fault.
        """
        with self._lock:
            if self._is_final or start in self._forbidden:
                return
            self._forbidden[start] = end
            insort(self._forbidden_starts, start)
            first = self._kept[start][0] if start in self._kept else start
            mprotect(self._address + first, end - first, _NO_ACCESS)

    @staticmethod
    def empty(pages: mmap.mmap, address: int) -> None:
        """Return the bytes of other pages of this process to the host, and make every access to them fault."""
        pages.madvise(mmap.MADV_REMOVE)
        mprotect(address, len(pages), _NO_ACCESS)

    def forbidden(self, start: int, end: int) -> list[int]:
        """Return the starts of forbidden ranges that overlap a range."""
        with self._lock:
            last = bisect_left(self._forbidden_starts, end)
            first = bisect_left(self._forbidden_starts, start)
            if first and self._forbidden[self._forbidden_starts[first - 1]] > start:
                first -= 1
            return self._forbidden_starts[first:last]

    def permit(self, start: int) -> None:
        """Undo ``forbid`` for the range that starts there."""
        with self._lock:
            end = self._forbidden.pop(start, start)
            if end == start:
                return
            self._forbidden_starts.remove(start)
            if not self._is_final and self._opened is None:
                mprotect(self._address + start, end - start, _READ_WRITE)

    def close_all(self, start: int, end: int) -> None:
        """Make every access to a range fault, except in parts opened by ``open``."""
        with self._lock:
            self._opened = set()
            mprotect(self._address + start, end - start, _NO_ACCESS)

    def open(self, start: int, end: int) -> bool:
        """Open part of ``close_all``'s range; returns False if too many are open: the kernel allows 65 530 mappings."""
        with self._lock:
            if self._opened is None or self._is_final:
                return True
            self._opened.add(start)
            return len(self._opened) <= MAX_OPEN and not mprotect(self._address + start, end - start, _READ_WRITE)

    def open_all(self, start: int, end: int) -> None:
        """Undo ``close_all`` and all ``forbid``: the result is a single mapping for the kernel."""
        with self._lock:
            self._opened = None
            mprotect(self._address + start, end - start, _READ_WRITE)

    def close(self, start: int, end: int) -> None:
        """Undo ``open`` once the range has no views."""
        with self._lock:
            if self._opened is None or self._is_final:
                return
            self._opened.discard(start)
            first = self._kept[start][0] if start in self._kept else start
            mprotect(self._address + first, end - first, _NO_ACCESS)

    @property
    def is_closed(self) -> bool:
        """Whether only opened ranges are accessible."""
        return self._opened is not None

    def share_unviewed(self) -> None:
        """Map the file again in all ranges without views."""
        while self._unviewed:
            try:
                self.share(self._unviewed.popleft())
            except IndexError:
                return  # another thread took the last one

    def keep_finally(self, ranges: Sequence[Range]) -> None:
        """Make these ranges private permanently, in one mapping; the gaps between them read as zeros.

        Raises:
            OSError: as in ``keep``; then all of it reads as zeros.
        """
        with self._lock:
            if self._is_final or not ranges:
                self._is_final = True
                return
            start, end = min(first for first, _ in ranges), max(last for _, last in ranges)
            before = [(at, kept[0]) for at, kept in self._kept.items() if start < kept[0] and at < end]
            start, end = min([start, *(at for at, _ in before)]), max([end, *(last for _, last in before)])
            self._is_final = True
            try:
                self.exchange(self._address + start, start, end, ranges, before)
            except OSError:
                _mmap(self._address + start, end - start, _READ_WRITE, _ANONYMOUS | _MAP_FIXED, -1, 0)
                raise

    def cut_off(self, start: int, end: int) -> None:
        """In a forked child: writes to a range no longer reach any other process."""
        self._lock = threading.RLock()
        self._is_final = True
        self._opened = None
        kept = sorted((at, last) for at, (last, _) in self._kept.items())
        edges = [start, *(edge for part in kept for edge in part), end]
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            if first < last:
                self.isolate(self._address + first, first, last)

    def isolate(self, address: int, start: int, end: int) -> None:
        """Keep pages at an address mapped to the file range, but make writes private to this process."""
        _check(_mmap(address, end - start, _READ_WRITE, _PRIVATE | _MAP_FIXED, self._fd, start))

    def exchange(
        self,
        address: int,
        start: int,
        end: int,
        shared: Sequence[Range],
        private: Sequence[Range] = (),
        source: tuple[int, int] | None = None,
    ) -> None:
        """Replace the pages at an address, which map a file range, with private ones.

        Args:
            address: Address of the range's first byte.
            start: Start of the range in the file.
            end: Likewise.
            shared: Parts of it whose bytes are copied from the file.
            private: Parts of it whose bytes are copied from memory, because they are already private.
            source: Like that of ``keep``.

        Raises:
            OSError: no memory for the copy, or no mappings left.
        """
        size = end - start
        copy = _check(_mmap(None, size, _READ_WRITE, _ANONYMOUS, -1, 0))
        try:
            _libc.madvise(copy, size, mmap.MADV_NOHUGEPAGE)  # one page must not cost 2 MiB
            file, begin = source or (self._fd, start)
            parts = ((first - start + begin, last - start + begin) for first, last in shared)
            for first, last in (run for part in parts for run in self._data_runs(file, *part)):
                for at in range(first, last, _CHUNK_BYTES):
                    os.preadv(file, [bytes_at(copy + at - begin, min(_CHUNK_BYTES, last - at))], at)
            for first, last in private:
                ctypes.memmove(copy + first - start, address + first - start, last - first)
            _check(_mremap(copy, size, size, _MREMAP_MAYMOVE | _MREMAP_FIXED, address))
        except BaseException:
            _libc.munmap(copy, size)
            raise


def _check(address: int | None) -> int:
    if address is None or address == _FAILED:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return address
