"""The cores' life cycle: start, stop, restart, crash. decide.py reacts to each event; this file executes."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from dsp_server.clients import Clients
from dsp_server.lifecycle import actions, events
from dsp_server.lifecycle.child import CoreChild
from dsp_server.lifecycle.core_state import BoardCore
from dsp_server.lifecycle.decide import decide, refusal
from dsp_server.lifecycle.fork_server import ForkServer
from dsp_server.lifecycle.life import new_board
from dsp_server.lifecycle.processes import CoreProcesses
from dsp_server.lifecycle.snapshots import Image, Snapshots
from dsp_server.lifecycle.task_ends import TaskReaper
from dsp_server.process.event_loop import Loop, Timer
from dsp_server.process.journal import Journal
from hbrt.ddr.claim_lock import ClaimLockError
from hbrt.ddr.file import Ddr
from hbrt.status import Status

STALL_SECONDS = 5.0  # limit without op and heartbeat, unless the time limit for ops is shorter
TRACE_SECONDS = 0.05
MAX_TRACE_SECONDS = 2.0  # for an op in C, whose lines are looked up by another process
LOCK_SECONDS = 0.1  # before retrying work that needs the claim lock
Done: TypeAlias = Callable[[Status, str], None]


class CoreStateError(RuntimeError):
    """The core's state does not allow the request; nothing was changed."""


