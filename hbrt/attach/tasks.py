"""The tasks of a process that queues them itself: a frequent step is one call into C, a rare one ``TaskSlots``' own."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import addressof
from typing import TYPE_CHECKING, Any

from hbrt.attach.native_waiting import ASK, ASKED, INTERRUPTED, NO_SLOT, NOTHING, NativeWaiters
from hbrt.attach.task_slots import TaskSlots
from hbrt.board.forked import mark, notice
from hbrt.ddr.layout import SLOT_COUNT, SLOT_RECORD_BYTES
from hbrt.mailbox.handle import serial_of
from hbrt.mailbox.native import native
from hbrt.mailbox.schedule import OF_ANOTHER_BOARD
from hbrt.mailbox.spin import Spinner
from hbrt.mailbox.submission import unserved
from hbrt.mailbox.table import (
    CORE_MASK,
    CORE_MASK_AT,
    FIRST_END,
)

if TYPE_CHECKING:
    from hbrt.attach.link import Link
    from hbrt.trace.ring import Ring, RingFile
    from hbrt.types import hbDSPRpcCtrlParam, hbSysMem

_REQUEST = struct.Struct("=4q4Q")  # hbrt_request
_DONE = int(FIRST_END)
_ELSEWHERE = 2  # of hbrt_prepare: another board runs the task
_GO_ON = frozenset({INTERRUPTED, ASKED, NOTHING})  # a wait that is not over


class _FreeSlots(list[int]):
    """The unused slots: those in this list, safe from handlers of signals, and those in C."""

    def __init__(self, client: Any, lib: Any) -> None:
        super().__init__()
        self._client, self._lib = client, lib

    def __len__(self) -> int:
        count: int = self._lib.hbrt_slot_count(self._client)
        return super().__len__() + count

    def pop(self) -> int:  # type: ignore[override]  # takes the last one
        try:
            return super().pop()
        except IndexError:
            slot: int = self._lib.hbrt_slot_take(self._client)
            if slot < 0:
                raise
            return slot


class DirectTasks(TaskSlots):
    """The tasks of this process on one board, queued by this process itself."""

    reaches_accelerators = True
    waiters: NativeWaiters
    _SUBMIT = "submit"

    def __init__(self, link: Link, *, spins: bool = True) -> None:
        module = native()
        self._ffi, self._lib = module.ffi, module.lib
        self._place = ctypes.c_char.from_buffer(link.ddr.map)  # keeps the mapping while C may use it
        super().__init__(link, spins=spins)

    def _prepare(self, *, spins: bool) -> None:
        """As ``TaskSlots._prepare``: make the attachment in C."""
        ffi, lib, link = self._ffi, self._lib, self.link
        layout = link.ddr.layout
        client = lib.hbrt_client_new(
            ffi.cast("void *", ctypes.addressof(self._place)),
            layout.file_bytes,
            layout._replace(core_count=len(link.core_doorbells)).pack_header(),
            link.client_id,
            link.doorbell,
            link.core_doorbells,
            link.urgent_bells or ffi.NULL,
            self._first_serial,
        )
        if client == ffi.NULL:
            raise MemoryError("The mailbox in C has no memory for this attachment.")
        self._client = ffi.gc(client, lib.hbrt_client_free)
        self._c_release = lib.hbrt_release
        self._note: Callable[[int], None] | None = None
        self._traced: list[RingFile] = []
        self._is_traced = False
        held = ffi.buffer(lib.hbrt_client_handles(client), SLOT_COUNT * 8)
        self.handles = memoryview(held).cast("B").cast("Q")  # a thread of Python's sees what C writes
        self.free = _FreeSlots(self._client, lib)
        lib.hbrt_slots_give(client, link.first_slots[::-1], len(link.first_slots))
        self.waiters = NativeWaiters(link, self.handles, polls=spins, client=self._client)
        self._choose_calls()

    def follow_trace(self, ring: Ring | None) -> bool:
        """As ``TaskSlots.follow_trace``: C notes, into a file of its own."""
        records, count = self._ffi.NULL, 0
        if ring is not None:
            try:
                file = ring.beside("calls")
            except OSError:
                return False
            self._traced.append(file)  # C may be in the middle of a call when the trace ends
            records, count = self._ffi.from_buffer(file.map) + file.start, file.records
        if not self._lib.hbrt_client_note(self._client, records, count):
            return False
        self._is_traced = ring is not None
        self._choose_calls()
        return True

    def _choose_calls(self) -> None:
        """Choose the functions of C that submit and wait, as a trace and a checker need them."""
        prefix = "hbrt_noted_" if self._is_traced else "hbrt_"
        self.waiters.c_wait = getattr(self._lib, f"{prefix}wait")
        self._c_end, self._c_finish = getattr(self._lib, f"{prefix}end"), getattr(self._lib, f"{prefix}finish")
        self._c_submit: Callable[..., int] = getattr(self._lib, prefix + self._SUBMIT)
        note = self._note
        self._c_prepare = getattr(self._lib, f"{prefix}prepare")
        is_plain = note is None and self._SUBMIT == "submit"
        self._c_rpc = getattr(self._lib, f"{prefix}rpc") if is_plain else None
        if note is None:
            return
        prepare, publish = self._c_prepare, self._hand_over

        def noted(client: Any, request: bytes, is_checked: int) -> int:
            handle: int = prepare(client, request, is_checked)
            if handle <= 0:
                return handle
            try:
                note(handle & SLOT_COUNT - 1)
                published = publish(client, handle)
            except BaseException:
                self.release(handle)
                raise
            if published == ASK:
                self.release(handle)  # this attachment is leaving the board
            return published

        self._c_submit = noted

    def lend(self) -> int:
        """As ``TaskSlots.lend``; the borrower polls by its own habit."""
        self._lib.hbrt_client_polls(self._client, Spinner().budget_ns)
        self.waiters.see_lease()
        return int(self._ffi.cast("uintptr_t", self._client))

    def note_each(self, note: Callable[[int], None] | None) -> None:
        """As ``TaskSlots.note_each``."""
        self._note = note
        self._choose_calls()

    def _publish(self, slot: int, handle: int, request: bytes) -> int:
        """C publishes."""
        raise NotImplementedError

    def _hand_over(self, client: Any, handle: int) -> int:
        """Queue a task that C has prepared."""
        published: int = self._lib.hbrt_publish(client, handle)
        return published

    def _last_serial(self) -> int:
        serial: int = self._lib.hbrt_client_serial(self._client)
        return serial

    def submit(self, *given: int) -> int:
        """As ``TaskSlots.submit``."""
        if not 0 <= given[2] < self._first_beyond:
            return self.refuse(*self.refusal(*given) or unserved(self.link.core_count))
        return self._queue_task(*given)

    def _queue_task(self, *given: int) -> int:
        if (self.link.fault or not mark[0]) and (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        try:
            request = _REQUEST.pack(*given)
        except struct.error:
            return self.refuse_unpacked(*given)
        try:
            handle: int = self._c_submit(self._client, request, 0)
            return handle if handle > 0 else self._submit_rarely(handle, request, *given)
        except BaseException:
            self._release_newest(*given)
            raise

    def hold(self, *given: int) -> int:
        """As ``TaskSlots.hold``."""
        cmd, priority, _, *rest = given
        try:
            request = _REQUEST.pack(cmd, priority, 0, *rest)
        except struct.error:
            return self.refuse_unpacked(*given)
        try:
            while (handle := self._c_prepare(self._client, request, _ELSEWHERE)) == NO_SLOT:
                slot = self.lease_more()
                if slot < 0:
                    return slot
                self._lib.hbrt_slots_give(self._client, (slot,), 1)
        except BaseException:
            self._release_newest(*given)
            raise
        if handle <= 0:
            return self.refuse_unpacked(*given)
        record = self.records + (handle & SLOT_COUNT - 1) * SLOT_RECORD_BYTES
        CORE_MASK.pack_into(self.map, record + CORE_MASK_AT, OF_ANOTHER_BOARD)
        return int(handle)

    def rpc(self, ctrl: hbDSPRpcCtrlParam, input: hbSysMem, output: hbSysMem) -> int:
        """As ``TaskSlots.rpc``."""
        if self._c_rpc is None or self.link.fault or not mark[0]:
            return 0
        at = addressof(ctrl), addressof(input), addressof(output)
        try:  # with one call in it: an interrupt before that finds an older task
            handle: int = self._c_rpc(self._client, *at)
        except BaseException:
            self._release_newest(ctrl.rpcCmd, 0, 0, 0, input.phyAddr, 0, output.phyAddr, 0)
            raise
        return handle if handle > 0 else 0  # noqa: FURB136 - an interrupt may come after a call

    def _release_newest(self, *given: int, since: int = 0) -> None:
        """Undo a submission whose caller never gets its handle: a signal's handler has raised.

        Args:
            given: As of ``submit``.
            since: A serial from before it: an older task stays.
        """
        cmd, _, _, _, input_phy, _, output_phy, _ = given
        handle: int = self._lib.hbrt_newest(self._client, cmd, input_phy, output_phy)
        if handle > 0 and serial_of(handle) > since:
            self.release(handle)

    def _submit_rarely(self, answer: int, request: bytes, *given: int) -> int:
        """Go on with a task that C did not queue, or that no core serves."""
        if answer == ASK and (found := self._refusal(*given)) is not None:
            return self.refuse(*found)
        while answer in {ASK, NO_SLOT}:
            if answer == NO_SLOT:
                slot = self.lease_more()
                if slot < 0:
                    return slot
                self._lib.hbrt_slots_give(self._client, (slot,), 1)
            answer = self._c_submit(self._client, request, 1)
            if answer == ASK:
                return self.refuse_unpacked(*given)
        return answer if answer > 0 else self.refuse(*unserved(self.link.core_count))

    def wait(self, handle: int, timeout_ms: float) -> int:
        """As ``TaskSlots.wait``."""
        if not mark[0]:
            notice()
        waiters = self.waiters
        try:
            state: int = self._c_end(self._client, handle, timeout_ms <= 0 and waiters.only_sleeps)
            if state in _GO_ON:
                state = waiters.state_at_end(handle & SLOT_COUNT - 1, handle, timeout_ms)
            elif state == _DONE and waiters.choice.measures:
                waiters.measure(handle & SLOT_COUNT - 1)
        except OverflowError:
            return self.refuse_handle(handle)
        if state == _DONE:
            return 0
        if state > _DONE:
            return self._why_failed(handle & SLOT_COUNT - 1)
        return self.refuse_handle(handle) if state == ASK else self.why_not_ended(timeout_ms)

    def finish(self, handle: int) -> int:
        """As ``TaskSlots.finish``."""
        waiters = self.waiters
        if mark[0] and waiters.only_sleeps:
            state = self._c_finish(self._client, handle, 0, waiters.polled)
            if state == _DONE:
                return 0
            if state > _DONE:
                return self._why_failed(handle & SLOT_COUNT - 1)
        return self.wait(handle, 0) or self.release(handle)

    def release(self, handle: int) -> int:
        """As ``TaskSlots.release``."""
        if mark[0]:
            try:
                if self._c_release(self._client, handle) > 0:
                    return 0
            except OverflowError:
                return self.refuse_handle(handle)
        return super().release(handle)

    def _forget(self, slot: int, handle: int) -> bool:  # noqa: ARG002 - the handle has the slot
        try:
            found: int = self._lib.hbrt_forget(self._client, handle)
        except OverflowError:
            return False
        return found > 0
