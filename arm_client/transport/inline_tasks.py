"""Tasks that this process runs itself, each when it is submitted: the board's core is in this process."""

from __future__ import annotations

import importlib
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from hbrt.attach.task_slots import TaskSlots
from hbrt.ddr.layout import MAX_CORES, SLOT_RECORD_BYTES
from hbrt.mailbox.handle import SLOT_BITS
from hbrt.mailbox.table import SUBMISSION, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link
    from hbrt.findings.record import Finding

NO_CORE = 1 << MAX_CORES
"""Core mask of a task that no core of the board's may claim."""


class InlineTasks(TaskSlots):
    """The tasks of a process that is their core, too; ``load`` it before the first task."""

    def __init__(self, link: Link) -> None:
        super().__init__(link, spins=False)
        self._core: Any = None
        self._errors: dict[int, BaseException] = {}  # by handle

    def load(self, image: str | None, report: Callable[[Finding], None]) -> None:
        """Become the core, with the ops of an image.

        Args:
            image: Its file; None for the packaged ops.
            report: Takes findings.

        Raises:
            BoardError: the image does not load.
        """
        # The DSP side, loaded by name as hbrt.board.launch does: this package does not import that one.
        inline = importlib.import_module("dsp_server.core.inline")
        link = self.link
        self._core = inline.InlineCore(link.ddr, link.core_doorbells, (link.client_id, link.doorbell), image, report)

    def submit(
        self,
        cmd: int,
        priority: int,
        core_mask: int,
        custom_id: int,
        input_phy: int,
        input_bytes: int,
        output_phy: int,
        output_bytes: int,
        /,
    ) -> int:
        """Run a task; as ``TaskSlots.submit``. It has ended when this returns.

        Raises:
            KeyboardInterrupt, SystemExit, BdbQuit: of the op.
        """
        blocks = (input_phy, input_bytes, output_phy, output_bytes)
        if (found := self.refusal(cmd, priority, core_mask, custom_id, *blocks)) is not None:
            return self.refuse(*found)
        slot = self.reserve()
        if slot < 0:
            return slot
        self._serial += 1
        handle = self._handle_base + (self._serial << SLOT_BITS) + slot
        us = self.client_id
        record = self.records + slot * SLOT_RECORD_BYTES
        self._sequence = max(monotonic_ns(), self._sequence + 1)
        SUBMISSION.pack_into(self.map, record, self._sequence, custom_id, cmd, priority, NO_CORE, us, us, *blocks)
        self.handles[slot] = handle
        self.map[self.states + slot] = State.READY  # to the daemon it waits, so that no watchdog ends it
        try:
            error = self._core.run(slot)
        except BaseException:
            self.release(handle)
            raise
        if error is not None:
            self._errors[handle] = error
        return handle

    def cause(self, handle: int) -> BaseException | None:
        """As ``TaskSlots.cause``: what the op raised."""
        return self._errors.get(handle)

    def release(self, handle: int) -> int:
        """As ``TaskSlots.release``."""
        self._errors.pop(handle, None)
        return super().release(handle)

    def close(self) -> None:
        """As ``TaskSlots.close``, and have no core any more."""
        if self._core is not None:
            self._core.close()
        super().close()
