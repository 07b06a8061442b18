"""File descriptors of this process: whether as many are free as a connection takes.

libzmq ends the process when it finds none in the middle of making a socket. So what makes one looks first.
"""

from __future__ import annotations

import os

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
    few = "is no file descriptor" if count == 1 else f"are fewer than {count} file descriptors free"
    return RefusedError(
        Status.HB_SYS_OUT_OF_MEMORY,
        f"There {few} for {what} ({error.strerror}); raise the limit of open files (ulimit -n), or close files.",
    )
