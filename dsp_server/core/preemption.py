"""Urgent tasks (priority 254 and 255), which interrupt a core's op; it continues afterwards."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

from dsp_server import runtime
from dsp_server.core import forked
from dsp_server.core.op_effects import unknown_handle
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.engines import Engines, make_engines
from dsp_server.hardware.tile_manager import TileManager
from hbrt.ddr.layout import CORE_ACTIVITY
from hbrt.mailbox.schedule import PRIORITY_PREEMPT, PRIORITY_URGENT, RUNNING

if TYPE_CHECKING:
    from types import FrameType

    from dsp_server.core.core_mailbox import Host
    from dsp_server.core.ops_in_c import OpsInC

PREEMPT_SIGNAL = signal.SIGUSR1
_IMPORTS = "<frozen importlib._bootstrap>"  # file name of the interpreter's own import frames
_LOOP = "dsp_server.core.loop"


class Preemption:
    """What may interrupt one core's ops.

    Attributes:
        depth: How many ops are currently interrupted.
        is_due: Whether an urgent task waits for an import to end: the next heartbeat interrupts again.
    """

    def __init__(self, core: Host, ops_in_c: OpsInC) -> None:
        self._core, self._ops_in_c = core, ops_in_c
        self._main_thread = 0
        self.depth = 0
        self.is_due = False
        self._spare_engines: list[Engines] = []  # for interrupting ops, by depth

    def begin(self) -> int:
        """Let the signal interrupt this thread from now on; return the thread's id."""
        self._main_thread = threading.get_ident()
        signal.signal(PREEMPT_SIGNAL, lambda *_: self.preempt())
        return self._main_thread

    def interrupt(self) -> None:
        """Signal the main thread that an urgent task may interrupt its op. May be called from any thread."""
        self._ops_in_c.call()
        signal.pthread_kill(self._main_thread, PREEMPT_SIGNAL)

    def preempt(self) -> None:
        """Run an urgent task in the middle of a lower-priority op, which then continues.

        Runs from a signal handler, between two bytecodes of the main thread; a long call into C finishes first. The
        interrupting op has its own TCM, iDMA engine and cycle counter. Priority 255 also interrupts a 254 that has
        interrupted another op. Imports are never interrupted: the urgent op could get a half-imported module.
        """
        core, now = self._core, self._core.now
        self._ops_in_c.adopt()
        # Outside an op the loop claims by priority anyway. Loops: a ring during the nested task has no other effect.
        while forked.mark[0] and now.is_in_op and now.priority < PRIORITY_PREEMPT:
            if _is_importing():
                self.is_due = True
                return
            if not self._can_interrupt():
                return  # the loop claims by priority afterwards
            least = max(PRIORITY_URGENT, now.priority + 1)
            if core.mailbox.best_rank() < least or not self._run_nested(least):
                return  # if nothing was claimed, the next heartbeat rescans

    def _can_interrupt(self) -> bool:
        task = runtime.context.task
        op = self._core.ops.get(task[0]) if task else None
        return op is None or getattr(op.op, "can_be_interrupted", True)

    def _run_nested(self, least: int) -> bool:
        """Run one task of at least this priority inside the running op; False if none could be claimed."""
        core, now, context = self._core, self._core.now, runtime.context
        before = now.claim_ns, context.task, context.client_id, context.map_failure, now.priority
        mapped_bytes = context.mapped_bytes
        mappings, context.mappings = context.mappings, []
        engines = core.engines
        now.is_in_op = False
        if len(self._spare_engines) == self.depth:
            spare = make_engines(TileManager(*engines.tile_manager.pool_bytes), CycleCounter(), unknown_handle)
            self._spare_engines.append(spare)
        spare = self._spare_engines[self.depth]
        self.depth += 1
        core.use_engines(*spare)
        try:
            slot = core.mailbox.claim(least)
            if slot >= 0:
                core.run(slot)
        finally:
            core.use_engines(*engines)
            now.claim_ns, context.task, context.client_id, context.map_failure, now.priority = before
            context.mappings, context.mapped_bytes = mappings, mapped_bytes
            self.depth -= 1
            now.is_in_op = True
            ddr = core.mailbox.ddr
            ddr.map[ddr.layout.core(core.index) + CORE_ACTIVITY] = RUNNING
        return slot >= 0


def _is_importing() -> bool:
    """Whether the running op, or the core on its behalf, is in the middle of an import."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no public API
    while frame is not None and not (frame.f_globals.get("__name__") == _LOOP and frame.f_code.co_name == "serve"):
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False
