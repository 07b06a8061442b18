"""The log of the Python API: lines ``E where: sentence`` on standard error and, if given, in a file."""

from __future__ import annotations

import sys
from pathlib import Path

from hbrt.borders.printable import LINES, printable


class Log:
    """Errors and warnings always; hints if it is verbose."""

    def __init__(self, *, verbose: bool = False, file: str | Path | None = None) -> None:
        """Open the file, replacing its contents.

        Raises:
            OSError: it cannot be written.
        """
        self.is_verbose = verbose
        self._file = Path(file).open("w", encoding="utf-8") if file else None  # noqa: SIM115 - closed by close()

    def error(self, where: str, sentence: str) -> None:
        """A call failed."""
        self._write("E", where, sentence)

    def warning(self, where: str, sentence: str) -> None:
        """Warn that a request is ignored or carried out differently."""
        self._write("W", where, sentence)

    def info(self, where: str, sentence: str) -> None:
        """Log a step that was done."""
        if self.is_verbose:
            self._write("I", where, sentence)

    def text(self, text: str) -> None:
        """Print a table requested by the program on standard output."""
        text = printable(text, LINES)
        print(text, flush=True)
        if self._file is not None:
            print(text, file=self._file, flush=True)

    def close(self) -> None:
        """Close the file; nothing more is written to it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, level: str, where: str, sentence: str) -> None:
        line = printable(f"{level} {where}: {sentence}", LINES)
        print(line, file=sys.stderr, flush=True)
        if self._file is not None:
            print(line, file=self._file, flush=True)
