"""This process's file descriptors: checking that enough are free, and receiving them from other processes.

libzmq aborts the process if it runs out while creating a socket, so callers check first.
"""

from __future__ import annotations

import os
import socket
from array import array

from hbrt.errors import RefusedError
from hbrt.status import Status


def check_free(count: int, what: str) -> None:
    """Check that this many file descriptors are free, by opening them for a moment.

    Args:
        count: Number of descriptors.
        what: What they are for.

    Raises:
        RefusedError: too few are free; says why.
    """
    taken: list[int] = []
    try:
        while len(taken) < count:
            taken.append(os.eventfd(0, os.EFD_CLOEXEC))
    except OSError as error:
        raise too_few(what, error, count) from None
    finally:
        for fd in taken:
            os.close(fd)


def too_few(what: str, error: OSError, count: int = 1) -> RefusedError:
    """Return the error for running out of file descriptors."""
    few = "is not a file descriptor" if count == 1 else f"are fewer than {count} file descriptors free"
    return RefusedError(
        Status.HB_SYS_OUT_OF_MEMORY,
        f"There {few} for {what} ({error.strerror}); raise the limit of open files (ulimit -n), or close files.",
    )


def receive_fds(source: socket.socket, size_bytes: int, count: int, flags: int = 0) -> tuple[bytes, list[int], int]:
    """Receive a message and its descriptors, which programs started by this process do not inherit.

    ``socket.recv_fds`` makes them inheritable, and ignores the flags in Python 3.11.

    Args:
        source: An AF_UNIX socket.
        size_bytes: Maximum size of the message.
        count: Maximum number of descriptors.
        flags: Flags of ``recvmsg``.

    Returns:
        The message, the descriptors, and the received flags.
    """
    fds = array("i")
    room = socket.CMSG_LEN(count * fds.itemsize)
    raw, sent, come, _ = source.recvmsg(size_bytes, room, flags | socket.MSG_CMSG_CLOEXEC)
    for level, kind, told in sent:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(told[: len(told) - len(told) % fds.itemsize])
    return raw, list(fds), come
