"""Selects log lines for the program that owns a board: ops' output and findings. Pure."""

from __future__ import annotations

import re

from hbrt.findings.record import KINDS, Severity

_STAMPED = re.compile(rb"\d\d:\d\d:\d\d (\S+) ")
_CORE = b"core"
EXIT_CODE = "exit-code"
"""Replaces a finding's kind: a program's exit code does not depend on findings in it."""
_FINDING = re.compile(
    "({}) ({}): ".format(
        "|".join(severity.upper() for severity in Severity),
        "|".join((EXIT_CODE, *(name for name, kind in KINDS.items() if not kind.is_reported_at_once))),
    ).encode()
)


class ProgramLines:
    """Selects these lines from a log that arrives in pieces.

    It drops lines of the daemon and of relays, and findings that the program reports itself. A line without a timestamp
    belongs to the previous one: a traceback, or output of C code.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._is_shown = True

    def take(self, raw: bytes, *, is_last: bool = False) -> bytes:
        """Return the program's lines completed by ``raw``; with ``is_last`` also an unfinished one."""
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
    """Return those lines of a complete piece of a log, as text."""
    return ProgramLines().take(raw, is_last=True).decode("utf-8", "replace")
