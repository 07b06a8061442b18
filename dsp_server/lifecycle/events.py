"""Events of cores, for decide.py: data only."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from dsp_server.lifecycle import actions
from dsp_server.lifecycle.snapshots import Image


class RolloutAsked(NamedTuple):
    """A request: these cores shall run these images, in new processes."""

    request: int
    images: tuple[tuple[int, Image], ...]
    load_s: float


class StartAsked(NamedTuple):
    """Cores that have never served are needed: they start, each with its own image."""

    cores: tuple[int, ...]


class StopAsked(NamedTuple):
    """A request: a core shall be offline after its task."""

    request: int
    core: int


class SupersedeAsked(NamedTuple):
    """A newer rollout follows: abort one that is still loading."""


class RecoverySet(NamedTuple):
    """Automatic restart of crashed cores is enabled or disabled."""

    is_enabled: bool


class CloseAsked(NamedTuple):
    """The board ends."""


class Ready(NamedTuple):
    """A process has loaded its image."""

    process: int
    pid: int


class Failed(NamedTuple):
    """An action could not be carried out; the actions after it were."""

    action: actions.Action
    why: str


class StartDue(NamedTuple):
    """The pause before a core's next process is over."""

    core: int


class Ended(NamedTuple):
    """A process has ended, and its running tasks have failed."""

    process: int
    pid: int
    how: str  # follows its name in a sentence
    problem: str = ""  # the reason of its end, where known
    is_late: bool = False  # its image took too long to load
    lost: tuple[str, ...] = ()  # a sentence on each of its failed tasks
    trace: str = ""  # its stack at the end
    served_s: float = 0.0
    tasks_ended: int = 0


class Beats(NamedTuple):
    """A check found a core's heartbeat, or an op that it runs."""

    core: int


class Stalls(NamedTuple):
    """A check found no heartbeat and no op of a core, or a core that is stopped while it runs a model."""

    core: int
    pid: int
    how: str  # "stopped" or "stalled"
    step_s: float  # since the last check
    is_in_model: bool = False


class Hangs(NamedTuple):
    """A core's op has exceeded its time limit."""

    core: int
    task: tuple[int, int, int]  # slot, sequence, limit in ns
    sentence: str


class Traced(NamedTuple):
    """The time for the traceback of a hanging op is over."""

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
