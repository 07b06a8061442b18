"""The state of the cores: data only. decide.py has the rules, lifecycle.py carries them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dsp_server.lifecycle.restart_policy import History
from dsp_server.lifecycle.snapshots import Image

OFFLINE, RUNNING, CRASHED = "offline", "running", "crashed"  # the words of Linux remoteproc
STATES = (OFFLINE, RUNNING, CRASHED)
STOP_GRACE_SECONDS = 3.0  # for a running task to end when its core stops


class Process(NamedTuple):
    """One process of a core: its candidate until the process serves, then the core itself until the process ends."""

    id: int  # counts the processes of this board
    image: Image
    is_ready: bool = False  # it has loaded its image
    is_ending: bool = False  # it was asked to end
    is_lost: bool = False  # a core of its process domain has crashed; the process is about to be killed
    is_over_limit: bool = False  # its op has exceeded its time limit; the process is about to be killed
    stalled_s: float | None = None  # time without an op and without a heartbeat; None with a heartbeat


class Core(NamedTuple):
    """One core of the board."""

    image: Image  # its present image, and the one after a crash
    state: str = OFFLINE
    is_wanted: bool = False  # whether it should run, even while its processes fail
    process: Process | None = None  # the serving process, exactly while the state is RUNNING
    candidate: Process | None = None  # the next process: it loads its image, or waits for the end of `process`
    is_due: bool = False  # whether the next process starts after a pause
    stop: int | None = None  # the request that waits until the core is offline
    epoch: int = 0  # counts its serving processes
    crashes: int = 0
    last_crash: str = ""
    history: History = History()


class ImageRollout(NamedTuple):
    """A requested start or restart: all new processes serve in the end, or none."""

    request: int
    cores: tuple[int, ...]
    is_committed: bool = False  # all candidates are ready; the old processes are ending
    failure: str = ""  # error of a candidate that ended after the commit


class Life(NamedTuple):
    """All cores of a board."""

    cores: tuple[Core, ...]
    load_s: float  # load time limit when a core restarts by itself
    stall_limit_s: float  # a core without an op and a heartbeat is killed after this; 0 for never
    rollout: ImageRollout | None = None
    is_recovering: bool = True  # remoteproc's "recovery": whether a crashed core restarts by itself
    is_closing: bool = False
    next_process: int = 1
    domains: tuple[tuple[int, ...], ...] = ()  # cores that crash and start again as one


def new_board(
    images: Iterable[Image], load_s: float, stall_limit_s: float, domains: tuple[tuple[int, ...], ...] = ()
) -> Life:
    """A board whose cores are all offline."""
    return Life(tuple(Core(image) for image in images), load_s, stall_limit_s, domains=domains)
