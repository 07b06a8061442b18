"""Core processes as the supervisor sees them: start, word to go, stop, death. States as in Linux remoteproc."""

from __future__ import annotations

import fcntl
import math
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from hbrt import wire
from hbrt.ddr import Ddr
from hbrt.layout import (
    CORE_ACTIVITY,
    CORE_BUSY_NS,
    CORE_CYCLES,
    CORE_EPOCH,
    CORE_PID,
    CORE_SLOT,
    CORE_STATE,
    CORE_TASKS,
    NO_SLOT,
)

OFFLINE, RUNNING, CRASHED = "offline", "running", "crashed"
STATES = (OFFLINE, RUNNING, CRASHED)
# What may follow what; anything else is a named error that changes nothing.
MOVES = {(OFFLINE, RUNNING), (RUNNING, OFFLINE), (RUNNING, CRASHED), (CRASHED, RUNNING), (CRASHED, OFFLINE)}

ACTIVITY_OFFLINE = 3
STOP_GRACE_SECONDS = 3.0
QUICK_DEATH_SECONDS = 1.0
MOST_QUICK_DEATHS = 5
_HIGH_FD = 100
OpRow: TypeAlias = tuple[int, str, str, int]


class CoreStateError(RuntimeError):
    """A core was asked for a move that its state does not allow; nothing was changed."""


@dataclass(slots=True, eq=False)
class CoreProcess:
    """One process of a core: a candidate until it is told to go, then the core, then an ending one."""

    index: int
    pid: int
    pidfd: int
    control: socket.socket
    snapshot: Path  # the image's text as it was when this process was asked for
    origin: Path  # the file that it was read from
    started_at: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    problem: str = ""
    load_seconds: float = math.inf  # how long its image may take to load
    is_late: bool = False  # it took longer
    ops: list[OpRow] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    kill_at: float = 0.0  # when a stop that is not heeded becomes a kill

    def send(self, **fields: Any) -> None:
        """Tell the process something; a dead one does not listen."""
        try:
            self.control.send(wire.pack(**fields))
        except OSError:
            pass

    def send_doorbell(self, client_id: int, doorbell: int) -> None:
        """Hand over a client's doorbell."""
        try:
            socket.send_fds(self.control, [wire.pack(event="client", client=client_id)], [doorbell])
        except OSError:
            pass

    def stop(self, now: float) -> None:
        """Ask the process to end after its task; ``kill_at`` says how long it has."""
        if not self.kill_at:
            self.kill_at = now + STOP_GRACE_SECONDS
            self.send(event="stop")
            self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send a signal to this process and to no other, whatever its pid is by now."""
        try:
            signal.pidfd_send_signal(self.pidfd, number)
        except ProcessLookupError:
            pass

    def reap(self) -> str:
        """Collect the dead process; says how it ended."""
        _, wait_status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.control.close()
        if os.WIFSIGNALED(wait_status):
            number = os.WTERMSIG(wait_status)
            return f"was ended by signal {number} ({signal.Signals(number).name})"
        return f"exited with code {os.WEXITSTATUS(wait_status)}"


class CoreSlot:
    """One core of the board: its state, the process that is it, and the one that will be."""

    def __init__(self, index: int, ddr: Ddr) -> None:
        self.index = index
        self.state = OFFLINE
        self.process: CoreProcess | None = None
        self.candidate: CoreProcess | None = None
        self.epoch = 0
        self.crashes = 0
        self.quick_deaths = 0
        self.restart_at = 0.0
        self.last_crash = ""
        self._ddr = ddr
        self._record = ddr.layout.core(index)
        self._publish()

    def move(self, to: str) -> None:
        """Change state and publish it.

        Raises:
            CoreStateError: the move is not one.
        """
        if (self.state, to) not in MOVES:
            raise CoreStateError(f"Core {self.index} is {self.state}; it cannot become {to}. Nothing was changed.")
        self.state = to
        self._publish()

    def promote(self) -> None:
        """Make the candidate the core's process and let it claim tasks."""
        assert self.candidate is not None
        self.process, self.candidate = self.candidate, None
        self.epoch += 1
        self.restart_at = 0.0
        if self.state != RUNNING:
            self.move(RUNNING)
        self._publish()
        self.process.send(event="go")

    def counters(self) -> dict[str, int]:
        """Counters that the core's processes keep in its record."""
        mm, record = self._ddr.map, self._record

        def u64(offset: int) -> int:
            return int.from_bytes(mm[record + offset : record + offset + 8], "little")

        return {"tasks": u64(CORE_TASKS), "busy_ns": u64(CORE_BUSY_NS), "cycles": u64(CORE_CYCLES)}

    def accept_work(self, *, accepts: bool) -> None:
        """Say to submitters whether tasks for this core may be queued while no process serves it."""
        self._ddr.map[self._record + CORE_ACTIVITY] = 0 if accepts else ACTIVITY_OFFLINE

    def _publish(self) -> None:
        mm, record = self._ddr.map, self._record
        mm[record + CORE_STATE] = STATES.index(self.state)
        pid = self.process.pid if self.process else 0
        mm[record + CORE_SLOT : record + CORE_SLOT + 4] = NO_SLOT.to_bytes(4, "little")
        mm[record + CORE_PID : record + CORE_PID + 4] = pid.to_bytes(4, "little")
        mm[record + CORE_EPOCH : record + CORE_EPOCH + 8] = self.epoch.to_bytes(8, "little")
        self.accept_work(accepts=self.state == RUNNING)


def spawn(
    index: int, core_count: int, ddr_fd: int, doorbells: list[int], snapshot: Path, origin: Path, log_fd: int
) -> CoreProcess:
    """Start a process for a core, in a fresh interpreter, with its descriptors in the places it expects."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Out of the way first: the places 3, 4, 5... may hold descriptors that are sources here.
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD) for fd in (theirs.fileno(), ddr_fd, *doorbells, log_fd)]
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    actions: list[tuple[int, int, int]] = [(os.POSIX_SPAWN_DUP2, null, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, sources[-1], standard) for standard in (1, 2)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, 3 + place) for place, fd in enumerate(sources[:-1])]
    root = str(Path(__file__).resolve().parent.parent)
    program = f"import sys; sys.path.append({root!r}); from dsp_server.core_process import main; main()"
    argv = [
        sys.executable,
        "-P",
        "-u",
        "-c",
        program,
        str(index),
        str(core_count),
        str(os.getpid()),
        str(snapshot),
        str(origin),
    ]
    try:
        pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions)
    finally:
        for fd in (*sources, null):
            os.close(fd)
        theirs.close()
    return CoreProcess(index, pid, os.pidfd_open(pid), ours, snapshot, origin)
