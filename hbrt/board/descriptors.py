"""File descriptors of this process: whether as many are free as a connection takes, and those that others send.

libzmq ends the process when it finds none in the middle of making a socket. So what makes one looks first.
"""

from __future__ import annotations

import os
import socket
from array import array

from hbrt.errors import RefusedError
from hbrt.status import Status


def check_free(count: int, what: str) -> None:
    """Take that many file descriptors for a moment.

    Args:
        count: How many.
        what: What they are for.

    Raises:
        RefusedError: there are not so many; says why.
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
    """The refusal for something that finds no file descriptor."""
    few = "is not a file descriptor" if count == 1 else f"are fewer than {count} file descriptors free"
    return RefusedError(
        Status.HB_SYS_OUT_OF_MEMORY,
        f"There {few} for {what} ({error.strerror}); raise the limit of open files (ulimit -n), or close files.",
    )


def receive_fds(source: socket.socket, size_bytes: int, count: int, flags: int = 0) -> tuple[bytes, list[int], int]:
    """Receive a message, and descriptors with it that no program inherits which this process starts.

    ``socket.recv_fds`` has them inherited, and leaves the flags out in Python 3.11.

    Args:
        source: Of AF_UNIX.
        size_bytes: Of the message at most.
        count: Of descriptors at most.
        flags: As for ``recvmsg``.

    Returns:
        The message, the descriptors, and the flags that came.
    """
    fds = array("i")
    room = socket.CMSG_LEN(count * fds.itemsize)
    raw, sent, come, _ = source.recvmsg(size_bytes, room, flags | socket.MSG_CMSG_CLOEXEC)
    for level, kind, told in sent:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(told[: len(told) - len(told) % fds.itemsize])
    return raw, list(fds), come
