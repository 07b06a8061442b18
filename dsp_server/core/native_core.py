"""A core whose queue, claims, answers and sleep are in C; what it runs, and what is rare, is Core's."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from dsp_server.core.loop import COUNTERS, Core
from dsp_server.core.op_output import with_what_it_said
from hbrt.ddr.layout import CORE_TASKS
from hbrt.mailbox.doorbell import ring
from hbrt.mailbox.native import native
from hbrt.mailbox.table import Answer

if TYPE_CHECKING:
    from hbrt.ddr.file import Ddr

# Answers and HBRT_POLL_PAID of native/mailbox/mailbox.h.
_LOCKED, _CONTROL, _UNRUNG, _DEFERRED = range(-7, -11, -1)
_PAID = 1


def core_class() -> type[Core]:
    """The core that this process is to be: in C where that was built."""
    return Core if native()[0] is None else NativeCore


class NativeCore(Core):
    """As ``Core``."""

    def __init__(self, index: int, ddr: Ddr, doorbells: list[int], *given: Any) -> None:
        super().__init__(index, ddr, doorbells, *given)
        module, _ = native()
        assert module is not None  # noqa: S101 - who chooses this class has asked
        ffi, lib = module.ffi, module.lib
        self._place = ctypes.c_char.from_buffer(ddr.map)
        core = lib.hbrt_core_new(
            ffi.cast("void *", ctypes.addressof(self._place)),
            ddr.layout.file_bytes,
            ddr.layout._replace(core_count=len(doorbells)).pack_header(),
            index,
            doorbells,
            self._epoll.fileno(),
            self._control_fd,
            self._is_alone,
        )
        if core == ffi.NULL:
            raise MemoryError("The mailbox in C has no memory for this core.")
        self._lib, self._core = lib, ffi.gc(core, lib.hbrt_core_free)
        lib.hbrt_core_age(core, self._aging_ns)
        self._c_claim, self._c_answer = lib.hbrt_core_claim, lib.hbrt_core_answer
        self._c_next = lib.hbrt_core_next
        self._c_poll, self._c_sleep = lib.hbrt_core_poll, lib.hbrt_core_sleep

    def forget_client(self, client: int) -> None:
        """As ``Core.forget_client``."""
        self._lib.hbrt_core_client(self._core, client, -1)

    def _wait(self) -> None:
        if self._spinner.budget_ns and not self._lib.hbrt_core_owner_sleeps(self._core):
            budget_ns = self._spinner.begin()
            if budget_ns:
                polled = self._c_poll(self._core, budget_ns)
                self._spinner.note(polled)
                if polled & _PAID:
                    return
        self._woken(self._c_sleep(self._core))

    def _next(self) -> int:
        if self._deferred or self._spinner.budget_ns:
            return super()._next()
        slot: int = self._c_next(self._core)
        if slot < 0:
            if slot == _LOCKED:
                return self._claim_locked(0)
            self._woken(slot)
        elif self._is_rescan_due:
            self._announce_again()
        return slot

    def _woken(self, why: int) -> None:
        if why == _CONTROL:
            self._listen()
        self._announce_again()

    def _ended(self) -> int:
        ended, _, _ = COUNTERS.unpack_from(self._map, self._record + CORE_TASKS)
        return int(ended)

    def _count(self) -> None:
        """C counts with each answer."""

    def _queued(self, among: list[int]) -> set[int]:
        core, is_queued = self._core, self._lib.hbrt_core_is_queued
        return {slot for slot in among if is_queued(core, slot)}

    def _claim(self, worst: int = 0) -> int:
        slot: int = self._c_claim(self._core, -worst)
        return self._claim_locked(worst) if slot == _LOCKED else slot

    def _claim_locked(self, worst: int) -> int:
        """Claim with the lock that somebody else holds."""
        lock = self._claim_lock
        if (refusal := lock.try_acquire(lock.handle)) and not self._await_lock(refusal):
            return -1
        try:
            slot: int = self._c_claim(self._core, -worst)  # the lock is recursive
        finally:
            lock.release(lock.handle)
        return slot

    def _collect(self) -> None:
        self._best_rank()

    def _best_rank(self) -> int:
        rank: int = self._lib.hbrt_core_first_rank(self._core)
        return rank

    def _answer(
        self, slot: int, owner: int, result: int, text: str, start_ns: int, done_ns: int, spent_cycles: int
    ) -> None:
        if result:
            answer = Answer(self.index, result, 0, 0, self._claim_ns, start_ns, done_ns, spent_cycles)
            self.mailbox.write_answer(slot, answer, with_what_it_said(text))
        answered = self._c_answer(self._core, slot, owner, result, start_ns, done_ns, spent_cycles, self._depth > 0)
        if answered > 0:
            return
        if answered == _UNRUNG:
            self._unrung.add(owner)
        elif answered == _DEFERRED:
            self._defer_wakeup(owner, done_ns)
        else:
            doorbell = self._late_doorbell(owner)
            self._lib.hbrt_core_client(self._core, owner, doorbell)
            ring(doorbell)
