"""A core inside the calling program's process: ops run in the caller's thread, where a debugger reaches them.

The board's daemon, memory and tables are the usual ones; so are TCM, iDMA, detectors and answers, as it is the same
core class. But no core claims tasks: the submitting thread runs them. No watchdog, no priorities; it runs the tasks of
all cores.
"""

from __future__ import annotations

import bdb
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from dsp_server import runtime
from dsp_server.core import forked
from dsp_server.core.core_mailbox import attachment_number
from dsp_server.core.image_loader import load_and_run
from dsp_server.core.loop import Core
from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.engines import Engines
from dsp_server.images import default
from hbrt.ddr.file import Ddr
from hbrt.errors import BoardError
from hbrt.findings.record import Finding
from hbrt.trace.ring import Ring

_ENDS = (KeyboardInterrupt, SystemExit, bdb.BdbQuit)
"""Exceptions that end the whole program, not just the op."""


class _Started(BaseException):
    """The image has called hb_dsp_start()."""


class InlineCore:
    """A core that runs a task on request.

    Args:
        ddr: The board's DDR.
        doorbells: The doorbells of the board's cores.
        client: Client id and doorbell of this process's lease.
        image: The image's file; None for the packaged ops.
        report: Receives findings.
        recording: Directory for recording the calls, or None.
        index: Index of the core to act as.

    Raises:
        BoardError: the image does not load; its exception is chained as the cause.
    """

    def __init__(
        self,
        ddr: Ddr,
        doorbells: list[int],
        client: tuple[int, int],
        image: str | None,
        report: Callable[[Finding], None],
        recording: str | None = None,
        index: int = 0,
    ) -> None:
        self.index = index
        self._lock = threading.RLock()  # models make calls from threads of their own
        self._error: BaseException | None = None
        self._before = vars(runtime.context).copy()
        vars(runtime.context).update(vars(runtime.CoreContext()))  # as when a core's process starts
        runtime.context.index, runtime.context.ddr = index, ddr
        runtime.context.serve, runtime.context.report = self._start, report
        forked.mark[0] = 1
        origin = image or default.__file__
        try:
            load_and_run(origin, origin)
        except _Started:
            pass
        except Exception as error:
            vars(runtime.context).update(self._before)
            raise BoardError(f"The image {origin} did not load: {error}") from error
        self._registry = runtime.context.registry
        self._control = os.eventfd(0, os.EFD_CLOEXEC)
        self._engines_before = cycles.current(), descriptors.current()
        cycles.install(CycleCounter())
        client_id, doorbell = client
        number = attachment_number(ddr, client_id)
        if recording is not None:
            from dsp_server.detectors.recording import Recorder

            runtime.context.recorders[client_id] = Recorder(recording, runtime.context)
        self._core = Core(index, ddr, doorbells, self._control, lambda: False, {number: doorbell}, self)
        self._core.count_apart()

    @property
    def engines(self) -> Engines:
        """The engines that its op computes with."""
        return self._core.engines

    def ops(self) -> dict[int, str]:
        """Its commands: number to name."""
        return {op.cmd: op.name for op in self._registry.listing()}

    def run(self, slot: int) -> BaseException | None:
        """Run the task in a slot and answer it there; return the exception of its op, if any.

        Raises:
            KeyboardInterrupt, SystemExit, BdbQuit: the op raised it; the task has failed and the program ends.
        """
        with self._lock:
            self._core.run_now(slot)
            error, self._error = self._error, None
            if isinstance(error, _ENDS):
                raise error
            return error

    def follow_trace(self, ring: Ring | None) -> None:
        """Trace what the core does into a ring next to the program's from now on; None stops it."""
        with suppress(OSError):  # no space: the program carries on untraced
            own = None if ring is None else ring.of_role(f"core {self.index}")
            if own is not None:
                own.name_ops(self.ops())
            self._core.follow_trace(own)

    def resume(self) -> None:
        """Make this process's engines those of this core; for processes in which several cores take turns."""
        self.engines.install()

    def close(self) -> None:
        """Release the core's process-wide resources."""
        vars(runtime.context).update(self._before)
        counter, idma = self._engines_before
        cycles.install(counter)
        descriptors.install(idma)
        os.close(self._control)
        self._core.close()
        del self._core  # it maps the board's memory

    def _start(self) -> NoReturn:
        raise _Started

    def note(self, op: str, error: BaseException, text: str) -> None:
        """See ``Faults.note``; the caller gets the exception, so nothing is logged."""
        del op, text
        self._error = error
