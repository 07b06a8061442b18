"""Another library's memory in a board's address space: a file replaces a block, mapped on access.

The daemon holds the file open, and the block's record has its descriptor number. A process of the board opens it
through that number, and maps its pages over those of the DDR file, on its first access to the block.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import NamedTuple, Self

from hbrt.ddr.layout import PAGE_BYTES
from hbrt.ddr.private_pages import map_shared

MAX_FD = (1 << 16) - 1
_PAGE_SHIFT, _SERIAL_SHIFT = 32, 16
MAX_OFFSET = ((1 << 32) - 1) * PAGE_BYTES


class ImportedFile(NamedTuple):
    """The file in a block's record; as a number, 0 means a block of the DDR.

    Attributes:
        fd: Its descriptor in the daemon, not 0.
        serial: 0..65535, different for the next file with the same descriptor.
        offset: Start of the block in the file, a multiple of the page size.
    """

    fd: int
    serial: int
    offset: int

    def packed(self) -> int:
        """Return the number for the record."""
        return self.offset // PAGE_BYTES << _PAGE_SHIFT | self.serial << _SERIAL_SHIFT | self.fd

    @classmethod
    def of(cls, word: int) -> Self:
        """Return the file named by a record."""
        return cls(word & MAX_FD, word >> _SERIAL_SHIFT & MAX_FD, (word >> _PAGE_SHIFT) * PAGE_BYTES)


class ImportedPages:
    """The imported files visible in one mapping of the DDR file.

    Args:
        fd: The DDR file.
        address: Address of the mapping in this process.
    """

    def __init__(self, fd: int, address: int) -> None:
        self.holder = 0  # the daemon's process id
        self.on_change: Callable[[bool], None] = lambda _: None  # called with whether any is visible
        self._fd = fd
        self._address = address
        self._lock = threading.RLock()
        self._shown: dict[int, tuple[int, int]] = {}  # start in the DDR file -> end, and the word of the block's record

    def __bool__(self) -> bool:
        """Whether any is visible."""
        return bool(self._shown)

    def show(self, start: int, end: int, word: int) -> None:
        """Map the file in a block's record over a range of the DDR file, replacing any earlier import.

        Args:
            start: Start of the block's pages in the DDR file.
            end: Their end.
            word: Number in the record; 0 for the DDR.

        Raises:
            OSError: the file cannot be opened or mapped.
        """
        if self._shown.get(start) == (end, word):
            return
        with self._lock:
            for at, (last, _) in list(self._shown.items()):
                if at < end and start < last:
                    self.hide(at)
            if word:
                fd = self.open(word)
                try:
                    map_shared(self._address + start, end - start, fd, ImportedFile.of(word).offset)
                finally:
                    os.close(fd)
                self._shown[start] = end, word
                self.on_change(True)

    def hide(self, start: int) -> None:
        """Map the DDR file again in the range that starts there; does nothing if it is already mapped."""
        with self._lock:
            end, _ = self._shown.pop(start, (start, 0))
            if end > start:
                map_shared(self._address + start, end - start, self._fd, start)
                self.on_change(bool(self._shown))

    def discard(self, start: int) -> None:
        """Record that something else has been mapped at the start of that range."""
        self._shown.pop(start, None)

    def keep_only(self, is_so: Callable[[int, int], bool]) -> None:
        """Hide stale imports, given by their start in the DDR file and their word."""
        for start, (_, word) in list(self._shown.items()):
            if not is_so(start, word):
                self.hide(start)

    def word_at(self, start: int) -> int:
        """Return the word of the file mapped there; 0 for the DDR."""
        return self._shown.get(start, (0, 0))[1]

    def open(self, word: int) -> int:
        """Open the file named by a record; the caller closes the descriptor.

        Raises:
            OSError: this process cannot open it.
        """
        if not self.holder:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return os.open(f"/proc/{self.holder}/fd/{ImportedFile.of(word).fd}", os.O_RDWR | os.O_CLOEXEC)
