"""What the supervisor knows of its cores' lives: data only. decide.py has the rules, lifecycle.py carries them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dsp_server.lifecycle.restart_policy import History
from dsp_server.lifecycle.snapshots import Image

OFFLINE, RUNNING, CRASHED = "offline", "running", "crashed"  # the words of Linux remoteproc
STATES = (OFFLINE, RUNNING, CRASHED)
STOP_GRACE_SECONDS = 3.0  # for a task that runs when its core is to end


class Process(NamedTuple):
    """One process of a core: its candidate until it takes over, then the core itself until it ends."""

    id: int  # of this board's processes, in the order in which they were started
    image: Image
    is_ready: bool = False  # it has loaded its image
    is_ending: bool = False  # it was asked to end
    is_over_limit: bool = False  # its op has outlived its time limit, and it is about to be killed
    stalled_s: float | None = None  # for how long it has run no op and not beaten; None when it beats


class Core(NamedTuple):
    """One core of the board."""

    image: Image  # what it runs, and runs again after a crash
    state: str = OFFLINE
    is_wanted: bool = False  # whether it should run, whatever happens to its processes
    process: Process | None = None  # the one that serves: there is one exactly while the state is RUNNING
    candidate: Process | None = None  # the one that is to take over: it loads its image, or waits for the other's end
    is_due: bool = False  # whether its next process starts after a pause
    stop: int | None = None  # the request that waits for it to be offline
    epoch: int = 0  # how often it came to run
    crashes: int = 0
    last_crash: str = ""
    history: History = History()


class Change(NamedTuple):
    """A start or restart that somebody asked for: all new processes take over, or none does."""

    request: int
    cores: tuple[int, ...]
    is_committed: bool = False  # every candidate was ready: the old processes are ending
    failure: str = ""  # of a candidate that ended after that


class Life(NamedTuple):
    """All cores of a board."""

    cores: tuple[Core, ...]
    load_s: float  # how long a process may load its image when a core starts by itself
    stall_limit_s: float  # after which a core that runs no op and does not beat is ended; 0 for never
    change: Change | None = None
    is_recovering: bool = True  # remoteproc's "recovery": whether a crashed core starts again by itself
    is_closing: bool = False
    next_process: int = 1


def new_board(images: Iterable[Image], load_s: float, stall_limit_s: float) -> Life:
    """A board whose cores are all offline."""
    return Life(tuple(Core(image) for image in images), load_s, stall_limit_s)
