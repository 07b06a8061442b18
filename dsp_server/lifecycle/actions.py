"""Actions on cores, returned by decide.py and executed by lifecycle.py: data only.

If an action raises, that becomes the event Failed; the actions after it are still executed.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from dsp_server.lifecycle.snapshots import Image
from hbrt.status import Status


class Start(NamedTuple):
    """Start a process that loads an image."""

    process: int
    core: int
    image: Image
    load_s: float


class Go(NamedTuple):
    """Have a process serve as the core: it may claim tasks."""

    process: int


class End(NamedTuple):
    """End a process after its task."""

    process: int


class Kill(NamedTuple):
    """Kill a process; ``problem`` is the reason to log."""

    process: int
    problem: str = ""


class Trace(NamedTuple):
    """Ask a process with a hanging op for a traceback, and check on it again shortly afterwards."""

    process: int
    task: tuple[int, int, int]


class Forgive(NamedTuple):
    """Record that the hanging op has ended."""

    process: int


class Publish(NamedTuple):
    """Write a core's state to its record; ``activity`` only if no process of the core is writing it."""

    core: int
    activity: int | None = None


class MarkStalled(NamedTuple):
    """Mark a core as stalled: submitters do not ring it until its next heartbeat."""

    core: int


class RingOthers(NamedTuple):
    """Ring the doorbells of all cores but one."""

    core: int


class StartLater(NamedTuple):
    """Send the event StartDue after a pause."""

    core: int
    seconds: float


class CancelStart(NamedTuple):
    """Cancel a pause."""

    core: int


class FailUnservable(NamedTuple):
    """Fail the queued tasks that none of these cores may run."""

    served_by: frozenset[int]


class Answer(NamedTuple):
    """Answer a request."""

    request: int
    status: Status
    text: str


class ImagesChanged(NamedTuple):
    """Cores run another image, or could not load it because of ``problem``; None if the image was not tried."""

    problem: str | None


class Log(NamedTuple):
    """Write a line to the log."""

    sentence: str


class Report(NamedTuple):
    """Keep a finding, and log it."""

    kind: str
    sentence: str


Action: TypeAlias = (
    Start
    | Go
    | End
    | Kill
    | Trace
    | Forgive
    | Publish
    | MarkStalled
    | RingOthers
    | StartLater
    | CancelStart
    | FailUnservable
    | Answer
    | ImagesChanged
    | Log
    | Report
)
