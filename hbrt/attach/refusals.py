"""Why a call on a task fails: the rules, and each thread's last message."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hbrt.board.forked import mark, notice
from hbrt.ddr.layout import SLOT_RECORD_BYTES
from hbrt.mailbox import submission
from hbrt.mailbox.handle import DeadHandle, kind_of
from hbrt.mailbox.submission import Refusal
from hbrt.mailbox.table import ANSWER_OFFSET, RESULT, Request
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.attach.link import Link


class Refusals:
    """The refusals of one attachment."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._texts = threading.local()

    def refuse(self, status: int, sentence: str) -> int:
        """Store the message for ``why`` in this thread, and return the status."""
        self._texts.text = sentence
        return status

    def why(self) -> str:
        """Return the message for this thread's last refusal."""
        return getattr(self._texts, "text", "")

    def of_task(self, cmd: int, priority: int, core_mask: int, custom_id: int, *blocks: int) -> Refusal | None:
        """Return why a task is refused, None if it is valid; arguments as for ``Tasks.submit``."""
        link = self._link
        if 0 <= core_mask < 1 << link.core_count:
            return self.of_any_task(cmd, priority, core_mask, custom_id, *blocks)
        request = Request(0, custom_id, cmd, priority, core_mask, link.client_id, link.client_id, *blocks)
        return submission.number_refusal(link.core_count, request)

    def of_any_task(self, *given: int) -> Refusal | None:
        """Like ``of_task``, for a task that may be for an accelerator."""
        link = self._link
        if not mark[0]:
            notice()
        if link.fault:
            return link.fault, link.why_faulty()
        cmd, priority, core_mask, custom_id, *blocks = given
        request = Request(0, custom_id, cmd, priority, core_mask, link.client_id, link.client_id, *blocks)
        return submission.refusal(len(link.core_doorbells), request, link.block_refusal)

    def not_ended(self, timeout_ms: float) -> int:
        """Return the status of a wait that timed out or whose board is gone; ``why`` has the message."""
        link = self._link
        if link.fault:
            return self.refuse(link.fault, link.why_faulty())
        why = link.mailbox.claim_lock.why_held()
        text = f"The task did not finish within {timeout_ms:g} ms; it keeps running. {why}".rstrip()
        return self.refuse(Status.HB_DSP_TIMEOUT, text)

    def failed(self, slot: int) -> int:
        """Return the status of a task that failed, which is still in its slot; ``why`` has its text."""
        mailbox, at = self._link.mailbox, self._link.ddr.layout.records + slot * SLOT_RECORD_BYTES
        result: int = RESULT.unpack_from(mailbox.map, at + ANSWER_OFFSET)[1]
        return self.refuse(result, mailbox.text(slot))

    def no_task(self, handle: int, serials: range) -> int:
        """Refuse a handle of no live task, saying which kind it is; ``serials`` are those of this attachment."""
        link = self._link
        kind = kind_of(handle, link.client_id, serials)
        if kind is DeadHandle.NONE:
            return self.refuse(Status.HB_DSP_INVALID_TASK_HANDLE, f"{handle} is not a task handle; hbDSPRpc fills one.")
        if link.fault in {Status.HB_DSP_FORKED, Status.HB_DSP_NOT_RUNNING}:
            return self.refuse(link.fault, link.why_faulty())
        if kind is DeadHandle.RELEASED:
            return self.refuse(Status.HB_DSP_TASK_RELEASED, f"The task {handle:#x} was already released.")
        return self.refuse(
            Status.HB_DSP_FOREIGN_TASK_HANDLE,
            f"The task {handle:#x} does not belong to this process's attachment (client {link.client_id}). If it is of "
            "an earlier one, whose board or relay was lost, submit it again.",
        )
