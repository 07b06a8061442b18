"""The output of ops: lines of the board's log with core and command, and part of a failed task's text."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.hardware import cycles

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LOG_FD = 2
_MAX_TEXT = 1000  # characters of a failed task's text: its traceback must have room


class _Lines(io.RawIOBase):
    """Takes bytes, and writes each line of them to the board's log."""

    def __init__(self) -> None:
        self._pending = b""
        self._lock = threading.RLock()  # an op of priority 255 may print in the middle of another's print

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The log itself, for code that writes without this object."""
        return _LOG_FD

    def write(self, data: ReadableBuffer, /) -> int:
        """Log the lines that are complete now."""
        raw = bytes(data)
        with self._lock:
            *lines, self._pending = (self._pending + raw).split(b"\n")
        for line in lines:
            _log(line)
        return len(raw)

    def flush(self) -> None:
        """Log a line that has no end yet."""
        with self._lock:
            line, self._pending = self._pending, b""
        if line:
            _log(line)


def _log(line: bytes) -> None:
    text = line.decode("utf-8", "replace")
    if runtime.context.task:
        cycles.current().charge_print(len(line) + 1)
    runtime.context.said.append((runtime.context.task, text))
    runtime.write_log(text)


def install() -> None:
    """Have ``print``, and Python code that writes to standard error, write such lines from now on."""
    # TextIOWrapper asks of its buffer no more than these methods.
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(_Lines(), "utf-8", "replace", write_through=True)  # type: ignore[type-var]
        for _ in range(2)
    )


def with_output(text: str) -> str:
    """The text of a failed task, followed by the output and log lines of its op that the text does not have."""
    context = runtime.context
    if not context.said:
        return text
    for stream in (sys.stdout, sys.stderr):
        if isinstance(lines := getattr(stream, "buffer", None), _Lines):
            lines.flush()
    said = [line for task, line in context.said if task is context.task and line not in text]
    if not said:
        return text
    return f"{text}\nIt had said:\n" + "\n".join(said)[-_MAX_TEXT:]
