"""Asynchronous invocations: jobs that are polled, or that call back."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arm_client.cabi.arguments import short_repr
from fastrpc.arguments import place, returns_code
from fastrpc.calls import Arguments, number_of, raw_of
from fastrpc.invocations.messages import spans_of
from fastrpc.runtime import FastrpcRuntime, Made, Opened, runtime
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.behavior import fastrpc_async_callback
from fastrpc.wire.types import (
    FASTRPC_ASYNC_CALLBACK,
    FASTRPC_ASYNC_NO_SYNC,
    FASTRPC_ASYNC_POLL,
    fastrpc_async_descriptor,
)
from hbrt.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

_WAIT_MS = 1000  # maximum per step of an endless wait: the board may disappear


@dataclass
class Job:
    """An asynchronous invocation; ``code`` is None until it has ended."""

    task: int
    opened: Opened
    made: Made
    code: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self, here: FastrpcRuntime) -> int:
        """Its code, once its task has ended."""
        with self.lock:
            if self.code is None:
                self.code = here.ended(self.task, self.opened, self.made)
            return self.code


class Jobs:
    """The jobs of an attachment."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._last = 0
        self._lock = threading.Lock()

    def add(self, job: Job) -> int:
        """Number a job."""
        with self._lock:
            self._last += 1
            self._jobs[self._last] = job
            return self._last

    def get(self, number: int) -> Job:
        """A job.

        Raises:
            AeeError: AEE_ENOSUCHJOB.
        """
        job = self._jobs.get(number)
        if job is None:
            raise AeeError(Aee.AEE_ENOSUCHJOB, f"Unknown job {number}: released, or never queued.")
        return job

    def remove(self, number: int) -> None:
        """Forget a job."""
        self._jobs.pop(number, None)


def _jobs(here: FastrpcRuntime) -> Jobs:
    jobs = here.session.companions.setdefault(Jobs, Jobs())
    assert isinstance(jobs, Jobs)  # noqa: S101 - its key
    return jobs


def remote_handle_invoke_async(handle: Any, desc: fastrpc_async_descriptor, scalars: int, pra: Arguments) -> int:
    """Like remote_handle64_invoke_async."""
    return remote_handle64_invoke_async(handle, desc, scalars, pra)


@returns_code
def remote_handle64_invoke_async(handle: Any, desc: fastrpc_async_descriptor, scalars: int, pra: Arguments) -> None:
    """Queue a method; its outputs must be in registered memory.

    Args:
        handle: From remote_handle64_open.
        desc: In: how its completion is reported: FASTRPC_ASYNC_POLL, FASTRPC_ASYNC_CALLBACK with ``fn(job, context,
            result)``, or
            FASTRPC_ASYNC_NO_SYNC: not at all. Out: ``jobid``.
        scalars: The scalar word.
        pra: As for remote_handle64_invoke.

    Returns:
        0; as from remote_handle64_invoke, if rejected immediately.
    """
    if not issubclass(type(desc), fastrpc_async_descriptor):
        raise AeeError(Aee.AEE_EBADPARM, f"desc is {short_repr(desc)}; pass a fastrpc_async_descriptor.")
    if desc.type not in {FASTRPC_ASYNC_NO_SYNC, FASTRPC_ASYNC_CALLBACK, FASTRPC_ASYNC_POLL}:
        raise AeeError(
            Aee.AEE_EBADPARM, f"Unknown type {desc.type}: must be 0 for no completion, 1 for a callback, or 2 to poll."
        )
    if desc.type == FASTRPC_ASYNC_CALLBACK and not desc.fn:
        raise AeeError(Aee.AEE_EBADPARM, "The callback is NULL; set fn, or poll.")
    number = number_of(handle)
    here = runtime()
    jobs = _jobs(here)
    job = Job(*here.post(number, scalars, spans_of(scalars, raw_of(pra))))
    desc.jobid = mine = jobs.add(job)
    if desc.type == FASTRPC_ASYNC_POLL:
        return
    call: Callable[[int], object] = lambda _: None  # noqa: E731 - one of two
    if desc.type == FASTRPC_ASYNC_CALLBACK:
        kept, context = desc.fn, desc.context
        # A separate function: the one in the field is in the descriptor, which C may reuse.
        told = fastrpc_async_callback(ctypes.cast(kept, ctypes.c_void_p).value)
        call = lambda code: (told(mine, context, ctypes.c_int32(code).value), kept)  # noqa: E731 - as above
    is_kept = desc.type == FASTRPC_ASYNC_CALLBACK

    def ended(_: int) -> None:
        code = job.end(here)
        if not is_kept:
            jobs.remove(mine)
        call(code)

    here.session.notifier.add(job.task, ended)


@returns_code
def fastrpc_async_get_status(jobid: int, timeout_us: int, result: Any) -> None:
    """Check whether a job has ended.

    Args:
        jobid: From the descriptor.
        timeout_us: Microseconds; 0 polls, a negative value waits forever.
        result: Out: a ctypes integer: the code that remote_handle64_invoke would have returned.

    Returns:
        0; AEE_EBUSY: it has not finished; AEE_ENOSUCHJOB.
    """
    here = runtime()
    job = _jobs(here).get(jobid)
    target = place("result", result)
    tasks = here.session.tasks
    if job.code is None and not tasks.has_ended(job.task):
        if not timeout_us:
            raise AeeError(Aee.AEE_EBUSY, f"Job {jobid} has not finished.")
        limit_ms = timeout_us / 1000 if timeout_us > 0 else _WAIT_MS
        status = tasks.wait(job.task, limit_ms)
        while status == Status.HB_DSP_TIMEOUT and timeout_us < 0:
            status = tasks.wait(job.task, limit_ms)
        if status == Status.HB_DSP_TIMEOUT:
            raise AeeError(Aee.AEE_EBUSY, f"Job {jobid} has not finished within {timeout_us} µs.")
    target.value = job.end(here)


@returns_code
def fastrpc_release_async_job(jobid: int) -> None:
    """Release a finished job; once per job.

    Returns:
        0; AEE_EBUSY: it has not finished; AEE_ENOSUCHJOB.
    """
    here = runtime()
    jobs = _jobs(here)
    job = jobs.get(jobid)
    if job.code is None:
        if not here.session.tasks.has_ended(job.task):
            raise AeeError(Aee.AEE_EBUSY, f"Job {jobid} has not finished; wait for it by fastrpc_async_get_status.")
        job.end(here)
    jobs.remove(jobid)
