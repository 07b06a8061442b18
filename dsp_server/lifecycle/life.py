"""The cores' state: data only. decide.py has the rules, lifecycle.py carries them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dsp_server.lifecycle.restart_policy import History
from dsp_server.lifecycle.snapshots import Image

OFFLINE, RUNNING, CRASHED = "offline", "running", "crashed"  # remoteproc's words
STATES = (OFFLINE, RUNNING, CRASHED)
STOP_GRACE_SECONDS = 3.0  # time for a running task to end when its core stops


class Process(NamedTuple):
    """One process of a core: a candidate until it serves, then the core itself until it ends."""

    id: int  # counts the processes of this board
    image: Image
    is_ready: bool = False  # it has loaded its image
    is_ending: bool = False  # it has been asked to end
    is_lost: bool = False  # a core of its process domain has crashed; the process is about to be killed
    is_over_limit: bool = False  # its op has exceeded its time limit; the process is about to be killed
    stalled_s: float | None = None  # time without op and heartbeat; None if it has a heartbeat


class Core(NamedTuple):
    """One core of the board."""

    image: Image  # the current image, also used after a crash
    state: str = OFFLINE
    is_wanted: bool = False  # whether it should run, even while its processes fail
    process: Process | None = None  # the serving process; set only in state RUNNING
    candidate: Process | None = None  # the next process: loading its image, or waiting for `process` to end
    is_due: bool = False  # whether the next process starts after a pause
    stop: int | None = None  # id of the request that waits for the core to go offline
    epoch: int = 0  # counts the processes that have served
    crashes: int = 0
    last_crash: str = ""
    last_crash_s: float = 0.0  # since the epoch
    history: History = History()


class ImageRollout(NamedTuple):
    """A requested start or restart: in the end either all new processes serve, or none."""

    request: int
    cores: tuple[int, ...]
    is_committed: bool = False  # all candidates are ready; the old processes are ending
    failure: str = ""  # error of a candidate that ended after the commit


class Life(NamedTuple):
    """All cores of a board."""

    cores: tuple[Core, ...]
    load_s: float  # load time limit for automatic restarts
    stall_limit_s: float  # a core with neither op nor heartbeat is killed after this; 0 for never
    rollout: ImageRollout | None = None
    is_recovering: bool = True  # remoteproc's "recovery": whether crashed cores restart automatically
    is_closing: bool = False
    next_process: int = 1
    domains: tuple[tuple[int, ...], ...] = ()  # cores that crash and restart together


def new_board(
    images: Iterable[Image], load_s: float, stall_limit_s: float, domains: tuple[tuple[int, ...], ...] = ()
) -> Life:
    """Return a board with all cores offline."""
    return Life(tuple(Core(image) for image in images), load_s, stall_limit_s, domains=domains)
