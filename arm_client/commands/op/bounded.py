"""Run a parser of foreign text in its own process, to contain hangs, crashes and excessive memory use."""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import multiprocessing
import os
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TypeVar, cast

from hbrt.layout.structure import LayoutError

MAX_SECONDS = 5
MAX_BYTES: Final = 2 << 30

_T = TypeVar("_T")


def bounded(call: Callable[[], _T], what: str) -> _T:
    """Return the result of ``call`` in a fork of this process, or raise its exception.

    Args:
        call: The function to call; its result and exceptions must be picklable.
        what: Name of its input, for messages.

    Raises:
        LayoutError: it took more than MAX_SECONDS of a CPU or MAX_BYTES of further memory, or its process crashed.
    """
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(call, writer), daemon=True)
    process.start()
    writer.close()
    answer = None
    try:
        with contextlib.suppress(EOFError):  # it crashed
            answer = reader.recv() if reader.poll(6 * MAX_SECONDS) else None
    finally:
        reader.close()
        process.kill()
        process.join()
    if answer is None:
        raise LayoutError(
            f"{what} cannot be read: its parser crashed or exceeded {MAX_SECONDS} s or {MAX_BYTES >> 30} GiB."
        )
    result, error = answer
    if error is not None:
        raise error
    return cast("_T", result)


def _answer(call: Callable[[], object], writer: Connection) -> None:
    """In the fork: call the function, and send its outcome."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    mapped_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])  # a board's memory, too
    limit = mapped_pages * mmap.PAGESIZE + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a crash of libclang writes a page
    result, error = None, None
    try:
        result = call()
    except Exception as raised:  # noqa: BLE001 - the caller raises it
        error = raised
    writer.send((result, error))
