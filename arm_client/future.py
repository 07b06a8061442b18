"""A task as a ``concurrent.futures.Future``: result, callbacks, as_completed, asyncio.wrap_future."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from arm_client.cabi.call_site import is_librarys
from arm_client.errors import CallerError, HbrtError, error_for
from hbrt.borders.traces import beyond
from hbrt.mailbox.handle import slot_of
from hbrt.mailbox.table import FIRST_END, Answer, State
from hbrt.profiles.work import NO_WORK, Cost, Work, task_cost
from hbrt.status import Status
from hbrt.types import HB_DSP_RPC_CMD_BUTT

if TYPE_CHECKING:
    from arm_client.session.session import Session

_SETTLING_S = 5.0  # the thread that took the result may have been interrupted


def without_library_frames(error: HbrtError) -> HbrtError:
    """Return a failure whose traceback starts at the op if it ran in this process; otherwise without one.

    The caller's line matters, not the path the failure took to it.
    """
    return error.with_traceback(beyond(error, lambda frame: is_librarys(frame.f_globals.get("__name__", ""))))


class TaskTimes(NamedTuple):
    """When a task reached each step: CLOCK_MONOTONIC nanoseconds, 0 for steps not reached."""

    submitted_ns: int
    claimed_ns: int
    started_ns: int
    ended_ns: int


class Task(concurrent.futures.Future[Any]):
    """One submitted task. ``result()`` returns the output passed to ``submit``.

    The thread that requests the result waits for the task itself; only callbacks, as_completed and wrap_future need a
    thread of the runtime. Its slot is released when the result is taken.
    """

    def __init__(self, session: Session, handle: int, cmd: int, output: Any, keep: object, submit_ns: int) -> None:
        self._is_watched = self._is_taken = False
        self._listeners: list[Any] = []
        super().__init__()
        self._session = session
        self._handle = handle
        session.futures[slot_of(handle)] = handle
        self._submit_ns = submit_ns
        self._output = output
        self._keep = keep  # blocks of this task, kept alive until it ends
        self._record: Answer | None = None
        self._work, self._block_bytes = NO_WORK, 0
        self.cmd = cmd

    # concurrent.futures.wait and as_completed put their waiters here, which must then be notified.
    @property
    def _waiters(self) -> list[Any]:
        if not self._is_watched and hasattr(self, "_session"):
            self._watch()
        return self._listeners

    @_waiters.setter
    def _waiters(self, waiters: list[Any]) -> None:
        self._listeners = waiters

    def __del__(self) -> None:
        # A task that nobody queried: its slot and blocks are freed later, after it has ended.
        if hasattr(self, "_keep") and not super().done():  # a partly constructed task holds nothing yet
            self._session.tasks.release_later(self._handle, (self._keep, self._output))

    @property
    def core(self) -> int:
        """Core that ran it; -1 before that, and if none did."""
        answer = self._answer()
        return answer.core if answer.claim_ns else -1

    @property
    def times(self) -> TaskTimes:
        """Submission, claim by a core, start and end of the op; measured on this machine."""
        answer = self._answer()
        return TaskTimes(self._submit_ns, answer.claim_ns, answer.start_ns, answer.done_ns)

    @property
    def latency_ns(self) -> int:
        """Host nanoseconds from submission to end; 0 before the end."""
        return max(0, self._answer().done_ns - self._submit_ns) if self.done() else 0

    @property
    def duration_ns(self) -> int:
        """Host nanoseconds in the op; 0 before the end."""
        answer = self._answer()
        return max(0, answer.done_ns - answer.start_ns) if answer.start_ns else 0

    @property
    def cycles(self) -> int:
        """Modeled cycles that the op charged (not host time); ``cost`` also estimates ops that charge none."""
        return self._answer().cycles

    @property
    def work(self) -> Work:
        """Cycles that the op charged, by purpose; empty before the end."""
        self._answer()
        return self._work

    @property
    def cost(self) -> Cost:
        """Modeled cycles of the op, by purpose; estimated if it charges none, zeros before the end."""
        answer, work = self._answer(), self._work
        profile = self._session.profile
        is_done = answer.done_ns > 0 and not answer.result and self.cmd != HB_DSP_RPC_CMD_BUTT
        return task_cost(answer.cycles, work, self._block_bytes, profile, is_done=is_done)

    def result(self, timeout: float | None = None) -> Any:
        """Return the output passed to submit, once the op has returned 0.

        Args:
            timeout: Seconds; None waits forever.

        Raises:
            TimeoutError: not finished yet; the task keeps running. CancelledError: it was canceled. HbrtError: it
                failed.
        """
        self._wait_here(timeout)
        try:
            return super().result(0 if self._state_is_final() else timeout)
        except HbrtError as error:
            raise without_library_frames(error) from None
        finally:
            del self  # it holds the exception, which holds this frame: break the cycle, which would keep device memory

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the failure, or None; otherwise like ``result``."""
        self._wait_here(timeout)
        return super().exception(0 if self._state_is_final() else timeout)

    def done(self) -> bool:
        """Whether the task has ended."""
        self._look()
        return super().done()

    def running(self) -> bool:
        """Whether a core is running it now."""
        return self._session.tasks.state(self._handle) is State.RUNNING

    def cancel(self) -> bool:
        """Cancel it if no core has claimed it yet."""
        self._session.tasks.cancel(self._handle)
        self._look()
        if self._is_taken:  # perhaps by another thread, which has not finished
            with contextlib.suppress(concurrent.futures.CancelledError, TimeoutError):
                super().exception(_SETTLING_S)
        return self.cancelled()

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[Any]], object]) -> None:
        """Call ``fn(task)`` in a thread of the runtime when the task ends, or at once if it has ended."""
        self._look()
        super().add_done_callback(fn)
        self._watch()

    def _watch(self) -> None:
        if not self._is_watched and not super().done():
            self._is_watched = True
            self._session.notifier.add(self._handle, lambda _status: self._settle())

    def _state_is_final(self) -> bool:
        return super().done()

    def _wait_here(self, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            self._look()
            if not super().done():
                raise TimeoutError(f"Command {self.cmd:#x} has not finished yet; the task keeps running.")
        if super().done():
            return
        tasks = self._session.tasks
        timeout_ms = 0 if timeout is None else timeout * 1000
        status = tasks.wait(self._handle, timeout_ms)
        if status == Status.HB_DSP_TIMEOUT and (state := tasks.state(self._handle)) is not None and state < FIRST_END:
            why = tasks.mailbox.claim_lock.why_held()
            raise TimeoutError(
                f"Command {self.cmd:#x} did not finish within {timeout} s; the task keeps running. {why}".rstrip()
            )
        self._settle()

    def _look(self) -> None:
        state = self._session.tasks.state(self._handle)
        if state is not None and (state >= FIRST_END or self._session.link.fault):
            self._settle()

    def _settle(self) -> None:
        """Take the result out of the slot, once, and free the slot; a second caller waits for the first."""
        with self._condition:
            if self._is_taken:
                return
            self._is_taken = True
        tasks, output = self._session.tasks, self._output
        status = tasks.wait(self._handle, 1)
        text = self._session.why(status) if status else ""
        cause = tasks.carrier.cause(self._handle) if status else None
        if tasks.state(self._handle) is not None:
            self._record, self._work = tasks.answer(self._handle), tasks.work(self._handle)
            self._block_bytes = tasks.mailbox.block_bytes(slot_of(self._handle))
        if self._is_watched:
            self._session.notifier.discard(self._handle)
        tasks.release(self._handle)
        self._keep = self._output = None
        if status == Status.HB_DSP_TASK_CANCELLED:
            super().cancel()
            self.set_running_or_notify_cancel()
        elif status:
            error = error_for(status, text, self.cmd, from_op=True)
            self.set_exception(error if cause is None else error.with_traceback(cause.__traceback__))
        else:
            self.set_result(output)

    def _answer(self) -> Answer:
        if self._record is not None:
            return self._record
        state = self._session.tasks.state(self._handle)
        if state is None or state < State.RUNNING:
            return Answer(-1, 0, 0, 0, 0, 0, 0, 0)
        answer = self._session.tasks.answer(self._handle)
        # Until it ends, its slot only shows who claimed it; the rest is from an earlier task.
        return answer if state >= FIRST_END else answer._replace(start_ns=0, done_ns=0, cycles=0)


class PendingCall:
    """One submitted task whose caller only waits for success: a future would double the cost of a call."""

    __slots__ = ("_cmd", "_handle", "_keep", "_output", "_session", "_submit_ns")

    def __init__(self, session: Session, handle: int, cmd: int, output: Any, keep: object, submit_ns: int) -> None:
        self._session = session
        self._cmd = cmd
        self._output = output
        self._keep = keep
        self._submit_ns = submit_ns
        self._handle = handle
        session.futures[slot_of(handle)] = handle

    def __del__(self) -> None:
        # Nobody waited, or the wait was interrupted: as with a Task.
        if getattr(self, "_handle", 0):
            self._session.tasks.release_later(self._handle, (self._keep, self._output))

    def finish(self, timeout: float | None = None) -> None:
        """Wait until the task has succeeded; once. A TimeoutError abandons the task.

        Raises:
            TimeoutError: not finished in this many seconds. HbrtError: it failed. CallerError: already waited for.
        """
        if not self._handle:
            raise CallerError(
                Status.HB_DSP_TASK_RELEASED,
                f"The task of command {self._cmd:#x} was already waited for: wait for a posted task only once.",
            )
        tasks = self._session.tasks
        if timeout is None and tasks.finish(self._handle) == 0:
            self._handle = 0
            return
        task = Task(self._session, self._handle, self._cmd, self._output, self._keep, self._submit_ns)
        self._handle, self._keep, self._output = 0, None, None
        try:
            task.result(timeout)
        except TimeoutError:
            task.cancel()
            raise
        finally:
            del task  # it holds the exception, which holds this frame: break the cycle, which would keep device memory

    def cancel(self) -> None:
        """Cancel it if no core has claimed it yet."""
        if self._handle:
            self._session.tasks.cancel(self._handle)
