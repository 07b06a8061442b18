"""The lines that ops write to a board's log after a given moment, without the daemon's own lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hbrt.board.log_file import bytes_since
from hbrt.board.log_lines import lines_for_program

if TYPE_CHECKING:
    from arm_client.session.session import Session

_MAX_BYTES = 1 << 20


def log_reader(session: Session) -> Callable[[], str]:
    """Return a reader of lines from ops and findings from now on; none for a lost or remote board."""
    log: Path | None = getattr(session.link.paths, "log", None)  # a board on another machine has no log here
    try:
        start = log.stat().st_size if log is not None else 0
    except OSError:
        log = None

    def read() -> str:
        try:
            return "" if log is None else lines_for_program(bytes_since(log, start, _MAX_BYTES).raw)
        except OSError:
            return ""

    return read
