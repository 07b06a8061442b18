"""A core in the process of the program that calls it: an op runs in the caller's thread, where a debugger reaches it.

The board's daemon, memory and tables are the usual ones, and so are TCM, iDMA, detectors and answers: the core is the
same class. But no core claims a task: the submitting thread runs it. There is no watchdog, no priority, no second core.
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
"""Exceptions that end the program, not the op alone."""


class _Started(BaseException):
    """The image has called hb_dsp_start()."""


class InlineCore:
    """A core that runs a task on request.

    Args:
        ddr: The board's DDR.
        doorbells: The doorbells of its cores.
        client: Id and doorbell of this process's lease.
        image: File of the image; None takes the packaged ops.
        report: Takes findings.
        recording: Directory and limit of a recording of the calls, or None.
        index: Which core it is.

    Raises:
        BoardError: the image does not load; has its exception as its cause.
    """

    def __init__(
        self,
        ddr: Ddr,
        doorbells: list[int],
        client: tuple[int, int],
        image: str | None,
        report: Callable[[Finding], None],
        recording: tuple[str, int] | None = None,
        index: int = 0,
    ) -> None:
        self.index = index
        self._lock = threading.RLock()  # models call from their own threads
        self._error: BaseException | None = None
        self._before = vars(runtime.context).copy()
        vars(runtime.context).update(vars(runtime.CoreContext()))  # as at the start of a core's process
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
            raise BoardError(f"The image {origin} does not load: {error}") from error
        self._registry = runtime.context.registry
        self._control = os.eventfd(0, os.EFD_CLOEXEC)
        self._engines_before = cycles.current(), descriptors.current()
        cycles.install(CycleCounter())
        client_id, doorbell = client
        number = attachment_number(ddr, client_id)
        if recording is not None:
            from dsp_server.detectors.recording import Recorder

            runtime.context.recorders[client_id] = Recorder(*recording, runtime.context)
        self._core = Core(index, ddr, doorbells, self._control, lambda: False, {number: doorbell}, self)
        self._core.count_apart()

    @property
    def engines(self) -> Engines:
        """What its op computes with."""
        return self._core.engines

    def ops(self) -> dict[int, str]:
        """Its commands: number -> name."""
        return {op.cmd: op.name for op in self._registry.listing()}

    def run(self, slot: int) -> BaseException | None:
        """Run the task in a slot, and answer there; returns the exception of its op.

        Raises:
            KeyboardInterrupt, SystemExit, BdbQuit: the op raised it; the task has failed, and the program ends.
        """
        with self._lock:
            self._core.run_now(slot)
            error, self._error = self._error, None
            if isinstance(error, _ENDS):
                raise error
            return error

    def follow_trace(self, ring: Ring | None) -> None:
        """Note what the core does into a ring beside the program's from now on, or with None no more."""
        with suppress(OSError):  # no room: the program keeps running
            own = None if ring is None else ring.of_role(f"core {self.index}")
            if own is not None:
                own.name_ops(self.ops())
            self._core.follow_trace(own)

    def resume(self) -> None:
        """Be the core that this process's engines are those of, among several that take turns."""
        self.engines.install()

    def close(self) -> None:
        """Release the process-wide resources of the core."""
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
        """As ``Faults.note``; the caller gets the exception, so that no log needs it."""
        del op, text
        self._error = error
