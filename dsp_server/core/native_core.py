"""A core with its queue, claims, answers, waits and C ops in C; ``Core`` has the Python ops and the rare cases."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from dsp_server.core import forked
from dsp_server.core.loop import COUNTERS, Core
from dsp_server.core.op_checks import sweep
from dsp_server.core.op_output import with_output
from dsp_server.core.progress import Run
from dsp_server.hardware.tcm import Tile
from hbrt.ddr.layout import CLIENT_COUNT, CORE_TASKS
from hbrt.mailbox.native import native
from hbrt.mailbox.schedule import ASLEEP
from hbrt.mailbox.table import RUN, Answer

if TYPE_CHECKING:
    from dsp_server.c_images.runtime_calls import COp, Runtime
    from dsp_server.registry import Registration
    from hbrt.ddr.file import Ddr
    from hbrt.trace.ring import Ring

# Answers of native/mailbox/mailbox.h.
_LOCKED, _CONTROL, _RAN = range(-7, -10, -1)
_UNKNOWN_OWNER = -11
_ENDING = struct.Struct("=2I2i4Q")  # hbrt_ending


def core_class() -> type[Core]:
    """The class of this process's core: in C where that was built."""
    return Core if native()[0] is None else NativeCore


def _in_c(registration: Registration) -> COp | None:
    calls = sys.modules.get("dsp_server.c_images.runtime_calls")  # of a process that has an image in C
    return registration.op if calls is not None and isinstance(registration.op, calls.COp) else None


