"""Model tasks: creation, queueing, running, waiting, release. Every misuse has its own status and message."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Protocol

from arm_client.cabi.call_site import call_site
from arm_client.dnn.cores.bpu import ALL_CORES, Bpu
from arm_client.dnn.cores.one_shot import OneShot
from arm_client.dnn.errors import ModelError, one_line
from arm_client.dnn.handles import HandleKind, Handles
from hbrt.borders.interrupts import let_out
from hbrt.mailbox.schedule import task_key
from hbrt.models.run.executor import Begun
from hbrt.models.run.stop import Stop
from hbrt.status import Status

if TYPE_CHECKING:
    from arm_client.dnn.tensors.tensor_memory import Ranges
    from hbrt.dnn_types import hbDNNTaskHandle_t

MAX_TASKS = 32
MAX_CHAINED = 255
_NO_TIME_MS = 0.001
_ENDING_MS = 10_000  # for a run whose process ends
SHORT_NS = 2_000_000  # for a run that a waiting thread does inline, since it handles no signals meanwhile
_WAKING_S = 1.0  # for a thread on a busy machine
Callback = Callable[[int], None]


class _Told(NamedTuple):
    """A callback that is due, in call order."""

    ended_ns: int
    number: int
    callback: Callback
    status: int


class Steady(Protocol):
    """How a model runs."""

    @property
    def is_steady(self) -> bool:
        """Whether each of its runs takes about as long as the last one."""

    @property
    def runs_elsewhere(self) -> bool:
        """Whether the board's cores run any of it, ordered among the tasks of all programs."""


class TaskModel(Protocol):
    """The parts of a model that a task uses."""

    name: str
    is_retired: bool
    last_run_ns: int

    @property
    def plan(self) -> Steady:
        """How it is run."""


class Job(Protocol):
    """One piece of a task's work."""

    def __call__(self, stop: Stop, /) -> None:
        """Do it, until ``stop`` is set."""

    def ranges(self) -> Ranges:
        """The memory it reads and writes: (physical address, bytes)."""


class Inference(Job, Protocol):
    """The work of a model."""

    def begin(self, stop: Stop, begun: Begun) -> None:
        """Pass it to the board's cores, which start at once; calling the job then finishes it."""


class State(IntEnum):
    """States of a task."""

    OPEN = 0  # more inferences will be added
    READY = 1
    RUNNING = 2
    DONE = 3


class Task:
    """One task: a chain of inferences that run one after the other, on one core."""

    begun: Begun | None = None  # of its one inference, when the board's cores have it
    callback: Callback | None = None
    core = -1
    core_mask = ALL_CORES
    count = 0
    ended_ns = 0  # CLOCK_MONOTONIC; on the board, where its cores ran it
    handle = 0
    is_released = False
    is_resize = False
    is_short = False
    is_submitted = False
    order = (0, 0, 0)
    runner = 0  # the thread that runs it
    runs_elsewhere = False
    state = State.OPEN
    status = 0
    taker = 0  # the thread that ends what the board's cores have begun
    text = ""

    def __init__(self, tasks: Tasks, where: str) -> None:
        self._tasks = tasks
        self.where = where
        self.jobs: list[Job] = []
        self.kept: list[tuple[int, int, Callable[[], None]]] = []  # releases of memory freed meanwhile
        self.models: list[TaskModel] = []
        self.stop = Stop()
        self.end = OneShot()

    def run(self, core: int) -> None:
        """Run all inferences; the first that fails ends the task. An interrupt of an inline run is raised."""
        if self.begun is not None and not self._tasks.take(self):
            return
        begin = time.monotonic_ns()
        model = self.models[0] if len(self.models) == 1 else None
        self.core = core
        self.runner = threading.get_ident()
        self.state = State.RUNNING
        status, text = 0, ""
        if self.callback is not None and self.begun is not None and self.begun.wait(0):
            self.ended_ns = self.begun.ended_ns()  # which the end of the job clears
        try:
            for job in self.jobs:
                if self.stop.is_set:
                    break
                job(self.stop)
        except ModelError as error:
            status, text = error.status, str(error)
        except BaseException as error:
            let_out(error)
            if not isinstance(error, Exception) and not self._tasks.bpu.is_own_thread():
                raise
            status, text = Status.HB_DNN_RUN_TASK_FAILED, _raised(error)  # a core survives whatever a layer raises
        if model is not None and self.begun is None:
            model.last_run_ns = time.monotonic_ns() - begin
        self._tasks.end(self, status, text)

    def interrupted(self, error: BaseException) -> None:
        """End it unless it has ended."""
        self._tasks.end(self, Status.HB_DNN_RUN_TASK_FAILED, _raised(error))


