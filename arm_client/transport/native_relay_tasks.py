"""Tasks that a relay queues, with slots, waits and releases in C: as ``RelayTasks``."""

from __future__ import annotations

from typing import Any

from arm_client.transport.relay_tasks import REQUEST_BYTES, TRIES, RelayTasks
from hbrt.attach.native_tasks import NativeTasks
from hbrt.ddr.layout import SLOT_COUNT, SLOT_RECORD_BYTES


class NativeRelayTasks(RelayTasks, NativeTasks):
    """As ``RelayTasks``."""

    _SUBMIT = "prepare"

    def submit(self, *given: int) -> int:
        """As ``TaskSlots.submit``."""
        before = self._last_serial()
        try:
            return self._submit(*given)
        except BaseException:
            self._release_newest(*given, since=before)
            raise

    def _submit(self, *given: int) -> int:
        for _ in range(TRIES):
            if self._channel is None and (refused := self._connect()):
                return refused
            with self.table:
                channel = self._channel
                if channel is None:  # it was lost while this thread came here
                    continue
                handle = super().submit(*given)
                if handle < 0:
                    return handle
                slot = handle & SLOT_COUNT - 1
                record = self.records + slot * SLOT_RECORD_BYTES
                try:
                    self._send(channel, handle, self.map[record : record + REQUEST_BYTES])
                except OSError as error:
                    self._forget(slot, handle)
                    why = error
                else:
                    return handle
            self.drop(slot)  # no message of it is under way, but its state is SENT
            if not self._is_gone(channel, why):
                break
        return self._refuse_unreached()

    def _hand_over(self, client: Any, handle: int) -> int:  # noqa: ARG002 - the relay queues it
        return handle

    def lend(self) -> int:
        """As ``TaskSlots.lend``: no task passes by the relay."""
        return 0
