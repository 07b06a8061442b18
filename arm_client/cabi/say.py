"""This process's own messages, one line each: ``hbrt: severity: kind: message`` on standard error.

They go through the logger ``hbrt``; a program that has set up logging gets them in its own format.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

from hbrt.borders.printable import LINES, printable
from hbrt.findings.record import Finding, Severity
from hbrt.findings.text import line_of

_LEVELS: Final = {Severity.ADVICE: logging.WARNING, Severity.WARNING: logging.WARNING, Severity.ERROR: logging.ERROR}
_SEVERITY: Final = "severity"  # severity of a finding's record, since logging has no level called advice
_logger = logging.getLogger("hbrt")
_said: set[str] = set()


class _StandardError(logging.Handler):
    """Writes lines for a program that has not set up logging."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.root.handlers or _logger.handlers != [self] or sys.stderr is None:
            return
        severity = getattr(record, _SEVERITY, record.levelname.lower())
        try:
            sys.stderr.write(f"hbrt: {severity}: {printable(record.getMessage(), LINES)}\n")
        except (OSError, ValueError):  # stderr is closed
            self.handleError(record)


_logger.addHandler(_StandardError())


def warn(sentence: str, *values: object) -> None:
    """Log something the user should know that is not a finding; ``values`` as in logging."""
    _logger.warning(sentence, *values)


def warn_once(sentence: str, about: str = "") -> None:
    """Like ``warn``, but the same message, or one about the same subject, is logged only once."""
    if (about or sentence) not in _said:
        _said.add(about or sentence)
        warn("%s", sentence)


def tell(found: Finding) -> None:
    """Log a finding."""
    _logger.log(_LEVELS[found.severity], "%s", line_of(found), extra={_SEVERITY: str(found.severity)})