class Tasks:
    """All tasks of this process."""

    def __init__(self) -> None:
        self.bpu = Bpu()
        self._handles: Handles[Task] = Handles(HandleKind.TASK)
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._unended: set[Task] = set()
        self._callbacks: SimpleQueue[_Told | None] = SimpleQueue()
        self._caller: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._handles)

    def add(
        self,
        out: hbDNNTaskHandle_t,
        job: Inference,
        model: TaskModel,
        *,
        count: int = 1,
        is_last: bool = True,
        core_mask: int = 0,
        priority: int = 0,
        custom_id: int = 0,
        is_awaited: bool = False,
    ) -> None:
        """Add an inference to a new task, or to one that expects more; submits the task with the last one.

        Args:
            out: Null for a new task: its handle is written here as soon as it exists, so that an interrupted program
                can release it. Otherwise a task whose inferences so far were all added with ``more``.
            job: Runs the inference; receives the task's Stop.
            model: Counted as in use until the task has ended.
            count: The inference's count in a chain: one, or one per ROI.
            is_last: Submit now; otherwise the task waits for more.
            core_mask: Cores that may run it, 0 for any. As for priority and custom_id, the last call's value applies.
            priority: 0..255, larger first.
            custom_id: Smaller first.
            is_awaited: The caller will next wait for it without a time limit, or release it.

        Raises:
            ModelError: API_USE_ERROR: the handle is not null and expects no more; TASK_NUM_EXCEED_LIMIT: 32 are alive;
                TASK_BATCH_SIZE_EXCEED_LIMIT: a chain of more than 255; INVALID_DNN_HANDLE: the model was retired.
        """
        handle = out.value
        with self._lock:
            if model.is_retired:
                raise ModelError(
                    Status.HB_DNN_INVALID_DNN_HANDLE, f"The model {model.name!r} was released as this call began."
                )
            task = self._awaiting(handle) if handle else self._new()
            _check_length(task.count + count)
            if not handle:
                out.value = task.handle = self._handles.add(task)
                self._unended.add(task)
            task.jobs.append(job)
            task.models.append(model)
            task.count += count
            if not is_last:
                return
            task.core_mask = core_mask or ALL_CORES
            task.order = task_key(priority, custom_id, next(self._numbers))
            is_steady = len(task.models) == 1 and model.plan.is_steady
            task.is_short = is_steady and 0 < model.last_run_ns < SHORT_NS
            task.runs_elsewhere = True
            for one in task.models:  # no generator, in which an interrupt would be lost
                if not one.plan.runs_elsewhere:
                    task.runs_elsewhere = False
            task.state = State.READY
        if is_steady and task.runs_elsewhere:
            task.begun = begun = Begun()
            job.begin(task.stop, begun)
            if begun.bound is not None:  # the thread that waits for it ends it, or that releases it
                task.is_submitted = True
                return
            task.begun = None
        self.bpu.submit(task, is_awaited=is_awaited and task.is_short)

    def add_resize(self, out: hbDNNTaskHandle_t, job: Job, *, core_mask: int, priority: int) -> None:
        """Submit a task that resizes a picture; it has no model and is counted separately.

        Args:
            out: Its handle is written here. Any value there is overwritten, unless it is a live task's handle.
            job: Resizes the picture; receives the task's Stop.
            core_mask: As for ``add``.
            priority: As for ``add``.

        Raises:
            ModelError: API_USE_ERROR: the handle belongs to a live task; TASK_NUM_EXCEED_LIMIT: 32 are alive.
        """
        with self._lock:
            if self._handles.find(out.value) is not None:
                raise ModelError(
                    Status.HB_DNN_API_USE_ERROR,
                    f"*task is {out.value:#x}, a task that was not released; release it with hbDNNReleaseTask first.",
                )
            task = self._new(is_resize=True)
            out.value = task.handle = self._handles.add(task)
            self._unended.add(task)
            task.jobs.append(job)
            task.core_mask = core_mask or ALL_CORES
            task.order = task_key(priority, 0, next(self._numbers))
            task.state = State.READY
        self.bpu.submit(task)

    def wait(self, handle: int | None, timeout_ms: int) -> tuple[int, str]:
        """Wait for a task, forever if <= 0; returns its status and message.

        Raises:
            ModelError: INVALID_TASK_HANDLE; API_USE_ERROR: it is still waiting for inferences, or would wait for
                itself; TIMEOUT.
        """
        task = self._handles.get(handle)
        if not task.is_submitted and task.state != State.DONE:
            raise ModelError(
                Status.HB_DNN_API_USE_ERROR,
                f"The task {task.handle:#x} still expects inferences: it was created with more = 1 at {task.where}. "
                "Add the last one with more = 0 first.",
            )
        if task.state != State.DONE:
            self._check_that_it_can_end(task)
        begun = task.begun
        is_over = begun is None or begun.wait(timeout_ms)
        if begun is not None and is_over:
            self._finish(task)
        elif begun is None and timeout_ms <= 0 and task.is_short:
            self.bpu.run_inline(task)
        if not is_over or not task.end.wait(timeout_ms / 1000 if timeout_ms > 0 else -1):
            raise ModelError(
                Status.HB_DNN_TIMEOUT,
                f"The task {task.handle:#x} did not finish within {timeout_ms} ms and keeps running: release it.",
            )
        return task.status, task.text

    def release(self, handle: int | None) -> None:
        """Release a task. A queued task is canceled; a running one ends at the next node, which this call waits for.

        After a release, nothing writes to the task's tensors.

        Raises:
            ModelError: INVALID_TASK_HANDLE.
        """
        task = self._handles.get(handle)
        try:
            self._release(task)
        except ModelError:  # another thread released it
            raise
        except BaseException:  # nobody can name the task anymore
            self._discard(task)
            raise

    def _release(self, task: Task) -> None:
        if self._handles.remove(task.handle) is None:
            self._handles.get(task.handle)  # another thread released it: report that
        self._end_over(task)
        task.is_released = True
        if task.end.is_set:
            return
        if not task.is_submitted or (self.bpu.cancel(task) if task.begun is None else self.take(task)):
            self.end(task, Status.HB_DNN_RUN_TASK_FAILED, "")
        else:
            task.stop.set()
            if task.runner != threading.get_ident():
                task.end.wait(-1)

    def _discard(self, task: Task) -> None:
        """End a task whose release was interrupted: here, or in the thread that has it."""
        self._handles.remove(task.handle)
        task.is_released = True
        task.stop.set()
        if task.begun is not None and task.is_submitted:
            has_thread = task.taker not in {0, threading.get_ident()}
        else:
            has_thread = task.is_submitted and self.bpu.ring(task)
        if not has_thread:
            self.end(task, Status.HB_DNN_RUN_TASK_FAILED, "")

    def set_callback(self, handle: int | None, callback: Callback) -> None:
        """Call ``callback(status)`` in a thread of the runtime when the task has ended; only the last one is called.

        Raises:
            ModelError: INVALID_TASK_HANDLE.
        """
        task = self._handles.get(handle)
        with self._lock:
            task.callback = callback
            if self._caller is None:
                self._caller = threading.Thread(target=self._call_back, name="hbrt-dnn-callbacks", daemon=True)
                self._caller.start()
            if task.end.is_set:
                self._tell(task)
        if task.begun is not None and not task.end.is_set:
            self.bpu.submit(task)

    def check(self, handle: int | None) -> None:
        """Check whether a handle is live.

        Raises:
            ModelError: INVALID_TASK_HANDLE.
        """
        self._handles.get(handle)

    def live_handles(self) -> list[int]:
        """Return the handles of all unreleased tasks, oldest first."""
        return [task.handle for task in self._handles.values()]

    def retire(self, models: Sequence[TaskModel]) -> None:
        """Prevent any further use of these models by tasks.

        Raises:
            ModelError: MODEL_IS_RUNNING: an unfinished task uses one of them; nothing has changed.
        """
        for task in list(self._unended):
            self._end_over(task)
        with self._lock:
            for model in models:
                if any(model in task.models for task in self._unended):
                    raise ModelError(
                        Status.HB_DNN_MODEL_IS_RUNNING,
                        f"The model {model.name!r} is in use by an unfinished task; wait for it or release it.",
                    )
            for model in models:
                model.is_retired = True

    @property
    def is_locked(self) -> bool:
        """Whether a thread is in the middle of a change: a finalizer that runs there would deadlock."""
        return self._lock.locked()

    def user_of(self, phy_addr: int, size_bytes: int) -> tuple[str, str] | None:
        """Return the unfinished task that uses any of this memory, and where it was created; or None."""
        # Without the lock: a signal handler that frees memory may interrupt it. ``keep`` checks again, with the lock.
        task = self._using(phy_addr, size_bytes)
        if task is None:
            return None
        return " and ".join(f"a run of model {one.name!r}" for one in task.models) or "a resize task", task.where

    def keep(self, phy_addr: int, size_bytes: int, release: Callable[[], None]) -> bool:
        """Call ``release`` when the task that uses this memory ends; returns False if no task uses it anymore."""
        with self._lock:
            task = self._using(phy_addr, size_bytes)
            if task is None:
                return False
            task.kept.append((phy_addr, size_bytes, release))
            return True

    def end(self, task: Task, status: int, text: str) -> None:
        """Notify all waiters of a task's end. Doing it again has no effect, or completes an interrupted first call."""
        if task.is_released:
            status = Status.HB_DNN_RUN_TASK_FAILED
            text = f"The task {task.handle:#x} was released before it ended."
        if task.begun is not None:
            task.begun.close()
        with self._lock:
            self._unended.discard(task)  # first: from here on, no memory is kept for it
        while task.kept:
            phy_addr, size_bytes, release = task.kept.pop()
            if not self.keep(phy_addr, size_bytes, release):  # another task may use it too
                release()
        with self._lock:
            if not task.end.is_set:
                task.jobs.clear()
                task.models.clear()
                task.status, task.text = status, text
                task.ended_ns = task.ended_ns or time.monotonic_ns()
                task.state = State.DONE
                task.end.set()
            self._tell(task)

    def close(self) -> None:
        """End everything: stop running tasks, fail waiting ones."""

        def give_up() -> None:
            for task in self._handles.values():
                task.is_released = True
                task.stop.set()

        self.bpu.close(give_up)
        for task in self._handles.values():
            if task.begun is not None and not task.end.is_set and task.begun.wait(_ENDING_MS):
                task.begun.close()
        if self._caller is not None and self._caller is not threading.current_thread():
            self._callbacks.put(None)
            self._caller.join()

    def detach_in_child(self) -> None:
        """In a forked child: tasks and threads are the parent's."""
        handles = self._handles
        self.__init__()  # type: ignore[misc]  # all but the serials start over
        self._handles = handles
        handles.detach_in_child()

    def take(self, task: Task) -> bool:
        """Whether the calling thread is the one that ends a task which the board's cores have begun."""
        with self._lock:
            if task.taker or not task.is_submitted:
                return False
            task.taker = threading.get_ident()
        return True

    def _finish(self, task: Task) -> None:
        """End a task that the board's cores have run, unless another thread does."""
        try:
            task.run(-1)
        except BaseException as error:
            if task.taker == threading.get_ident():
                task.interrupted(error)
            raise

    def _end_over(self, task: Task) -> None:
        """Finish a task that ended on the board's cores without a waiter."""
        begun = task.begun
        if begun is not None and not task.end.is_set and begun.wait(_NO_TIME_MS):
            self._finish(task)

    def _new(self, *, is_resize: bool = False) -> Task:
        if len(self._handles) >= MAX_TASKS:
            alike = [task for task in self._handles.values() if task.is_resize == is_resize]
            if len(alike) >= MAX_TASKS:
                places = Counter(task.where for task in alike).most_common(3)
                held = ", ".join(f"{count} by {place}" for place, count in places)
                raise ModelError(
                    Status.HB_DNN_TASK_NUM_EXCEED_LIMIT,
                    f"{MAX_TASKS} {'resize ' if is_resize else ''}tasks are alive, from: {held}. Release each with "
                    "hbDNNReleaseTask.",
                )
        task = Task(self, call_site())
        task.is_resize = is_resize
        return task

    def _check_that_it_can_end(self, task: Task) -> None:
        """Refuse a wait that would never end: a layer that waits for work on its own core."""
        core = self.bpu.current_core()
        if task.runner == threading.get_ident():
            raise ModelError(Status.HB_DNN_API_USE_ERROR, "A layer is waiting for the task that it is part of.")
        if core >= 0 and task.core_mask == 1 << core:
            raise ModelError(
                Status.HB_DNN_API_USE_ERROR,
                f"A layer on BPU core {core} is waiting for the task {task.handle:#x}, which only that core may run; "
                "set another bpuCoreId.",
            )

    def _using(self, phy_addr: int, size_bytes: int) -> Task | None:
        end = phy_addr + size_bytes
        for task in list(self._unended):  # a single C call, since other threads change it meanwhile
            for job in task.jobs:
                if any(start < end and phy_addr < start + size for start, size in job.ranges()):
                    return task
        return None

    def _awaiting(self, handle: int) -> Task:
        task = self._handles.find(handle)
        if task is None or task.state != State.OPEN:
            state = "no live task" if task is None else f"a task that is {task.state.name.lower()}"
            raise ModelError(
                Status.HB_DNN_API_USE_ERROR,
                f"*task is {handle:#x}, {state}; it must be null for a new task, or a task whose inferences so far "
                "were added with more = 1. Set it to null after hbDNNReleaseTask.",
            )
        return task

    def _tell(self, task: Task) -> None:
        callback, task.callback = task.callback, None
        if callback is not None:
            self._callbacks.put(_Told(task.ended_ns, next(self._numbers), callback, task.status))

    def _call_back(self) -> None:
        """Run callbacks in the order in which the tasks ended, since notified threads wake in any order."""
        due: list[_Told] = []
        is_closing = False
        while due or not is_closing:
            if not due:
                is_closing = not self._take(due, self._callbacks.get())
                continue
            self._await_ended_before(due[0].ended_ns)
            while not self._callbacks.empty():
                is_closing = not self._take(due, self._callbacks.get()) or is_closing
            told = heapq.heappop(due)
            try:
                told.callback(told.status)
            except BaseException:  # noqa: BLE001 - one bad callback must not silence the others
                traceback.print_exc()
            del told  # an idle thread must not keep a callback alive

    @staticmethod
    def _take(due: list[_Told], told: _Told | None) -> bool:
        if told is not None:
            heapq.heappush(due, told)
        return told is not None

    def _await_ended_before(self, ended_ns: int) -> None:
        """Wait until earlier finished tasks with a callback are in the queue; their threads are waking now."""
        for task in self._handles.values():
            begun = task.begun
            # In this order: the thread stores the time in the task before the end of the run clears it.
            if task.callback is not None and begun is not None and 0 < (begun.ended_ns() or task.ended_ns) < ended_ns:
                task.end.wait(_WAKING_S)
        with self._lock:  # such a task is in the queue once this lock is free again
            pass


def _check_length(count: int) -> None:
    if count > MAX_CHAINED:
        raise ModelError(
            Status.HB_DNN_TASK_BATCH_SIZE_EXCEED_LIMIT,
            f"The task would have {count} inferences; a chain has at most {MAX_CHAINED}. "
            "Set more to 0 on the last one.",
        )


def _raised(error: BaseException) -> str:
    trace = "".join(traceback.format_exception(error))
    return f"The inference raised {type(error).__name__}: {one_line(error)}\n{trace}"
