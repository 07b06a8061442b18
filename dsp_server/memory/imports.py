"""Memory made by a client's other library: opened by the daemon, so that it lasts as long as its block."""

from __future__ import annotations

import itertools
import mmap
import os
import resource
import stat
from pathlib import Path
from typing import NamedTuple

from hbrt.ddr.imported import MAX_FD, MAX_OFFSET, ImportedFile
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.errors import RequestRefusedError
from hbrt.findings.text import counted
from hbrt.status import Status

_serials = itertools.count(1)


class OpenedMemory(NamedTuple):
    """A file that the daemon holds open for a block.

    Attributes:
        file: What the block's record says about it.
        key: Device, inode and offset, which are equal for two descriptors of the same memory.
    """

    file: ImportedFile
    key: tuple[int, int, int]


def open_memory(pid: int, fd: int, offset: int, size_bytes: int) -> OpenedMemory:
    """Open the memory behind a client's descriptor.

    Args:
        pid: The client's process.
        fd: Its descriptor.
        offset: Where the range starts in it, in bytes.
        size_bytes: Size of the range.

    Raises:
        RequestRefusedError: HB_SYS_INVALID_ARGUMENT or HB_SYS_REGISTER_MEM_FAILED: it is not memory that processes can
            share, or does not contain the range; HB_SYS_OUT_OF_MEMORY: the daemon is out of descriptors.
    """
    what = f"File descriptor {fd}"
    if offset % PAGE_BYTES or offset > MAX_OFFSET:
        raise _refusal(f"The offset {offset} is not a multiple of {PAGE_BYTES}, up to {MAX_OFFSET:#x}.")
    theirs = Path(f"/proc/{pid}/fd/{fd}")
    try:
        kind = theirs.stat()
    except OSError as error:
        raise _refusal(f"{what} of process {pid} is not open, or is in another container: {error.strerror}.") from None
    if not stat.S_ISREG(kind.st_mode):
        raise _refusal(f"{what} is neither memory nor a file: create it with memfd_create() or shm_open().")
    if offset + size_bytes > kind.st_size:
        raise _refusal(
            f"The range of {counted(size_bytes, 'byte')} at offset {offset} does not fit in file descriptor {fd}, "
            f"which has {kind.st_size}; ftruncate() it first."
        )
    ours = -1
    try:
        ours = os.open(theirs, os.O_RDWR | os.O_CLOEXEC)
        mmap.mmap(ours, size_bytes, offset=offset).close()
    except (OSError, ValueError) as error:  # ValueError: it was truncated meanwhile
        if ours >= 0:
            os.close(ours)
        why = getattr(error, "strerror", None) or str(error)
        raise _failure(f"{what} cannot be opened and mapped for reading and writing: {why}.") from None
    if not 0 < ours <= min(MAX_FD, resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4):
        os.close(ours)
        raise RequestRefusedError(
            Status.HB_SYS_OUT_OF_MEMORY,
            "The daemon has no descriptors left for memory of other libraries; unregister some.",
        )
    file = ImportedFile(ours, next(_serials) & MAX_FD, offset)
    return OpenedMemory(file, (kind.st_dev, kind.st_ino, offset))


def _refusal(sentence: str) -> RequestRefusedError:
    return RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, sentence)


def _failure(sentence: str) -> RequestRefusedError:
    return RequestRefusedError(Status.HB_SYS_REGISTER_MEM_FAILED, sentence)
