"""A board's cores inside its program's process, which takes turns with them: one schedule, step by step.

A step is one line of the program or of an op in Python; code in libraries, packaged ops and C belongs to the line that
calls it. Each core has its own thread, image, TCM and engines, and ops are run by the usual core class.

Emulator: tasks of priority 254 and 255 do not interrupt here; switching at any line covers more.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn

from dsp_server import runtime
from dsp_server.core.inline import InlineCore
from dsp_server.scheduled.turns import Actor, StuckError, Turns
from hbrt import blocking
from hbrt.borders import guests
from hbrt.ddr.file import Ddr
from hbrt.exploration.schedule import Policy
from hbrt.findings.record import Finding
from hbrt.mailbox.schedule import may_run, task_key
from hbrt.mailbox.table import Mailbox, State

if TYPE_CHECKING:
    from hbrt.trace.ring import Ring

PROGRAM = "program"
_MAX_END_US = 500_000
"""How long a program that detaches waits for its ops; one that hangs is abandoned."""
_OTHERS_SECONDS = 1.0  # for a lock held by a library's thread
_LIBRARIES = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_OURS = (*guests.folders("rknn_api"), *(f"{Path(folder).resolve()}/" for folder in _LIBRARIES))


class ScheduledCores:
    """All cores of a board, and the turns of their program; one of the program's threads creates this object.

    Args:
        ddr: The board's DDR.
        doorbells: The doorbells of its cores, one each.
        client: Client id and doorbell of this process's lease.
        image: The image's file; None for the packaged ops.
        report: Receives findings.
        recording: Directory for recording the calls, or None.
        policy: Decides who continues.
        log: See Turns.

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
        recording: str | None,
        policy: Policy,
        log: IO[str] | None,
    ) -> None:
        self._mailbox, self._map, self._states = Mailbox(ddr), ddr.map, ddr.layout.states
        self._queue: dict[int, int] = {}  # slot -> core mask, for tasks waiting for a core
        self._is_closing = False
        self.turns = Turns(policy, log)
        self._traced: dict[CodeType, bool] = {}
        self._context = vars(runtime.context).copy()  # the program's own
        self._program: dict[int, Actor] = {}  # the program's threads by id
        self._started: dict[threading.Thread, Actor] = {}
        self._ended: set[Actor] = set()
        self._add(threading.get_ident(), PROGRAM)
        self._cores: list[_ScheduledCore] = []
        try:
            for index in range(len(doorbells)):
                inline = InlineCore(ddr, doorbells, client, image, report, recording, index)
                self._cores.append(_ScheduledCore(inline, self))
        except BaseException:
            self._close_cores()
            raise
        self._give_context()
        self._tracer_before = sys.gettrace()
        for core in self._cores:
            self.turns.add(core.actor)
            core.thread.start()
        self._trace_from_here()
        blocking.install()  # in case the program has not loaded arm_client yet
        blocking.taken[:] = [self]
        threading._register_atexit(self._await_threads)  # type: ignore[attr-defined]  # noqa: SLF001 - it joins them next

    # -- the program's side

    def submit(self, slot: int, core_mask: int) -> None:
        """Queue the task in a slot, which is READY."""
        self._queue[slot] = core_mask

    def wait(self, is_over: Callable[[], bool], most_us: int | None = None) -> None:
        """Let cores continue until something is over, or until this many lines (1 µs each) have run.

        Raises:
            StuckError: it will never be over, and there is no limit.
        """
        try:
            self._wait(is_over, most_us)
        except StuckError as error:
            if len(self._program) == 1:
                raise
            _end(error)

    def _wait(self, is_over: Callable[[], bool], most_us: int | None = None) -> None:
        self.turns.wait(is_over, _site(sys._getframe()), most_us)  # noqa: SLF001 - there is no public API

    def is_program(self) -> bool:
        """Whether this thread takes turns: the thread that attached, and threads started by one that does."""
        return threading.get_ident() in self._program

    def acquire(self, lock: _thread.LockType, timeout_s: float) -> bool:
        """Wait until a lock is free and acquire it; see ``blocking.Turns``."""
        limit_us = None if timeout_s < 0 else round(timeout_s * 1e6)
        while not lock.acquire(False):
            try:
                self._wait(lambda: not lock.locked(), limit_us)
            except StuckError as error:
                return lock.acquire(True, _OTHERS_SECONDS) or _end(error)  # a thread that takes no turns may hold it
            if limit_us is not None and lock.locked():
                return False
        return True

    def start(self, thread: threading.Thread, start: Callable[[], None]) -> None:
        """Have a new thread take turns as well; see ``blocking.Turns``."""
        self._started[thread] = actor = self._add(None, f"thread{len(self._started) + 1}")
        run = thread.run

        def serve() -> None:
            actor.gate.acquire()
            self._program[threading.get_ident()] = actor
            sys.settrace(self.trace)
            try:
                run()
            finally:
                sys.settrace(None)
                self._ended.add(actor)
                del self._program[threading.get_ident()]
                self.turns.end(actor.name)

        thread.run = serve  # type: ignore[method-assign]
        me = threading.get_ident()
        mine = self._program.pop(me)  # both wait for each other briefly, and the new thread has no turn yet
        try:
            start()
        except BaseException:
            self.turns.remove(actor)
            raise
        finally:
            self._program[me] = mine

    def await_end(self, thread: threading.Thread, timeout_s: float | None) -> bool:
        """Wait for a thread to end; see ``blocking.Turns``."""
        actor = self._started.get(thread)
        if actor is None:
            return True
        self.wait(lambda: actor in self._ended, None if timeout_s is None else round(timeout_s * 1e6))
        return actor in self._ended

    def sleep(self, seconds: float) -> None:
        """Let time pass, 1 µs per line; see ``blocking.Turns``."""
        self.wait(lambda: False, round(seconds * 1e6))

    def _await_threads(self) -> None:
        """Run before the interpreter waits for its threads, which need turns to end."""
        if self.turns.is_over or not self.is_program():
            return
        threads = [actor for thread, actor in self._started.items() if not thread.daemon]
        self.wait(lambda: self._ended.issuperset(threads))

    def _add(self, thread: int | None, name: str) -> Actor:
        actor = Actor(name, leave=self._keep_context, enter=self._give_context)
        if thread is not None:
            self._program[thread] = actor
        self.turns.add(actor)
        return actor

    def ops(self) -> dict[int, str]:
        """See ``InlineCore.ops``; all cores have the same ops."""
        return self._cores[0].inline.ops()

    def follow_trace(self, ring: Ring | None) -> None:
        """See ``InlineCore.follow_trace``; applies to all cores."""
        for core in self._cores:
            core.inline.follow_trace(ring)

    def close(self) -> None:
        """End the cores' threads, and release process-wide resources."""
        self._is_closing = True
        if self.is_program():
            sys.settrace(self._tracer_before)
            self.turns.wait(lambda: all(core.has_ended for core in self._cores), "", _MAX_END_US)
        blocking.taken.clear()
        self.turns.close()
        self._close_cores()

    def _close_cores(self) -> None:
        for core in reversed(self._cores):
            core.inline.close()
        self._give_context()

    def _keep_context(self) -> None:
        self._context = vars(runtime.context).copy()

    def _give_context(self) -> None:
        vars(runtime.context).update(self._context)

    # -- the cores' side

    def has_work(self, core: int) -> bool:
        """Whether a core has something to do."""
        return self._is_closing or self._best(core) >= 0

    def take(self, core: int) -> int:
        """Return the task that a core runs next; -1 if the core is to end."""
        slot = self._best(core)
        if slot >= 0:
            del self._queue[slot]
        return slot

    def _best(self, core: int) -> int:
        for slot in [one for one in self._queue if self._map[self._states + one] != State.READY]:
            del self._queue[slot]  # canceled by its program
        mine = [slot for slot, mask in self._queue.items() if may_run(core, mask)]
        return min(mine, key=self._key, default=-1)

    def _key(self, slot: int) -> tuple[int, int, int]:
        task = self._mailbox.request(slot)
        return task_key(task.priority, task.custom_id, task.sequence)

    # -- steps

    def trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        """Trace lines of user code, in threads that take turns."""
        code = frame.f_code
        is_traced = self._traced.get(code)
        if is_traced is None:
            file = code.co_filename
            is_traced = not file.startswith("<") and not str(Path(file).resolve()).startswith(_OURS)
            self._traced[code] = is_traced
        return self._line if is_traced else None

    def _line(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            self.turns.step(_site(frame))
        return self._line

    def _trace_from_here(self) -> None:
        """Trace this thread, including the functions that it is running."""
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as above
        while frame is not None:
            frame.f_trace = self.trace(frame, "call", None)
            frame = frame.f_back
        sys.settrace(self.trace)


class _ScheduledCore:
    """A core, its thread, and the parts of the process that it has while it has the turn."""

    def __init__(self, inline: InlineCore, cores: ScheduledCores) -> None:
        self.inline, self._cores = inline, cores
        self._context = vars(runtime.context).copy()
        self.is_running = self.has_ended = False
        self.actor = Actor(f"core{inline.index}", lambda: inline.engines.counter.cycles, self._leave, self._enter)
        self.thread = threading.Thread(target=self._serve, name=f"hbrt-core{inline.index}", daemon=True)

    def _serve(self) -> None:
        turns, index = self._cores.turns, self.inline.index
        self.actor.is_ready = lambda: self._cores.has_work(index)
        self.actor.gate.acquire()
        self._enter()
        sys.settrace(self._cores.trace)
        while (slot := self._cores.take(index)) >= 0:
            self.actor.is_ready, self.is_running = None, True
            with contextlib.suppress(BaseException):  # what would end a program ends only the task here, as on a board
                self.inline.run(slot)
            self.is_running = False
            if not self._cores.has_work(index):
                turns.wait(lambda: self._cores.has_work(index), self.actor.name)
            else:
                turns.step(self.actor.name)
        sys.settrace(None)
        self.has_ended = True
        turns.end(self.actor.name)

    def _leave(self) -> None:
        self._context = vars(runtime.context).copy()

    def _enter(self) -> None:
        vars(runtime.context).update(self._context)
        self.inline.resume()


def _end(error: StuckError) -> NoReturn:
    """End a program whose threads wait for each other: an exception in one of them would not end it."""
    sys.stdout.flush()
    sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    os._exit(1)


def _site(frame: FrameType | None) -> str:
    """Return ``file:line`` of the innermost user code, starting from a frame and going outward."""
    while frame is not None and str(frame.f_code.co_filename).startswith(_OURS):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
