"""Events of cores, for decide.py: data only."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from dsp_server.lifecycle import actions
from dsp_server.lifecycle.snapshots import Image


class RolloutAsked(NamedTuple):
    """A request to run these images on these cores, in new processes."""

    request: int
    images: tuple[tuple[int, Image], ...]
    load_s: float


class StartAsked(NamedTuple):
    """Cores that have never served are needed: start them, each with its own image."""

    cores: tuple[int, ...]


class StopAsked(NamedTuple):
    """A request to take a core offline after its task."""

    request: int
    core: int


class SupersedeAsked(NamedTuple):
    """A newer rollout follows: abort the one that is still loading."""


class RecoverySet(NamedTuple):
    """Automatic restart of crashed cores has been enabled or disabled."""

    is_enabled: bool


class CloseAsked(NamedTuple):
    """The board is ending."""


class Ready(NamedTuple):
    """A process has loaded its image."""

    process: int
    pid: int


class Failed(NamedTuple):
    """An action failed; the actions after it were still carried out."""

    action: actions.Action
    why: str


class StartDue(NamedTuple):
    """The pause before a core's next process has ended."""

    core: int


class Ended(NamedTuple):
    """A process has ended, and its running tasks have been failed."""

    process: int
    pid: int
    how: str  # completes a sentence that starts with its name
    problem: str = ""  # why it ended, if known
    is_late: bool = False  # its image took too long to load
    lost: tuple[str, ...] = ()  # one sentence per failed task
    trace: str = ""  # its stack when it ended
    served_s: float = 0.0
    tasks_ended: int = 0
    time_s: float = 0.0  # since the epoch


class Beats(NamedTuple):
    """A check found that a core has a heartbeat, or runs an op."""

    core: int


class Stalls(NamedTuple):
    """A check found a core with neither heartbeat nor op, or one that is stopped while running a model."""

    core: int
    pid: int
    how: str  # "stopped" or "stalled"
    step_s: float  # time since the last check
    is_in_model: bool = False


class Hangs(NamedTuple):
    """A core's op has exceeded its time limit."""

    core: int
    task: tuple[int, int, int]  # slot, sequence, limit in ns
    sentence: str


class Traced(NamedTuple):
    """The time allowed for a hanging op's traceback is over."""

    process: int
    still_hangs: bool


Event: TypeAlias = (
    RolloutAsked
    | StartAsked
    | StopAsked
    | SupersedeAsked
    | RecoverySet
    | CloseAsked
    | Ready
    | Failed
    | StartDue
    | Ended
    | Beats
    | Stalls
    | Hangs
    | Traced
)
