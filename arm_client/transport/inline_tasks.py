"""Tasks that this process runs itself, each when it is submitted: the board's core is in this process."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from arm_client.transport.forwarded_tasks import ForwardedTasks
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox.schedule import OF_ITS_OWNER
from hbrt.mailbox.table import SUBMISSION, Request, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.link import Link
    from hbrt.findings.record import Finding
    from hbrt.trace.ring import Ring


class InlineTasks(ForwardedTasks):
    """The tasks of a process that is their core, too; ``load`` it before the first task."""

    def __init__(self, link: Link) -> None:
        super().__init__(link, spins=False)
        self._core: Any = None
        self._errors: dict[int, BaseException] = {}  # by handle

    def load(
        self, image: str | None, report: Callable[[Finding], None], recording: tuple[str, int] | None = None
    ) -> None:
        """Become the core, with the ops of an image.

        Args:
            image: Its file; None for the packaged ops.
            report: Takes findings.
            recording: Directory and limit of a recording of the calls; None for none.

        Raises:
            BoardError: the image does not load.
        """
        # The DSP side, loaded by name as hbrt.board.launch does: this package does not import that one.
        inline = importlib.import_module("dsp_server.core.inline")
        link = self.link
        client = link.client_id, link.doorbell
        self._core = inline.InlineCore(
            link.ddr, link.core_doorbells[: link.core_count], client, image, report, recording
        )

    def own_ops(self) -> dict[int, str]:
        """As ``TaskSlots.own_ops``."""
        ops: dict[int, str] = self._core.ops()
        return ops

    def follow_trace(self, ring: Ring | None) -> None:
        """As ``TaskSlots.follow_trace``; the core notes into a ring beside this one."""
        super().follow_trace(ring)
        self._core.follow_trace(ring)

    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        """Run a task; it has ended when this returns.

        Raises:
            KeyboardInterrupt, SystemExit, BdbQuit: of the op.
        """
        task = Request(*SUBMISSION.unpack(request))._replace(core_mask=OF_ITS_OWNER)
        SUBMISSION.pack_into(self.map, self.records + slot * SLOT_RECORD_BYTES, *task)
        self.map[self.states + slot] = State.READY  # to the daemon it waits, so that no watchdog ends it
        if (error := self._core.run(slot)) is not None:
            self._errors[handle] = error
        return 0

    def cause(self, handle: int) -> BaseException | None:
        """As ``TaskSlots.cause``: what the op raised."""
        return self._errors.get(handle)

    def release(self, handle: int) -> int:
        """As ``TaskSlots.release``."""
        self._errors.pop(handle, None)
        return super().release(handle)

    def close(self) -> None:
        """As ``TaskSlots.close``, and have no core anymore."""
        if self._core is not None:
            self._core.close()
        super().close()