class NativeCore(Core):
    """As ``Core``.

    C runs a C op and answers its task. At the op's first call into the runtime, this side takes the task
    over (``_adopt``). It answers such tasks, and failed ones.
    """

    def __init__(self, index: int, ddr: Ddr, doorbells: list[int], *given: Any) -> None:
        super().__init__(index, ddr, doorbells, *given)
        module, _ = native()
        assert module is not None  # noqa: S101 - the caller has checked
        ffi, lib = module.ffi, module.lib
        self._ddr = ddr
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
        self._ffi, self._lib, self._core = ffi, lib, ffi.gc(core, lib.hbrt_core_free)
        self._c_claim, self._c_answer, self._c_next = lib.hbrt_core_claim, lib.hbrt_core_answer, lib.hbrt_core_next
        self._owners, self._last_ns = ffi.new("uint32_t[]", CLIENT_COUNT), ffi.new("uint64_t *")
        self._image: Runtime | None = None  # of the ops in C
        self._adopted_cycles = 0  # the counter when the running C op was adopted
        lib.hbrt_core_age(self._core, self._aging_ns)
        lib.hbrt_core_polls(self._core, self._spinner.budget_ns)
        ddr.imports.on_change = lambda is_any: lib.hbrt_core_imports(self._core, is_any)
        for registration in self._context.registry.listing():
            self._offer(registration)
        self._context.registry.on_put = self._offer

    def _offer(self, registration: Registration) -> None:
        """Have C run a C op."""
        ffi, lib, op = self._ffi, self._lib, _in_c(registration)
        if op is not None:
            if self._image is None:
                self._image = op.image
                op.image.on_begin, op.image.on_look = self._adopt, self._preempt
                op.image.engine.open(self.engines, self._ddr, len(self._doorbells))
            lib.hbrt_core_calls(self._core, ffi.cast("hbrt_call *", op.image.caller), ffi.from_buffer(self._own))
        lib.hbrt_core_op(self._core, registration.cmd, ffi.cast("void *", op.address if op else 0))

    def forget_client(self, client: int) -> None:
        """As ``Core.forget_client``."""
        super().forget_client(client)
        self._lib.hbrt_core_client(self._core, client, -1)

    def _next(self) -> int:
        if self._image is None:
            slot: int = self._c_next(self._core)
        else:
            self._image.engine.give()
            slot = self._c_next(self._core)
            self._take_cycles()
            self._image.engine.take()
        if slot >= 0:
            return slot
        if slot == _RAN:
            self._end()
        elif slot == _LOCKED:
            return self._claim_locked(0)
        elif slot == _UNKNOWN_OWNER:
            self._ring_late(self._lib.hbrt_core_ran(self._core).owner)
        elif slot == _CONTROL:
            self._listen()
        self._announce_again()
        return -1

    def trace_c(self, ring: Ring | None) -> None:
        """As ``Core.trace_c``."""
        if self._image is not None:
            self._image.engine.follow_trace(ring)

    # -- an op in C

    def _adopt(self) -> None:
        """Take over the task that C runs: for the calls of its op, for an urgent task inside it, and for its answer."""
        slot = self._lib.hbrt_core_adopt(self._core)
        if slot < 0:
            return
        ran, context, engines = self._lib.hbrt_core_ran(self._core), self._context, self.engines
        _, self._priority, _, _, self._claim_ns = RUN.unpack_from(self._map, self._layout.record(slot))
        context.task, context.client_id = (ran.cmd, ran.owner, ran.client), ran.client
        context.map_failure, context.mapped_bytes = "", 0
        image = self._op_in_c(ran.cmd).image
        idma = engines.idma
        if (first := image.engine.first_handle) is not None:
            idma.last_handle = first
        idma.begin_task()
        self._take_cycles()
        self._adopted_cycles = engines.counter.cycles
        image.tile_manager = engines.tile_manager
        self._is_in_op = True

    def _take_cycles(self) -> None:
        """Count the cycles of the ops that C has answered."""
        self.engines.counter.cycles += self._lib.hbrt_core_cycles(self._core)

    def _op_in_c(self, cmd: int) -> COp:
        return cast("COp", self._ops[cmd].op)

    def _end(self) -> None:
        """Answer a task that C has run."""
        self._adopt()
        ran, context = self._lib.hbrt_core_ran(self._core), self._context
        tile_manager, counter, idma = self.engines
        registration, op = self._ops[ran.cmd], self._op_in_c(ran.cmd)
        op.image.tile_manager = None
        op.image.engine.take()
        cycles, *work = ran.spent
        counter.cycles += cycles
        counter.add_work(work)
        result, text, has_raised = 0, "", False
        try:
            returned = op.ended(ran.result)
            self._is_in_op = False
            if not self._own[0]:
                forked.leave(f"{registration.name} (command {ran.cmd:#x})")
            if returned:
                result, text = self._returned(registration, returned)
        except BaseException as error:  # noqa: BLE001 - as in _run
            self._is_in_op, has_raised = False, True
            result, text = self._raised(registration, ran.cmd, error)
        if idma.queue or tile_manager.live_count or context.mappings:
            sweep(ran.cmd, registration.name, idma, tile_manager, has_raised=has_raised)
        spent = counter.cycles - self._adopted_cycles
        self._answer(ran.slot, ran.owner, result, text, ran.start_ns, ran.done_ns, spent)

    def _tiles(self) -> list[Tile]:
        in_c = self._image.engine.tiles() if self._image is not None and self._image.engine.is_on else []
        return [*in_c, *super()._tiles()]

    def _running_op(self) -> Run | None:
        slot = self._lib.hbrt_core_running(self._core)
        if slot < 0:
            run = super()._running_op()
        else:
            cmd, _, _, _, claim_ns = RUN.unpack_from(self._map, self._layout.record(slot))
            running = self._ops.get(cmd)
            run = None if running is None else Run(claim_ns, running, self.engines.idma)
        if run is not None and self._image is not None and self._image.engine.is_on:
            return run._replace(idma=self._image.engine)
        return run

    def _interrupt(self) -> None:
        if self._image is not None:
            self._image.engine.call()
        super()._interrupt()

    def _preempt(self) -> None:
        self._adopt()
        super()._preempt()

    # -- the heartbeat's thread

    def _rescan(self) -> None:
        if self._take_runs():
            # A signal that came while C ran its ops is not handled yet.
            self._lib.hbrt_core_interrupt(self._core)
            if self._map[self._activity] == ASLEEP:
                self._interrupt()
        super()._rescan()

    def _take_runs(self) -> int:
        """Note the number and the times of the ops that have run in C since the last call; returns the number."""
        total = 0
        for cmd, op in list(self._ops.items()) if self._image else ():
            if runs := self._lib.hbrt_core_runs(self._core, cmd, self._last_ns):
                op.runs += runs
                op.last_ns = self._last_ns[0]
                total += runs
        return total

    def _take_unrung(self) -> Collection[int]:
        count = self._lib.hbrt_core_unrung(self._core, self._owners, CLIENT_COUNT)
        return {*self._ffi.unpack(self._owners, count), *super()._take_unrung()}

    def _ended(self) -> int:
        ended, _, _ = COUNTERS.unpack_from(self._map, self._record + CORE_TASKS)
        return int(ended)

    def _count(self) -> None:
        """Nothing to do: C counts at each answer."""

    def _queued(self, among: list[int]) -> set[int]:
        core, is_queued = self._core, self._lib.hbrt_core_is_queued
        return {slot for slot in among if is_queued(core, slot)}

    # -- claim and answer

    def _claim(self, worst: int = 0) -> int:
        slot: int = self._c_claim(self._core, -worst)
        return self._claim_locked(worst) if slot == _LOCKED else slot

    def _claim_locked(self, worst: int) -> int:
        """Claim when another process holds the lock."""
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
        has_work = self._write_work(slot, spent_cycles)
        if result:
            answer = Answer(self.index, result, 0, has_work, self._claim_ns, start_ns, done_ns, spent_cycles)
            self.mailbox.write_answer(slot, answer, with_output(text))
        ending = _ENDING.pack(slot, owner, result, self._depth > 0, start_ns, done_ns, spent_cycles, has_work)
        if self._c_answer(self._core, ending) != 1:
            self._ring_late(owner)

    def _ring_late(self, owner: int) -> int | None:
        """As ``Core._ring_late``, of an owner whose doorbell C does not know."""
        doorbell = super()._ring_late(owner)
        if doorbell is not None:
            self._lib.hbrt_core_client(self._core, owner, doorbell)
        return doorbell
