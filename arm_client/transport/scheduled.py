"""Scheduled mode: the process runs all cores of its board and takes turns with them (HBRT_SCHEDULE)."""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from arm_client.transport.inline import Inline
from hbrt import settings
from hbrt.exploration.schedule import BadScheduleError, parse
from hbrt.exploration.seeds import LOG
from hbrt.settings import BadSettingError
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.findings.record import Finding


_OTHER_THREAD = (
    Status.HB_DSP_INVALID_ARGUMENT,
    (
        "Under HBRT_SCHEDULE only the thread that attached, and threads started from it by Python's "
        "threading, can use the board. Call from one of them, or run the program without "
        "HBRT_SCHEDULE."
    ),
)


class Scheduled(Inline):
    """Runs the tasks; the cores continue during a wait and at each line of the program."""

    _log: IO[str] | None = None

    def load(self, image: str | None, report: Callable[[Finding], None], recording: str | None = None) -> None:
        """Become the cores; like ``Inline.load``.

        Raises:
            BoardError: the image fails to load. BadSettingError: HBRT_SCHEDULE is not a schedule.
        """
        try:
            policy = parse(settings.text("HBRT_SCHEDULE"))
        except BadScheduleError as error:
            raise BadSettingError(f"HBRT_SCHEDULE: {error}") from None
        if file := os.environ.get(LOG):
            self._log = Path(file).open("a", encoding="utf-8")  # noqa: SIM115 - until the tasks are closed
        cores = importlib.import_module("dsp_server.scheduled.cores")
        link = self.tasks.link
        client = link.client_id, link.doorbell
        self._core = cores.ScheduledCores(
            link.ddr, link.core_doorbells[: link.core_count], client, image, report, recording, policy, self._log
        )

    def publish(self, handle: int, given: tuple[int, ...]) -> int:
        """Like ``Carrier.publish``; one of the process's cores runs the task when its turn comes."""
        if not self._core.is_program():
            return self.tasks.refusals.refuse(*_OTHER_THREAD)
        self._core.submit(self.make_ready(handle), given[2])
        return handle

    def waiting(self, handle: int, timeout_ms: float) -> int:
        """Let the cores run until a task ends; each line uses up 1 µs of a time limit."""
        tasks = self.tasks
        if tasks.has_ended(handle):
            return 0
        if not self._core.is_program():
            return tasks.refusals.refuse(*_OTHER_THREAD)
        self._core.wait(lambda: tasks.has_ended(handle), round(timeout_ms * 1000) if timeout_ms > 0 else None)
        return 0 if tasks.has_ended(handle) else tasks.refusals.not_ended(timeout_ms)

    def close(self) -> None:
        """Like ``Carrier.close``, once everything submitted has run."""
        with contextlib.ExitStack() as undo:
            if self._log is not None:
                undo.callback(self._log.close)
            super().close()
