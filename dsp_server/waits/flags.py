"""A flag polled by an op: the memory in the DDR that its loop reads while the op makes no progress."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from types import FrameType
from typing import Any

from dsp_server.waits.sentences import is_library
from hbrt.protocol.frame_values import Read, read_in_loop


class Flags:
    """Finds flags polled by the ops of a process; ``shared`` is the DDR file's bytes, as ops see them."""

    def __init__(self, shared: memoryview) -> None:
        self._base, self._bytes = ctypes.addressof(ctypes.c_char.from_buffer(shared)), shared.nbytes

    def read_by(self, frame: FrameType | None) -> tuple[int, int]:
        """Return offset in the DDR file, and size, of the memory that an op's loop polls; zeros if none.

        Args:
            frame: The op's innermost frame. The op is not progressing, so its variables do not change.
        """
        while frame is not None and is_library(frame.f_code.co_filename):
            frame = frame.f_back
        with contextlib.suppress(Exception):  # called by the heartbeat thread
            for read in read_in_loop(frame) if frame is not None else ():
                offset, size = _place_of(read)
                if size and self._base <= offset and offset + size <= self._base + self._bytes:
                    return offset - self._base, size
        return 0, 0


def _place_of(read: Read) -> tuple[int, int]:
    """Return address and size of a part of an array, view or structure, without reading the part itself."""
    whole: Any = read.of.value
    if isinstance(whole, ctypes.Structure) and isinstance(read.part, str):
        field: Any = getattr(type(whole), read.part, None)
        size = getattr(field, "size", 0)
        return (ctypes.addressof(whole) + field.offset, size) if 0 < size < 1 << 16 else (0, 0)  # not a bit field
    numpy = sys.modules.get("numpy")  # not every image loads it
    is_array = numpy is not None and isinstance(whole, numpy.ndarray)
    if isinstance(read.part, str) or not (is_array or isinstance(whole, memoryview | ctypes.Array)):
        return 0, 0
    try:
        index = read.part if isinstance(read.part, tuple) else (read.part,)
        # Slicing one element creates a view instead of reading it.
        ends = tuple(slice(at, at + 1 or None) if isinstance(at, int) else at for at in index)
        part = whole[ends] if is_array else memoryview(whole)[ends[0]]
        return ctypes.addressof(ctypes.c_char.from_buffer(part)), part.nbytes
    except (IndexError, TypeError, ValueError, BufferError):
        return 0, 0  # no such element, not contiguous, or a variable with read-only bytes
