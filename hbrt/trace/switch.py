"""Whether this process's board is traced: a file in its folder, written and removed by the daemon."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hbrt import settings
from hbrt.board import private_files

if TYPE_CHECKING:
    from hbrt.board.paths import BoardPaths
    from hbrt.trace.ring import Ring

FACTS = "-board.json"  # suffix of the file next to the rings with further information


EVENTS = 131072
"""Number of newest events kept per traced process, and tasks per traced core: 64 and 256 bytes each."""


class Switch(NamedTuple):
    """An active trace: where its ring files are, how many events each holds, and when it started."""

    directory: Path
    events: int
    begun_ns: int = 0


def of_environment() -> Switch | None:
    """Return the trace requested by HBRT_TRACE, or None: the only one available for a board on another machine."""
    named = settings.text("HBRT_TRACE")
    return Switch(Path(named).absolute(), EVENTS) if named else None


def read(board: BoardPaths) -> Switch | None:
    """Return a board's trace; None if it is not traced."""
    try:
        text = board.trace_switch.read_text(encoding="utf-8")
    except OSError:
        return None
    import json  # not loaded by untraced programs

    try:
        found = json.loads(text)
        return Switch(Path(found["directory"]), int(found["events"]), int(found["begun_ns"]))
    except (ValueError, KeyError, TypeError):
        return None


def turn_on(board: BoardPaths, switch: Switch) -> None:
    """Start tracing the processes of a board. Raises OSError."""
    write_json(board.trace_switch, switch._asdict() | {"directory": str(switch.directory)})


def turn_off(board: BoardPaths) -> None:
    """Stop tracing the processes of a board."""
    board.trace_switch.unlink(missing_ok=True)


def write_json(path: Path, document: object) -> None:
    """Write a file atomically. Raises OSError."""
    import json

    new = path.with_name(f"{path.name}.new")
    fd = private_files.open_file(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(document, file)
        new.replace(path)
    except BaseException:  # a full disk
        with suppress(OSError):
            new.unlink()
        raise


class Recorder:
    """This process's part in its board's trace.

    Args:
        find: Returns the current trace.
        role: This process's role, as for ``Ring``.
        program: Its program.
    """

    def __init__(self, find: Callable[[], Switch | None], role: str, program: str) -> None:
        self._find, self._role, self._program = find, role, program
        self._switch: Switch | None = None
        self.ring: Ring | None = None

    def look(self) -> bool:
        """Follow the switch; returns whether ``ring`` has changed."""
        switch = self._find()
        if switch == self._switch:
            return False
        self._switch, self.ring = switch, None
        if switch is not None:
            from hbrt.trace.ring import Ring

            with suppress(OSError):  # the trace has ended meanwhile, or the disk is full: continue without it
                self.ring = Ring(switch.directory, switch.events, self._role, self._program)
        return True

    def end(self) -> None:
        """Make ``look`` find no more traces: at the end, and in a forked child, where the ring is the parent's."""
        self._find = lambda: None
