"""The bytes of a FastRPC task: the CPU side writes them into the input block, and the DSP side reads them. Pure.

Emulator: a call is one task of the board, with the command ``FASTRPC_CMD``. Its input block has a header, and for each
argument a physical address and a size; its status is the method's return value. Little-endian throughout.
"""

from __future__ import annotations

import struct
from typing import Final

FASTRPC_CMD: Final = 0xFA57
"""Command of the tasks; an image that registers an interface registers it."""
OPEN, INVOKE, CLOSE, END, WAKE = 1, 2, 3, 4, 5

HEAD: Final = struct.Struct("<IIQII")
"""Kind; scalar word; the DSP side's handle; the number of arguments, or for an open the size of the URI that follows;
for an open the KiB that its program's objects may allocate in the process domain (0 for no limit), for an invocation
the page of the program's descriptor table (0 for none), otherwise 0."""
ARGUMENT: Final = struct.Struct("<QQ")
"""Physical address and size of a buffer, zeros for an empty one; for a handle its value, and 0."""
DESCRIPTOR: Final = struct.Struct("<iIQQ")
"""A row of the descriptor table: the program's descriptor, 1 for a row in use, physical address and size."""
TABLE_BYTES: Final = 1 << 14
TABLE_ROWS: Final = TABLE_BYTES // DESCRIPTOR.size
PAGE_BYTES: Final = 4096
HANDLE: Final = struct.Struct("<Q")
"""The output block of an open: the DSP side's handle."""
MAX_URI: Final = 1024
COPY_ALIGNMENT: Final = 128
"""Alignment of argument copies, and the preferred alignment of FastRPC's memory."""


UNSIGNED_BYTES: Final = 5 << 20
"""Memory of an unsigned process domain."""

HIGHEST, DEFAULT_PRIORITY, LOWEST = 1, 192, 255
"""Priorities of a domain's threads: smaller numbers first."""
_MAX_TASK_PRIORITY: Final = 253  # higher ones interrupt


def task_priority(priority: int) -> int:
    """The priority of a domain's tasks: larger numbers first."""
    return min(LOWEST - priority, _MAX_TASK_PRIORITY)


def pack_open(uri: str, limit_bytes: int = 0) -> bytes:
    """An open; ``limit_bytes``: memory of the process domain, 0 for no limit."""
    raw = uri.encode()
    return HEAD.pack(OPEN, 0, 0, len(raw), limit_bytes >> 10) + raw


def pack_close(handle: int) -> bytes:
    """A close."""
    return HEAD.pack(CLOSE, 0, handle, 0, 0)


def pack_end() -> bytes:
    """A message that ends the core's process, which restarts."""
    return HEAD.pack(END, 0, 0, 0, 0)


def pack_wake(queue: int) -> bytes:
    """A message that makes the image process the requests of a queue."""
    return HEAD.pack(WAKE, 0, queue, 0, 0)


def pack_invoke(handle: int, word: int, arguments: list[int], table: int = 0) -> bytes:
    """An invocation.

    Args:
        handle: The DSP side's.
        word: The scalar word.
        arguments: Two numbers for each argument, as in ``ARGUMENT``.
        table: Physical address of the program's descriptor table; 0 if there is none.
    """
    numbers = len(arguments)
    return struct.pack(f"{HEAD.format}{numbers}Q", INVOKE, word, handle, numbers // 2, table // PAGE_BYTES, *arguments)
