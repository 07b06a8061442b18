"""What is to be done about a core, as decide.py says and lifecycle.py does it: data only."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from dsp_server.lifecycle.snapshots import Image
from hbrt.status import Status


class Start(NamedTuple):
    """Start a process that loads an image. When the system gives none, that is an event."""

    process: int
    core: int
    image: Image
    load_s: float


class Go(NamedTuple):
    """Let a process claim tasks: it is the core from now on."""

    process: int


class End(NamedTuple):
    """End a process after its task."""

    process: int


class Kill(NamedTuple):
    """End a process at once; ``problem`` says why, where its end would not."""

    process: int
    problem: str = ""


class Trace(NamedTuple):
    """Have a process whose op hangs write where it is, and look again a moment later."""

    process: int
    task: tuple[int, int, int]


class Forgive(NamedTuple):
    """The op that hung has ended after all."""

    process: int


class Publish(NamedTuple):
    """Write a core's state into its record; ``activity`` only while no process of the core writes it."""

    core: int
    activity: int | None = None


class MarkStalled(NamedTuple):
    """Have nobody ring a core until it beats again."""

    core: int


class RingOthers(NamedTuple):
    """Wake every core but one, to look what there is."""

    core: int


class StartLater(NamedTuple):
    """Tell when a pause is over."""

    core: int
    seconds: float


class StartNever(NamedTuple):
    """Forget a pause."""

    core: int


class LoseUnservable(NamedTuple):
    """End the queued tasks that none of these cores may run."""

    served_by: frozenset[int]


class Answer(NamedTuple):
    """Tell whoever made a request what became of it."""

    request: int
    status: Status
    text: str


class ImagesChanged(NamedTuple):
    """Cores run another image, or could not: ``problem`` says why; None when the image was not tried."""

    problem: str | None


class Say(NamedTuple):
    """Write a line to the log."""

    sentence: str


class Find(NamedTuple):
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
    | StartNever
    | LoseUnservable
    | Answer
    | ImagesChanged
    | Say
    | Find
)
