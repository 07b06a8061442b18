"""Runs an op under the detectors for the checks that are on: what they may change, and how they report findings.

A detector is a module of this package with ``watch(call)``, a context manager around the op: before the op it may
replace the call's views or engines; it reports findings with ``call.find``.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dsp_server import runtime
from hbrt.ddr import faults
from hbrt.findings.checks import Check
from hbrt.findings.record import KINDS, Place, Severity

if TYPE_CHECKING:
    from dsp_server.hardware.cycles import CycleCounter
    from dsp_server.hardware.descriptors import Idma
    from dsp_server.hardware.tile_manager import TileManager
    from dsp_server.registry import Op
    from hbrt.mailbox.dirty_ranges import DirtyRanges


_NO_TRACER: Final = object()
_PACKAGE: Final = f"{os.path.dirname(runtime.__file__)}/"  # noqa: PTH120 - text, as in sites


class MistakeError(Exception):
    """Ends an op at the first mistake that a detector finds in it, under Check.FAIL_FAST; has the finding's text."""


class Call:
    """One call of an op, before and while it runs.

    Args:
        cmd: Command number.
        op: Name of the op.
        views: Input and output; a detector may replace them.
        engines: The core's TCM, cycle counter and iDMA engine.
        use_engines: Gives the core other engines until the op has ended.
        checks: The checks that are on.
        submitted_at: ``file:line`` in the program that submitted the task; empty if unknown.
        dirty: Bytes in the task's memory that the CPU has changed but not cleaned.
    """

    def __init__(
        self,
        cmd: int,
        op: str,
        views: tuple[memoryview, memoryview],
        engines: tuple[TileManager, CycleCounter, Idma],
        use_engines: Callable[[TileManager, CycleCounter, Idma], None],
        checks: Check,
        submitted_at: str = "",
        dirty: Sequence[DirtyRanges] = (),
    ) -> None:
        self.cmd, self.op, self.checks = cmd, op, checks
        self.submitted_at, self.dirty = submitted_at, dirty
        self.input, self.output = views
        self.tile_manager, self.counter, self.idma = engines
        self._use_engines = use_engines
        self._thread = threading.get_ident()
        self._tracer: Any = _NO_TRACER  # a debugger's, saved when an op is to be ended at its next line
        self.mistake = ""  # the mistake that ends the op, under FAIL_FAST

    @property
    def who(self) -> str:
        """The op, its command and its core, as named in sentences."""
        return f"{self.op} (command {self.cmd:#x}) on core {runtime.context.index}"

    def use(self, tile_manager: TileManager, idma: Idma) -> None:
        """Give the op another TCM and iDMA engine; the core takes back its own when the op ends."""
        self.tile_manager, self.idma = tile_manager, idma
        self._use_engines(tile_manager, self.counter, idma)

    @property
    def submitted(self) -> str:
        """Sentence that says where the task was submitted, with a leading space; empty if unknown."""
        return f" The task was submitted at {self.submitted_at}." if self.submitted_at else ""

    def task_place(self) -> Place:
        """The task's submission, as a place of a finding."""
        return Place("submitted", self.submitted_at or None, cmd=self.cmd)

    def with_program(self, here: Place) -> tuple[Place, ...]:
        """Return the places for a mistake of the program: if the op is a packaged one, the submission comes first."""
        task = self.task_place()
        is_packaged = bool(here.site) and str(here.site).startswith(_PACKAGE)
        return (task, here) if task.site and is_packaged else (here, task)

    def place(self, what: str, site: str, phy_addr: int | None = None, size_bytes: int | None = None) -> Place:
        """Return one place for a mistake of this op."""
        core = runtime.context.index
        return Place(what, site, core=core, cmd=self.cmd, op=self.op, phy_addr=phy_addr, size_bytes=size_bytes)

    def find(self, kind: str, sentence: str, *places: Place, is_in_handler: bool = False) -> None:
        """Report a mistake; under FAIL_FAST, also end the op with it.

        Args:
            kind: One of hbrt.findings.record.KINDS.
            sentence: What is wrong, with values, and what to do.
            places: The places involved, the main one first.
            is_in_handler: Whether a fault handler calls this, from which nothing can be raised: the op then ends at its
            next line.

        Raises:
            MistakeError: under FAIL_FAST.
        """
        if self.mistake:  # the op is ending: later mistakes follow from the first
            return
        runtime.find(kind, sentence, *places)
        if not self.checks & Check.FAIL_FAST or KINDS[kind].severity is Severity.ADVICE:
            return
        self.mistake = sentence
        if not is_in_handler:
            raise MistakeError(sentence)
        if threading.get_ident() == self._thread:  # else a thread that the op started: then the op ends on return
            self._stop_at_next_line()

    def end(self) -> None:
        """Stop tracing: the op has ended, possibly before its next line."""
        if self._tracer is not _NO_TRACER:
            sys.settrace(self._tracer)

    def _stop_at_next_line(self) -> None:
        """Make the op's frames, which lie between the fault handler and run_checked, raise."""
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - there is no public API
        is_op = False
        while frame is not None and frame.f_code is not run_checked.__code__:
            if frame.f_globals.get("__name__") == faults.__name__:
                is_op = True
            elif is_op:
                frame.f_trace = self._stop
            frame = frame.f_back
        self._tracer = sys.gettrace()
        sys.settrace(lambda *_: None)

    def _stop(self, *_event: object) -> None:
        raise MistakeError(self.mistake)


Watch: TypeAlias = Callable[[Call], AbstractContextManager[None]]
DETECTORS: Final = {
    int(Check.MEMORY): "dsp_server.detectors.memory",
    int(Check.DMA): "dsp_server.detectors.dma",
    int(Check.COHERENCE): "dsp_server.detectors.coherence",
    int(Check.HOOKS): "dsp_server.detectors.injection",
}
"""Check -> its module; the first is outermost, and sees what the op sees. Plain ints: ``&`` on a flag costs more."""


def run_checked(function: Op, call: Call) -> int:
    """Run an op under the detectors of ``call.checks``; return its result or raise its exception.

    Raises:
        MistakeError: a detector found a mistake, under Check.FAIL_FAST.
    """
    try:
        checks = int(call.checks)
        watches = [_watch_of(module) for check, module in DETECTORS.items() if checks & check]
        with watches[0](call) if len(watches) == 1 else _all(watches, call):
            result = function(call.input, call.output, call.tile_manager)
    finally:
        call.end()
    if call.mistake:
        raise MistakeError(call.mistake)
    return result


def _watch_of(name: str) -> Watch:
    module = sys.modules.get(name) or import_module(name)  # importlib's import_module alone costs an extra call
    watch: Watch = module.watch
    return watch


@contextmanager
def _all(watches: Iterable[Watch], call: Call) -> Iterator[None]:
    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch(call))
        yield
