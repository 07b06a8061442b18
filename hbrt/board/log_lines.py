"""Which lines of a board's log are for the program that the board belongs to: what ops say, and findings. Pure."""

from __future__ import annotations

import re

from hbrt.findings.record import KINDS, Severity

_STAMPED = re.compile(rb"\d\d:\d\d:\d\d (\S+) ")
_CORE = b"core"
EXIT_CODE = "exit-code"
"""In place of a finding's kind: a program's exit code does not say what was found in it."""
_FINDING = re.compile(
    "({}) ({}): ".format(
        "|".join(severity.upper() for severity in Severity),
        "|".join((EXIT_CODE, *(name for name, kind in KINDS.items() if not kind.is_reported_at_once))),
    ).encode()
)


class ProgramLines:
    """Picks these lines out of a log that comes in pieces.

    Left out are the lines of the daemon and of relays, and findings that the program says itself. A line without a
    stamp goes with the one before: a traceback, what C code prints.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._is_shown = True

    def take(self, raw: bytes, *, is_last: bool = False) -> bytes:
        """The lines for the program that ``raw`` completes; with ``is_last`` what has no end yet, too."""
        *lines, self._rest = (self._rest + raw).split(b"\n")
        if is_last and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        return b"".join(line + b"\n" for line in lines if self._shows(line))

    def _shows(self, line: bytes) -> bool:
        stamped = _STAMPED.match(line)
        if stamped is not None:
            self._is_shown = stamped[1].startswith(_CORE) or _FINDING.match(line, stamped.end()) is not None
        return self._is_shown


def lines_for_program(raw: bytes) -> str:
    """Those lines of a whole piece of a log, as text."""
    return ProgramLines().take(raw, is_last=True).decode("utf-8", "replace")
