"""Run a parser of foreign text in its own process, to contain hangs, crashes and excessive memory use."""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, cast

from hbrt.layout.structure import LayoutError

MAX_SECONDS = 5
MAX_BYTES: Final = 2 << 30
_CHUNK_BYTES: Final = 1 << 16

_T = TypeVar("_T")


def bounded(call: Callable[[], _T], what: str) -> _T:
    """Return the result of ``call`` in a fork of this process, or raise its exception.

    Args:
        call: The function to call; its result and exceptions must be picklable.
        what: Name of its input, for messages.

    Raises:
        LayoutError: it took more than MAX_SECONDS of a CPU or MAX_BYTES of further memory, or its process crashed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(call, writer)
    os.close(writer)
    try:
        raw = _read(reader, time.monotonic() + 6 * MAX_SECONDS)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not raw:
        raise LayoutError(
            f"{what} cannot be read: its parser crashed or exceeded {MAX_SECONDS} s or {MAX_BYTES >> 30} GiB."
        )
    result, error = pickle.loads(raw)  # noqa: S301 - of our own process
    if error is not None:
        raise error
    return cast("_T", result)


def _answer(call: Callable[[], object], writer: int) -> None:
    """In the fork: call the function, and write its outcome."""
    result, error = None, None
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
        limit = _mapped_bytes() + MAX_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a crash of libclang writes a page
        try:
            result = call()
        except Exception as raised:  # noqa: BLE001 - the caller raises it
            error = raised
        with open(writer, "wb") as file:
            file.write(pickle.dumps((result, error)))
    finally:
        os._exit(0)


def _mapped_bytes() -> int:
    """Memory already mapped by this process and its caller, such as a board's memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE


def _read(reader: int, deadline: float) -> bytes:
    """The fork's output; empty if it does not finish."""
    parts: list[bytes] = []
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reader, _CHUNK_BYTES)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return b""
