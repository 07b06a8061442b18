"""Inline mode: this process acts as a core of its board and runs each task when it is submitted."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hbrt.attach.tasks import Carrier
from hbrt.attach.watcher import Watcher
from hbrt.mailbox.handle import SLOT_MASK
from hbrt.mailbox.schedule import OF_ITS_OWNER
from hbrt.mailbox.table import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from hbrt.attach.tasks import Tasks
    from hbrt.findings.record import Finding
    from hbrt.trace.ring import Ring


class Inline(Carrier, Watcher):
    """Runs the tasks; call ``load`` before the first one."""

    def __init__(self) -> None:
        self._core: Any = None
        self._errors: dict[int, BaseException] = {}  # by handle

    def carry(self, tasks: Tasks) -> None:
        """See ``Carrier.carry``."""
        super().carry(tasks)
        tasks.watchers.append(self)

    def load(self, image: str | None, report: Callable[[Finding], None], recording: str | None = None) -> None:
        """See ``Carrier.load``."""
        # The DSP side, loaded by name as in hbrt.board.launch: this package does not import that one.
        inline = importlib.import_module("dsp_server.core.inline")
        link = self.tasks.link
        client = link.client_id, link.doorbell
        self._core = inline.InlineCore(
            link.ddr, link.core_doorbells[: link.core_count], client, image, report, recording
        )

    def own_ops(self) -> dict[int, str]:
        """See ``Carrier.own_ops``."""
        ops: dict[int, str] = self._core.ops()
        return ops

    def follow_trace(self, ring: Ring | None) -> None:
        """Like ``Carrier.follow_trace``; the core has a ring of its own."""
        self._core.follow_trace(ring)

    def elsewhere(self, cmd: int) -> int:  # noqa: ARG002 - it runs all
        """See ``Carrier.elsewhere``."""
        return OF_ITS_OWNER

    def publish(self, handle: int, given: tuple[int, ...]) -> int:  # noqa: ARG002 - the record has all
        """Run a task to completion.

        Raises:
            KeyboardInterrupt, SystemExit, BdbQuit: raised by the op.
        """
        slot = self.make_ready(handle)
        if (error := self._core.run(slot)) is not None:
            self._errors[handle] = error
        return handle

    def make_ready(self, handle: int) -> int:
        """Show the daemon a task that waits for its owner, so that no watchdog ends it; returns its slot."""
        slot = handle & SLOT_MASK
        self.tasks.map[self.tasks.states + slot] = State.READY
        return slot

    def cause(self, handle: int) -> BaseException | None:
        """Like ``Carrier.cause``: what the op raised."""
        return self._errors.get(handle)

    def released(self, handle: int) -> None:
        """See ``Watcher.released``."""
        self._errors.pop(handle, None)

    def close(self) -> None:
        """Like ``Carrier.close``; drop the core."""
        if self._core is not None:
            self._core.close()
            self._core = None
        self.tasks.watchers.remove(self)
