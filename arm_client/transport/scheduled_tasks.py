"""Tasks of a process that is all cores of its board, and takes turns with them as a schedule says (HBRT_SCHEDULE)."""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from arm_client.transport.inline_tasks import InlineTasks
from hbrt import settings
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.exploration.schedule import BadScheduleError, parse
from hbrt.exploration.seeds import LOG
from hbrt.mailbox.schedule import OF_ITS_OWNER
from hbrt.mailbox.table import SUBMISSION, Request, State
from hbrt.settings import BadSettingError
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.findings.record import Finding


_OTHER_THREAD = (
    Status.HB_DSP_INVALID_ARGUMENT,
    (
        "Under HBRT_SCHEDULE the thread that attached uses the board, and those that Python's threading starts from it "
        "on. Call from one of these, or run the program without HBRT_SCHEDULE."
    ),
)


class ScheduledTasks(InlineTasks):
    """The tasks; a wait lets the cores continue, and so does each line of the program."""

    _log: IO[str] | None = None

    def load(
        self, image: str | None, report: Callable[[Finding], None], recording: tuple[str, int] | None = None
    ) -> None:
        """Become the cores; as ``InlineTasks.load``.

        Raises:
            BoardError: the image does not load. BadSettingError: HBRT_SCHEDULE is no schedule.
        """
        try:
            policy = parse(settings.text("HBRT_SCHEDULE"))
        except BadScheduleError as error:
            raise BadSettingError(f"HBRT_SCHEDULE: {error}") from None
        if file := os.environ.get(LOG):
            self._log = Path(file).open("a", encoding="utf-8")  # noqa: SIM115 - until the tasks are closed
        cores = importlib.import_module("dsp_server.scheduled.cores")
        link = self.link
        client = link.client_id, link.doorbell
        self._core = cores.ScheduledCores(
            link.ddr, link.core_doorbells[: link.core_count], client, image, report, recording, policy, self._log
        )

    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        if not self._core.is_program():
            self._forget(slot, handle)
            self.map[self.states + slot] = State.EMPTY
            self.free.append(slot)
            return self.refuse(*_OTHER_THREAD)
        task = Request(*SUBMISSION.unpack(request))
        packed = task._replace(core_mask=OF_ITS_OWNER)
        SUBMISSION.pack_into(self.map, self.records + slot * SLOT_RECORD_BYTES, *packed)
        self.map[self.states + slot] = State.READY  # to the daemon it waits for its owner
        self._core.submit(slot, task.core_mask)
        return 0

    def wait(self, handle: int, timeout_ms: float) -> int:
        """As ``TaskSlots.wait``; a microsecond of a time limit passes with each line."""
        if not self.has_ended(handle):
            if not self._core.is_program():
                return self.refuse(*_OTHER_THREAD)
            self._core.wait(lambda: self.has_ended(handle), round(timeout_ms * 1000) if timeout_ms > 0 else None)
        return super().wait(handle, timeout_ms) if self.has_ended(handle) else self.why_not_ended(timeout_ms)

    def close(self) -> None:
        """As ``TaskSlots.close``, when all that was submitted has run."""
        with contextlib.ExitStack() as undo:
            if self._log is not None:
                undo.callback(self._log.close)
            super().close()
