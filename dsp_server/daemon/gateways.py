"""The board's gateways (``hbrt relay --listen --detach``): children of the daemon, which restarts dead ones."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from dsp_server.lifecycle.restart_policy import Death, History, after
from dsp_server.process.event_loop import Loop, Timer
from dsp_server.process.journal import Journal
from dsp_server.process.launch import start_interpreter
from hbrt.board.paths import BoardPaths
from hbrt.errors import RequestRefusedError
from hbrt.status import Status

MAX_GATEWAYS = 16
START_SECONDS = 30.0
END_SECONDS = 3.0  # after its board has ended, while the gateway informs its programs
STARTING, RUNNING, CRASHED = "starting", "running", "crashed"
Done = Callable[[Status, str, dict[str, Any] | None], None]


class _GatewayProcess:
    """One gateway and its current process."""

    def __init__(self, endpoint: str, keys: str, done: Done) -> None:
        self.endpoint = endpoint
        self.keys = keys
        self.done: Done | None = done  # replies to the program that asked for this gateway
        self.state = STARTING
        self.history = History()
        self.restarts = 0
        self.problem = ""  # why the last process ended
        self.pid = self.pidfd = self.ready_fd = -1
        self.ready_text = b""  # read from the process: its endpoint, or why it does not serve
        self.served_since = 0.0
        self.timer: Timer | None = None


class Gateways:
    """Starts, watches and restarts gateways.

    Args:
        paths: The board.
        loop: The daemon's event loop.
        journal: Receives a finding for each gateway that dies.
    """

    def __init__(self, paths: BoardPaths, loop: Loop, journal: Journal) -> None:
        self._paths = paths
        self._loop = loop
        self._journal = journal
        self._gateways: list[_GatewayProcess] = []

    def start(self, endpoint: str, keys: str, done: Done) -> None:
        """Start a gateway; ``done(status, text, data)`` is called once it listens, or has failed to.

        Raises:
            RequestRefusedError: the board has too many gateways, or its process cannot be started.
        """
        self._gateways = [one for one in self._gateways if one.state != CRASHED or one.endpoint != endpoint]
        if len(self._gateways) >= MAX_GATEWAYS:
            why = f"The board already has {MAX_GATEWAYS} listening relays, the maximum; end one."
            raise RequestRefusedError(Status.HB_DSP_NOT_RUNNING, why)
        gateway = _GatewayProcess(endpoint, keys, done)
        try:
            self._start_process(gateway)
        except OSError as error:
            why = f"Cannot start a process for the relay at {endpoint}: {error.strerror}."
            raise RequestRefusedError(Status.HB_DSP_NOT_RUNNING, why) from None
        self._gateways.append(gateway)

    def listing(self) -> list[dict[str, Any]]:
        """The gateways as plain data."""
        return [
            {
                "endpoint": one.endpoint,
                "keys": one.keys or None,
                "state": one.state,
                "pid": one.pid if one.pid >= 0 else None,
                "restarts": one.restarts,
                "last_end": one.problem or None,
            }
            for one in self._gateways
        ]

    def close(self) -> None:
        """Wait for all gateways to end; the caller has closed their leases. Slow ones are killed."""
        deadline = time.monotonic() + END_SECONDS
        for gateway in self._gateways:
            if gateway.timer is not None:
                gateway.timer.cancel()
            if gateway.pidfd < 0:
                continue
            patience = max(0.0, deadline - time.monotonic()) if gateway.state == RUNNING else 0.0
            if not select.select([gateway.pidfd], [], [], patience)[0]:
                _kill(gateway)
            self._collect(gateway)

    def _start_process(self, gateway: _GatewayProcess) -> None:
        ready_fd, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            arguments = [str(self._paths.path), gateway.endpoint, gateway.keys, str(os.getpid())]
            places = [self._journal.log_fd, self._journal.log_fd, theirs]
            pid = start_interpreter("dsp_server.gateway.gateway", places, arguments)
        except BaseException:
            os.close(ready_fd)
            raise
        finally:
            os.close(theirs)
        gateway.pid, gateway.pidfd, gateway.ready_fd = pid, os.pidfd_open(pid), ready_fd
        gateway.ready_text, gateway.served_since = b"", 0.0
        self._loop.watch(ready_fd, lambda: self._on_ready(gateway))
        self._loop.watch(gateway.pidfd, lambda: self._on_end(gateway))
        gateway.timer = self._loop.later(START_SECONDS, lambda: _kill(gateway))

    def _on_ready(self, gateway: _GatewayProcess) -> None:
        """Read the text from a starting process; after end of file, the process serves or is about to exit."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(gateway.ready_fd, 4096):
                gateway.ready_text += chunk
            self._close_ready_fd(gateway)
            if not gateway.ready_text.startswith(b"tcp://"):
                return
            if gateway.timer is not None:
                gateway.timer.cancel()
            gateway.state, gateway.served_since = RUNNING, time.monotonic()
            # Port 0 picks a free port; a restarted process uses the same one.
            port = gateway.ready_text.decode().rpartition(":")[2]
            gateway.endpoint = f"{gateway.endpoint.rpartition(':')[0]}:{port}"
            done, gateway.done = gateway.done, None
            if done is not None:
                done(Status.HB_SYS_SUCCESS, "", {"pid": gateway.pid, "endpoint": gateway.ready_text.decode()})

    def _on_end(self, gateway: _GatewayProcess) -> None:
        """Start a new process, unless this one ended on a termination signal or never listened."""
        if gateway.ready_fd >= 0:
            self._on_ready(gateway)
        pid, has_served = gateway.pid, gateway.served_since > 0
        code = self._collect(gateway)
        how = f"was ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exited with code {code}"
        reason = "" if has_served else gateway.ready_text.decode("utf-8", "replace")
        gateway.problem = reason or f"Process {pid} {how}."
        if gateway.done is not None:
            self._gateways.remove(gateway)
            why = reason or f"The relay {how} before it listened; see 'hbrt log'."
            gateway.done(Status.HB_DSP_NOT_RUNNING, why, None)
        elif code == 0:
            self._gateways.remove(gateway)
            self._journal.say(f"The relay at {gateway.endpoint} (process {pid}) ended.")
        else:
            served_s = time.monotonic() - gateway.served_since if has_served else 0.0
            # A gateway that has listened once is restarted no matter how often it dies.
            gateway.history, pause_s = after(gateway.history, Death(served_s, 0, had_task=has_served))
            self._restart(gateway, pause_s)

    def _restart(self, gateway: _GatewayProcess, pause_s: float | None) -> None:
        what = f"The relay at {gateway.endpoint} died: {gateway.problem}"
        if pause_s is None:
            gateway.state = CRASHED
            self._journal.find(
                "relay-died",
                f"{what} It failed {gateway.history.idle} times in a row and stays down. "
                f"Run 'hbrt relay --listen {gateway.endpoint} --detach' once the cause is fixed.",
            )
            return
        gateway.state = STARTING
        self._journal.find("relay-died", f"{what} It restarts{f' in {pause_s:.1f} s' if pause_s else ' now'}.")
        gateway.timer = self._loop.later(pause_s, lambda: self._start_next(gateway))

    def _start_next(self, gateway: _GatewayProcess) -> None:
        gateway.restarts += 1
        try:
            self._start_process(gateway)
        except OSError as error:
            gateway.problem = f"Cannot start a process: {error.strerror}."
            gateway.history, pause_s = after(gateway.history, Death(0.0, 0, had_task=False))
            self._restart(gateway, pause_s)

    def _close_ready_fd(self, gateway: _GatewayProcess) -> None:
        self._loop.unwatch(gateway.ready_fd)
        os.close(gateway.ready_fd)
        gateway.ready_fd = -1

    def _collect(self, gateway: _GatewayProcess) -> int:
        """Reap a process that is ending; return its exit code, or minus its signal number."""
        if gateway.timer is not None:
            gateway.timer.cancel()
        if gateway.ready_fd >= 0:
            self._close_ready_fd(gateway)
        _, wait_status = os.waitpid(gateway.pid, 0)
        self._loop.unwatch(gateway.pidfd)
        os.close(gateway.pidfd)
        gateway.pid = gateway.pidfd = -1
        return os.waitstatus_to_exitcode(wait_status)


def _kill(gateway: _GatewayProcess) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(gateway.pidfd, signal.SIGKILL)
