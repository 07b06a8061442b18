"""The daemon's part of a trace: the switch, the copy of the task history, and findings and log lines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dsp_server.process.event_loop import Loop, Timer
from hbrt.board import private_files
from hbrt.board.paths import BoardPaths
from hbrt.ddr.layout import HISTORY_RECORDS
from hbrt.errors import BoardError, RequestRefusedError
from hbrt.profiles.profile import active
from hbrt.status import Status
from hbrt.trace import switch
from hbrt.trace.kinds import EventKind
from hbrt.trace.switch import EVENTS, Recorder, Switch
from hbrt.trace.tasks import TaskRings

if TYPE_CHECKING:
    from hbrt.mailbox.table import Table

COPY_SECONDS = 0.01
"""Time between two copies of the history: a core takes at least this long to end 4096 tasks."""
FACTS_SECONDS = 0.5


class BoardTrace:
    """Turns a board's trace on and off.

    Args:
        paths: The board.
        ddr: The board's memory.
        loop: The daemon's event loop.
        tell: Makes all processes of the board check the switch.
        ops: Returns the current names of the commands.
        programs: Returns the names of programs by process.
        accelerators: Number of accelerator cores on the board.
    """

    def __init__(
        self,
        paths: BoardPaths,
        ddr: Table,
        loop: Loop,
        tell: Callable[[], None],
        ops: Callable[[], dict[int, str]],
        programs: dict[int, str],
        accelerators: int,
    ) -> None:
        self._accelerators = accelerators
        self._paths, self._ddr, self._loop, self._tell = paths, ddr, loop, tell
        self._now_ops, self._programs = ops, programs
        self._ops: dict[int, str] = {}  # from all images since the trace began
        self._recorder = Recorder(lambda: switch.read(paths), "daemon", "")
        self._switch: Switch | None = None
        self._rings: TaskRings | None = None  # set while the trace is on
        self._has_history = False  # the files hold the board's own history: nobody has traced yet
        self._timer: Timer | None = None
        self._known, self._facts_due = "", 0.0  # the facts in the file, and when to check them again

    def open(self) -> None:
        """Begin the trace that HBRT_TRACE requests, if any.

        Raises:
            BoardError: the files cannot be created.
        """
        if (wanted := switch.of_environment()) is not None:
            try:
                self._begin(wanted)
            except OSError as error:
                raise BoardError(_why_not(wanted, error)) from None

    def handle(self, do: str, events: int) -> dict[str, Any]:
        """Carry out a request.

        Args:
            do: "on", "off", or "flush": bring the files up to date, and if there is no trace, put the history in them.
            events: Number of events and tasks that each ring holds; 0 for ``EVENTS``.

        Returns:
            ``was_on``, and the ``directory`` of the ring files, empty if there is none.

        Raises:
            RequestRefusedError: the files cannot be created.
        """
        was_on = self._rings is not None
        wanted = Switch(self._paths.trace, events or EVENTS, time.monotonic_ns())
        try:
            if do == "on" and not was_on:
                self._begin(wanted)
            elif do == "off" and was_on:
                self._end()
            elif do == "flush":
                self._flush()
        except OSError as error:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, _why_not(wanted, error)) from None
        if do not in {"on", "off", "flush"}:
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, f"Unknown action {do!r}: use on, off or flush.")
        return {"was_on": was_on, "directory": str(self._switch.directory) if self._switch else ""}

    def close(self) -> None:
        """Keep the latest events; the files in the board's own directory are removed with it."""
        if self._rings is not None:
            self._flush()
            switch.turn_off(self._paths)

    def found(self, sentence: str) -> None:
        """Record a finding as an instant event."""
        self._note(EventKind.FOUND, sentence)

    def said(self, sentence: str) -> None:
        """Record a log line as an instant event."""
        self._note(EventKind.SAID, sentence)

    def _note(self, kind: EventKind, sentence: str) -> None:
        if (ring := self._recorder.ring) is not None:
            now_ns = time.monotonic_ns()
            ring.note(kind, now_ns, now_ns, text=ring.text(sentence))

    def _begin(self, wanted: Switch) -> None:
        try:
            self._rings, self._has_history = self._new_files(wanted), False
            switch.turn_on(self._paths, wanted)
        except OSError:
            self._rings = self._switch = None  # what the board keeps anyway can still be saved once there is space
            self._has_history = False
            raise
        self._recorder.look()
        self._tell()
        self._copy()

    def _end(self) -> None:
        self._flush()
        switch.turn_off(self._paths)
        self._rings = None
        self._recorder.look()
        self._tell()

    def _flush(self) -> None:
        """Bring the files up to date. If nothing was traced yet, they get what the board keeps anyway."""
        if self._rings is not None:
            self._rings.copy()
        elif self._switch is None or self._has_history:
            self._has_history = True
            self._new_files(Switch(self._paths.trace, HISTORY_RECORDS), has_past=True).copy()
        else:
            return
        self._write_facts()

    def _new_files(self, wanted: Switch, *, has_past: bool = False) -> TaskRings:
        """Create the files for tasks; the board's own directory keeps one trace."""
        private_files.make_directory(wanted.directory)
        for path in wanted.directory.glob("*") if wanted.directory == self._paths.trace else ():
            path.unlink()
        self._switch, self._ops, self._known, self._facts_due = wanted, {}, "", 0.0
        return TaskRings(self._ddr, wanted.directory, wanted.events, has_past=has_past, accelerators=self._accelerators)

    def _copy(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._rings is not None:
            is_much = self._rings.copy() > HISTORY_RECORDS // 4
            if time.monotonic() >= self._facts_due:
                self._write_facts()
            self._timer = self._loop.later(0 if is_much else COPY_SECONDS, self._copy)

    def _write_facts(self) -> None:
        """Write what a reader of the rings needs in addition to them."""
        assert self._switch is not None  # noqa: S101 - callers have set it
        self._facts_due = time.monotonic() + FACTS_SECONDS
        self._ops |= self._now_ops()
        facts: dict[str, Any] = {"board": self._paths.name, "ops": self._ops, "programs": self._programs}
        first, kind = self._ddr.layout.core_count, active().accelerator
        facts["kinds"] = {str(core): kind.upper() for core in range(first, first + self._accelerators)}
        if "dsp" in active().cores:
            facts["clock_hz"] = active().clock_hz
        if (known := json.dumps(facts)) == self._known:
            return
        self._known = known
        facts["unix_offset_ns"] = time.time_ns() - time.monotonic_ns()
        with suppress(OSError):  # a full disk: names will be missing
            switch.write_json(self._switch.directory / f"{os.getpid()}{switch.FACTS}", facts)


def _why_not(wanted: Switch, error: OSError) -> str:
    return f"The trace cannot be kept in {wanted.directory}: {error.strerror}. Nothing is traced."
