"""Whether the board of this process is traced: a file in its folder, which the daemon writes and removes."""

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

FACTS = "-board.json"  # ends the name of the file beside the rings that says what they do not


EVENTS = 131072
"""Of a traced process, and tasks of a traced core, that are kept, the newest ones: 64 and 256 bytes each."""


class Switch(NamedTuple):
    """A trace that is on: where the ring files lie, how many events each holds, and when it began."""

    directory: Path
    events: int
    begun_ns: int = 0


def of_environment() -> Switch | None:
    """The trace that HBRT_TRACE asks for, None without it: all that a program has of a board on another machine."""
    named = settings.text("HBRT_TRACE")
    return Switch(Path(named).absolute(), EVENTS) if named else None


def read(board: BoardPaths) -> Switch | None:
    """The trace of a board; None while there is none."""
    try:
        text = board.trace_switch.read_text(encoding="utf-8")
    except OSError:
        return None
    import json  # a program that is not traced does not load it

    try:
        found = json.loads(text)
        return Switch(Path(found["directory"]), int(found["events"]), int(found["begun_ns"]))
    except (ValueError, KeyError, TypeError):
        return None


def turn_on(board: BoardPaths, switch: Switch) -> None:
    """Have the processes of a board trace. Raises OSError."""
    write_json(board.trace_switch, switch._asdict() | {"directory": str(switch.directory)})


def turn_off(board: BoardPaths) -> None:
    """Have no process of a board trace from now on."""
    board.trace_switch.unlink(missing_ok=True)


def write_json(path: Path, document: object) -> None:
    """Write a file that is there wholly or not at all. Raises OSError."""
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
    """This process's part in the trace of its board.

    Args:
        find: The trace as it is now.
        role: What this process is there, as for ``Ring``.
        program: The program that it runs.
    """

    def __init__(self, find: Callable[[], Switch | None], role: str, program: str) -> None:
        self._find, self._role, self._program = find, role, program
        self._switch: Switch | None = None
        self.ring: Ring | None = None

    def look(self) -> bool:
        """Follow the switch; whether ``ring`` is another one now."""
        switch = self._find()
        if switch == self._switch:
            return False
        self._switch, self.ring = switch, None
        if switch is not None:
            from hbrt.trace.ring import Ring

            with suppress(OSError):  # the trace has ended meanwhile, or the disk is full: the process keeps running
                self.ring = Ring(switch.directory, switch.events, self._role, self._program)
        return True

    def end(self) -> None:
        """Have ``look`` find no trace anymore: at the end, and in a fork's child, where the ring is the parent's."""
        self._find = lambda: None