class Lifecycle:
    """All cores of a board.

    Args:
        ddr: The board's DDR.
        image: The initial image of all cores.
        core_count: Number of DSP cores.
        accelerators: The image of each accelerator core. Accelerators are numbered after the DSP cores and start on
        request.
        loop: The daemon's event loop.
        journal: Receives a line for every crash and restart; the processes write to its file too.
        clients: The attached clients.
        reaper: Fails the tasks of dead cores.
        fork_server: Forks the cores' processes.
        snapshots: The copies of image files.
        load_seconds: Time limit for loading an image, unless the request has its own.
        limit_ms: Time limit for ops that have none of their own, and for cores without a heartbeat; 0 for none.
        domains: Cores that crash and restart together.
    """

    def __init__(
        self,
        ddr: Ddr,
        image: Image,
        core_count: int,
        accelerators: list[Image],
        loop: Loop,
        journal: Journal,
        clients: Clients,
        reaper: TaskReaper,
        fork_server: ForkServer,
        snapshots: Snapshots,
        load_seconds: float,
        limit_ms: int,
        domains: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        self.processes = CoreProcesses(
            loop,
            clients,
            ddr.fd,
            journal.log_fd,
            fork_server,
            core_count + len(accelerators),
            self._on_ready,
            self._on_end,
            journal.keep,
        )
        stall_limit_s = min(limit_ms / 1000, STALL_SECONDS)
        self.life = new_board([image] * core_count + accelerators, load_seconds, stall_limit_s, domains)
        self.cores = [
            BoardCore(index, ddr, life, self.processes.children) for index, life in enumerate(self.life.cores)
        ]
        self.dsp_cores, self.accelerators = self.cores[:core_count], self.cores[core_count:]
        self.image_error = ""  # why the last requested image is not running
        # Says in a sentence who waits for the task in a slot, and for what; "" if unknown.
        self.ask_why: Callable[[int, Callable[[str], None]], None] = lambda _, say: say("")
        self.on_change: Callable[[], None] = lambda: None  # called when cores run another image, or could not
        self._loop = loop
        self._journal = journal
        self._reaper = reaper
        self._snapshots = snapshots
        self._events: deque[events.Event] = deque()
        self._is_handling = False
        self._requests = itertools.count(1)
        self._answers: dict[int, Done] = {}
        self._timers: dict[int, Timer] = {}  # by core
        self._do: dict[type, Callable[[Any], object]] = {
            actions.Start: self._start,
            actions.Go: self._go,
            actions.End: lambda do: self._with_child(do.process, CoreChild.end),
            actions.Kill: lambda do: self._with_child(do.process, lambda child: child.fail(do.problem)),
            actions.Trace: self._trace,
            actions.Forgive: lambda do: self._with_child(do.process, CoreChild.forgive),
            actions.Publish: lambda do: self.cores[do.core].publish(do.activity),
            actions.MarkStalled: lambda do: self.cores[do.core].mark_stalled(),
            actions.RingOthers: lambda do: self.processes.ring(all_but=do.core),
            actions.StartLater: self._start_later,
            actions.CancelStart: lambda do: self._timers.pop(do.core).cancel(),
            actions.FailUnservable: lambda do: self._fail_unservable(do.served_by),
            actions.Answer: lambda do: self._answers.pop(do.request)(do.status, do.text),
            actions.ImagesChanged: lambda do: self._note_images(do.problem),
            actions.Log: lambda do: journal.say(do.sentence),
            actions.Report: lambda do: journal.find(do.kind, do.sentence),
        }

    # -- requests

    def start_all(self, done: Done) -> None:
        """Start all DSP cores; ``done`` receives the result."""
        if not self.dsp_cores:
            done(Status.HB_SYS_SUCCESS, "")
            return
        self._begin_rollout([(core.index, core.life.image) for core in self.dsp_cores], done, self.life.load_s)

    def start_accelerators(self) -> None:
        """Start the accelerator cores that have never been started; from now on tasks for them may be queued.

        An accelerator that was stopped, or that stays crashed, is left alone: a person must start it.
        """
        self.handle(events.StartAsked(tuple(core.index for core in self.accelerators)))

    def restart(self, index: int, image: str | None, done: Done, load_seconds: float | None = None) -> None:
        """Load an image in new processes; once all are ready, they replace the old ones.

        Args:
            index: The core, or -1 for all.
            image: The image's file; None reloads each core's current image file.
            done: Receives the result, once.
            load_seconds: Time limit for loading; None for the daemon's own.

        Raises:
            ImageError: the image cannot be read. CoreStateError: no such core, or another rollout is in progress.
        """
        self._refuse(index)
        if image is not None and index >= len(self.dsp_cores):
            raise CoreStateError(f"Core {index} is an accelerator, which runs no image; omit the image.")
        wanted = self.dsp_cores if index < 0 else [self.cores[index]]
        origins = {core.index: Path(image).absolute() if image else core.life.image.origin for core in wanted}
        taken = {origin: self._snapshots.take(origin) for origin in set(origins.values())}

        def end(status: Status, text: str) -> None:
            if not status:  # errors go to the requester
                now = " and ".join(str(origin) for origin in dict.fromkeys(origins.values()))
                self._journal.say(f"{'All cores now run' if index < 0 else f'Core {index} now runs'} {now}.")
            done(status, text)

        images = [(core, taken[origin]) for core, origin in origins.items()]
        self._begin_rollout(images, end, load_seconds or self.life.load_s)

    def start_core(self, index: int, done: Done) -> None:
        """Start an offline or crashed core with its last image.

        Raises:
            CoreStateError: it is running, there is no such core, or a rollout is in progress.
        """
        self._refuse(index, wants_start=True)
        self._begin_rollout([(index, self.cores[index].life.image)], done, self.life.load_s)

    def stop_core(self, index: int, done: Done) -> None:
        """Stop a core after its task; ``done`` is called once it is offline.

        Raises:
            CoreStateError: it is offline, there is no such core, or a rollout is in progress.
        """
        self._refuse(index, wants_stop=True)
        self.handle(events.StopAsked(self._request(done), index))

    def supersede(self) -> None:
        """Abort a rollout that is still loading, because a newer one follows."""
        self.handle(events.SupersedeAsked())

    def refuse_image(self, problem: str) -> None:
        """Record that a changed image cannot run; it was not tried."""
        self._note_images(problem)

    @property
    def is_recovering(self) -> bool:
        """Whether crashed cores restart automatically; setting this to true restarts the crashed ones."""
        return self.life.is_recovering

    @is_recovering.setter
    def is_recovering(self, enabled: bool) -> None:
        self.handle(events.RecoverySet(enabled))

    @property
    def present(self) -> list[BoardCore]:
        """The DSP cores, and once an accelerator core serves, all accelerator cores, including those still starting."""
        serves = any(core.life.epoch for core in self.accelerators)
        return self.dsp_cores + [one for one in self.accelerators if one.life.epoch or (serves and one.life.is_wanted)]

    @property
    def is_changing(self) -> bool:
        """Whether a requested start, stop or restart is in progress."""
        return self.life.rollout is not None or any(core.stop is not None for core in self.life.cores)

    @property
    def is_committed(self) -> bool:
        """Whether the current rollout can no longer be superseded."""
        return self.life.rollout is not None and self.life.rollout.is_committed

    def close(self) -> None:
        """End every process, after its task if a client waits for it; return when all have ended."""
        self.handle(events.CloseAsked())
        self.processes.await_end(self._reaper.is_awaited)

    def _refuse(self, index: int, *, wants_stop: bool = False, wants_start: bool = False) -> None:
        there = [core.index for core in self.present]
        if not there or (index < 0 and not self.dsp_cores):
            raise CoreStateError("This board has no DSP cores, as its profile has none.")
        if index not in {-1, *there}:
            raise CoreStateError(f"Core {index} is out of range: this board has cores 0 to {there[-1]}.")
        if why := refusal(self.life, index, wants_stop=wants_stop, wants_start=wants_start):
            raise CoreStateError(why)

    def _request(self, done: Done) -> int:
        request = next(self._requests)
        self._answers[request] = done
        return request

    def _begin_rollout(self, images: list[tuple[int, Image]], done: Done, load_seconds: float) -> None:
        self.handle(events.RolloutAsked(self._request(done), tuple(images), load_seconds))

    # -- events and actions

    def handle(self, event: events.Event) -> None:
        """Execute an event's actions; an event that occurs meanwhile, such as a failed action, is handled next."""
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events:
                self.life, follows = decide(self.life, self._events.popleft())
                for core, life in zip(self.cores, self.life.cores, strict=True):
                    core.life = life
                for action in follows:
                    try:
                        self._do[type(action)](action)
                    except Exception as error:  # noqa: BLE001 - no action may stay half done: the rules handle failures
                        self._events.append(events.Failed(action, _why(error)))
        finally:
            self._is_handling = False

    def _on_ready(self, process: int, child: CoreChild) -> None:
        self.handle(events.Ready(process, child.pid))

    def _on_end(self, process: int, child: CoreChild, how: str) -> None:
        core = self.cores[child.index]
        is_core = core.life.process is not None and core.life.process.id == process
        lost = tuple(self._reaper.fail_running(child, how)) if is_core else ()
        served_s = time.monotonic() - child.served_since if is_core else 0.0
        tasks_ended = core.counters()["tasks"] - child.tasks_before if is_core else 0
        details = (child.problem, child.is_late, lost, child.trace)
        self.handle(events.Ended(process, child.pid, how, *details, served_s, tasks_ended, time.time()))

    def _with_child(self, process: int, what: Callable[[CoreChild], object]) -> None:
        child = self.processes.children.get(process)
        if child is not None:
            what(child)

    def _start(self, do: actions.Start) -> None:
        self.processes.start(do.process, do.core, do.image, do.load_s)

    def _go(self, do: actions.Go) -> None:
        self._with_child(do.process, lambda child: self.cores[child.index].go(child))

    def _start_later(self, do: actions.StartLater) -> None:
        self._timers[do.core] = self._loop.later(do.seconds, lambda: self.handle(events.StartDue(do.core)))

    def _trace(self, do: actions.Trace) -> None:
        slot, sequence, _ = do.task

        begin = time.monotonic()

        def check_again() -> None:
            child = self.processes.children.get(do.process)
            age_s = time.monotonic() - begin
            if child is None or (child.has_stack and child.why is not None) or age_s > MAX_TRACE_SECONDS:
                self.handle(events.Traced(do.process, still_hangs=self._reaper.is_running(slot, sequence)))
            else:
                self._loop.later(TRACE_SECONDS, check_again)

        def trace(child: CoreChild) -> None:
            child.begin_end(do.task)
            self.ask_why(slot, lambda why: setattr(child, "why", why))

        self._loop.later(TRACE_SECONDS, check_again)  # first, so that the op is ended even if no trace can be had
        self._with_child(do.process, trace)

    def _fail_unservable(self, served_by: frozenset[int]) -> None:
        try:
            self._reaper.fail_unservable(served_by)
        except ClaimLockError:
            self._loop.later(LOCK_SECONDS, self._retry_fail_unservable)

    def _retry_fail_unservable(self) -> None:
        self._fail_unservable(frozenset(core.index for core in self.cores if core.life.is_wanted))

    def _note_images(self, problem: str | None) -> None:
        if problem is not None:
            self.image_error = problem
        loading = {core.candidate.image for core in self.life.cores if core.candidate}
        self._snapshots.keep({core.image for core in self.life.cores} | loading)
        self.on_change()


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    import traceback

    return f"\n{''.join(traceback.format_exception(error))}"
