"""A core's ops in C: C runs an op and answers its task, until the op needs the runtime, fails, or is interrupted.

When the op first calls the runtime, Python takes over the task (``adopt``) and answers it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

from dsp_server import runtime
from dsp_server.core import forked
from dsp_server.core.op_effects import sweep
from hbrt.mailbox.table import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from dsp_server.c_images.engine import OpEngine
    from dsp_server.c_images.runtime_calls import COp, ImageRuntime
    from dsp_server.core.core_mailbox import Host
    from dsp_server.hardware.tcm import Tile
    from dsp_server.registry import Registration
    from hbrt.trace.ring import Ring


def _in_c(registration: Registration) -> COp | None:
    calls = sys.modules.get("dsp_server.c_images.runtime_calls")  # loaded only in processes with a C image
    return registration.op if calls is not None and isinstance(registration.op, calls.COp) else None


class OpsInC:
    """The ops that C runs for one core; none if the image is in Python.

    Attributes:
        on_look: Called in the middle of an op, after ``call`` has made it call Python.
    """

    def __init__(self, core: Host) -> None:
        self._core = core
        self.on_look: Callable[[], None] = lambda: None
        self._lib, self._handle = core.mailbox.lib, core.mailbox.core
        self._image: ImageRuntime | None = None
        self._adopted_cycles = 0  # cycle counter when the running op was adopted
        self._last_ns = core.mailbox.ffi.new("uint64_t *")

    def offer(self, registration: Registration) -> None:
        """Have C run an op if it is in C."""
        core, op, ffi = self._core, _in_c(registration), self._core.mailbox.ffi
        if op is not None:
            if self._image is None:
                self._image = op.image
                op.image.on_begin, op.image.on_look = self.adopt, self.on_look
                op.image.engine.open(core.engines, core.mailbox.ddr, len(core.mailbox.doorbells))
            call = ffi.cast("hbrt_call *", op.image.caller)
            self._lib.hbrt_core_calls(self._handle, call, ffi.from_buffer(forked.mark))
        self._lib.hbrt_core_op(self._handle, registration.cmd, ffi.cast("void *", op.address if op else 0))

    def next(self) -> int:
        """Do what hbrt_core_next does, with the engines handed to C meanwhile."""
        if self._image is None:
            found: int = self._lib.hbrt_core_next(self._handle)
            return found
        self._image.engine.give()
        found = self._lib.hbrt_core_next(self._handle)
        self._take_cycles()
        self._image.engine.take()
        return found

    def call(self) -> None:
        """Have C call Python at the running op's next call. May be called from any thread."""
        if self._image is not None:
            self._image.engine.call()

    def follow_trace(self, ring: Ring | None) -> None:
        """Do what ``Core.follow_trace`` does, for the part in C."""
        if self._image is not None:
            self._image.engine.follow_trace(ring)

    def engine(self) -> OpEngine | None:
        """Engine of the op that C is running. May be called from any thread."""
        return self._image.engine if self._image is not None and self._image.engine.is_on else None

    def tiles(self) -> list[Tile]:
        """Live tiles of the op that C is running. May be called from any thread."""
        engine = self.engine()
        return [] if engine is None else engine.tiles()

    def running(self) -> int:
        """Slot of the op that C is running; negative if none. May be called from any thread."""
        slot: int = self._lib.hbrt_core_running(self._handle)
        return slot

    def take_runs(self) -> int:
        """Record the number and times of the ops that C has run since the last call; return the number."""
        total = 0
        for cmd, op in list(self._core.ops.items()) if self._image else ():
            if runs := self._lib.hbrt_core_runs(self._handle, cmd, self._last_ns):
                op.runs += runs
                op.last_ns = self._last_ns[0]
                total += runs
        return total

    def adopt(self) -> None:
        """Take over the task that C is running: for its op's calls, for an urgent task inside it, for its answer."""
        slot = self._lib.hbrt_core_adopt(self._handle)
        if slot < 0:
            return
        core, context, ddr = self._core, runtime.context, self._core.mailbox.ddr
        ran, now, idma = self._lib.hbrt_core_ran(self._handle), core.now, core.engines.idma
        _, now.priority, _, _, now.claim_ns = RUN.unpack_from(ddr.map, ddr.layout.record(slot))
        context.task, context.client_id = (ran.cmd, ran.owner, ran.client), ran.client
        context.map_failure, context.mapped_bytes = "", 0
        image = self._op(ran.cmd).image
        if (first := image.engine.first_handle) is not None:
            idma.last_handle = first
        idma.begin_task()
        self._take_cycles()
        self._adopted_cycles = core.engines.counter.cycles
        image.tile_manager = core.engines.tile_manager
        now.is_in_op = True

    def end(self) -> None:
        """Answer a task that C has finished running."""
        self.adopt()
        core, context, ran = self._core, runtime.context, self._lib.hbrt_core_ran(self._handle)
        tile_manager, counter, idma = core.engines
        registration, op, now = core.ops[ran.cmd], self._op(ran.cmd), core.now
        op.image.tile_manager = None
        op.image.engine.take()
        cycles, *work = ran.spent
        counter.cycles += cycles
        counter.add_work(work)
        result, text, has_raised = 0, "", False
        try:
            returned = op.ended(ran.result)
            now.is_in_op = False
            if not forked.mark[0]:
                forked.leave(f"{registration.name} (command {ran.cmd:#x})")
            if returned:
                result, text = core.returned(registration, returned)
        except BaseException as error:  # noqa: BLE001 - as in Core.run
            now.is_in_op, has_raised = False, True
            result, text = core.raised(registration, ran.cmd, error)
        if idma.queue or tile_manager.live_count or context.mappings:
            sweep(ran.cmd, registration.name, idma, tile_manager, has_raised=has_raised)
        core.answer(ran.slot, ran.owner, (result, text), (ran.start_ns, ran.done_ns), self._adopted_cycles)

    def _take_cycles(self) -> None:
        """Count the cycles of the ops that C has answered."""
        self._core.engines.counter.cycles += self._lib.hbrt_core_cycles(self._handle)

    def _op(self, cmd: int) -> COp:
        return cast("COp", self._core.ops[cmd].op)
