"""What can happen to a core, for decide.py: data only."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from dsp_server.lifecycle.snapshots import Image


class ChangeAsked(NamedTuple):
    """Somebody wants these cores to run these images, in new processes."""

    request: int
    images: tuple[tuple[int, Image], ...]
    load_s: float


class StopAsked(NamedTuple):
    """Somebody wants a core to be offline, after its task."""

    request: int
    core: int


class SupersedeAsked(NamedTuple):
    """A newer change is to come: one that is still loading is given up."""


class RecoverySet(NamedTuple):
    """Crashed cores start again by themselves from now on, or do not."""

    is_enabled: bool


class CloseAsked(NamedTuple):
    """The board ends."""


class Ready(NamedTuple):
    """A process has loaded its image."""

    process: int
    pid: int


class NotStarted(NamedTuple):
    """The system gave no process."""

    process: int
    why: str


class Due(NamedTuple):
    """The pause before a core's next process is over."""

    core: int


class Ended(NamedTuple):
    """A process has ended and was collected; the tasks that it ran are lost."""

    process: int
    pid: int
    how: str  # follows its name in a sentence
    problem: str = ""  # what it said, or what was found out, before its end
    is_late: bool = False  # its image took too long to load
    lost: tuple[str, ...] = ()  # a sentence on each task that it ran
    trace: str = ""  # where it was
    served_s: float = 0.0
    tasks_ended: int = 0


class Beats(NamedTuple):
    """A core's heart was looked at: it beats, or the core runs an op."""

    core: int


class Stalls(NamedTuple):
    """A core's heart was looked at: it runs no op and does not beat."""

    core: int
    pid: int
    how: str  # "stopped" or "stalled"
    step_s: float  # since the look before


class Hangs(NamedTuple):
    """A core's op has outlived its time limit."""

    core: int
    task: tuple[int, int, int]  # slot, sequence, limit in ns
    sentence: str


class Traced(NamedTuple):
    """A process whose op hangs has had its time to write where it is."""

    process: int
    still_hangs: bool


Event: TypeAlias = (
    ChangeAsked
    | StopAsked
    | SupersedeAsked
    | RecoverySet
    | CloseAsked
    | Ready
    | NotStarted
    | Due
    | Ended
    | Beats
    | Stalls
    | Hangs
    | Traced
)
