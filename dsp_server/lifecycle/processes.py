"""A board's core processes: their starts, messages and ends."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

from dsp_server.clients import Client, Clients
from dsp_server.lifecycle.child import CoreChild, spawn
from dsp_server.lifecycle.fork_server import ForkServer
from dsp_server.lifecycle.snapshots import Image
from dsp_server.process.event_loop import Loop
from hbrt.findings.record import Finding, finding_of
from hbrt.mailbox.doorbell import ring


class CoreProcesses:
    """All processes of all cores: serving, loading, ending.

    Args:
        loop: The daemon's event loop.
        clients: The attached clients; every process gets their doorbells.
        ddr_fd: The board's DDR file.
        log_fd: Receives the standard output and error of the processes.
        fork_server: Forks the processes.
        core_count: Number of cores on the board.
        on_ready: Called with the number and the process when a process has loaded its image.
        on_end: Called with the number, the process and how it ended, after a process has been reaped.
        on_finding: Called with each finding from a process.
    """

    def __init__(
        self,
        loop: Loop,
        clients: Clients,
        ddr_fd: int,
        log_fd: int,
        fork_server: ForkServer,
        core_count: int,
        on_ready: Callable[[int, CoreChild], None],
        on_end: Callable[[int, CoreChild, str], None],
        on_finding: Callable[[Finding], None],
    ) -> None:
        self.doorbells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(core_count)]
        # Rung for tasks that may interrupt a core's op.
        self.urgent_bells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(core_count)]
        self.children: dict[int, CoreChild] = {}  # by number
        self._loop = loop
        self._clients = clients
        self._ddr_fd = ddr_fd
        self._log_fd = log_fd
        self._fork_server = fork_server
        self._on_ready = on_ready
        self._on_end = on_end
        self._on_finding = on_finding
        self._said_of_images: set[tuple[Path, str]] = set()  # snapshot of the image, and fingerprint of the finding
        # Faults to inject: returns a core's faults by number; and the function to call when one has occurred.
        self.faults_of: Callable[[int], list[tuple[int, str]]] = lambda _: []
        self.on_injected: Callable[[int], None] = lambda _: None

    def start(self, number: int, index: int, image: Image, load_seconds: float) -> None:
        """Start a process for a core; it loads the image, and is killed if that takes too long.

        Args:
            number: Number of the process, never used before.
            index: The core.
            image: The image to load.
            load_seconds: Time limit for loading.

        Raises:
            OSError: out of processes or descriptors.
        """
        bells = self.doorbells, self.urgent_bells[index]
        child = spawn(index, self._ddr_fd, *bells, image, self._log_fd, self._loop, self._fork_server)
        try:
            self._loop.watch(child.control.fileno(), lambda: self._on_message(number, child))
            self._loop.watch(child.pidfd, lambda: self._on_death(number, child))
        except OSError:
            self._unwatch(child)
            child.signal(signal.SIGKILL)
            child.reap()
            raise
        self.children[number] = child
        for client in self._clients.by_id.values():
            if not client.has_gone:
                child.send_doorbell(client.id, client.number, client.doorbell)
                _send_recording(child, client)
        if faults := self.faults_of(index):
            child.send(event="inject", faults=faults)
        child.timer = self._loop.later(load_seconds, lambda: child.fail_late(load_seconds))

    def add_client(self, client: Client) -> None:
        """Send a new client's doorbell to every process."""
        for child in self.children.values():
            child.send_doorbell(client.id, client.number, client.doorbell)

    def record_client(self, client: Client) -> None:
        """Have every process record a client's calls."""
        for child in self.children.values():
            _send_recording(child, client)

    def remove_client(self, client: Client) -> None:
        """Remove a client from every process; afterwards its doorbell may be closed."""
        for child in self.children.values():
            child.discard_client(client.id, client.number)

    def ring(self, *, all_but: int) -> None:
        """Ring the doorbells of all cores but one."""
        for index, doorbell in enumerate(self.doorbells):
            if index != all_but:
                ring(doorbell)

    def await_end(self, has_grace: Callable[[int], bool]) -> None:
        """Wait until all processes have ended; each must have been asked to end before.

        Args:
            has_grace: Whether a core, given its index, gets time to end its task; called again as clients end.
        """
        while self.children:
            for child in self.children.values():
                if not has_grace(child.index):
                    child.signal(signal.SIGKILL)
            self._loop.step()

    def _on_message(self, number: int, child: CoreChild) -> None:
        message = child.receive()
        if message is None:
            return
        if not message:  # the pidfd will report its death
            self._loop.unwatch(child.control.fileno())
        elif message.get("event") == "ready" and child.on_ready(message):
            self._on_ready(number, child)
        elif message.get("event") == "broken":
            child.fail(str(message.get("text", "")))
        try:
            if message.get("event") == "injected":
                self.on_injected(int(message["number"]))
            elif message.get("event") == "finding":
                self._on_found(child, finding_of(message["finding"]))
        except (KeyError, TypeError, ValueError) as error:
            child.fail(f"Core {child.index} sent a malformed message: {error!r}.")

    def _on_found(self, child: CoreChild, found: Finding) -> None:
        if found.kind == "image":
            said = child.image.snapshot, found.fingerprint
            if said in self._said_of_images:
                return  # all processes that load this image find the same
            self._said_of_images.add(said)
        self._on_finding(found)

    def read_messages(self) -> None:
        """Handle what the processes have sent so far, so that a finding is handled before its task's end."""
        for number, child in list(self.children.items()):
            self._read_messages(number, child)

    def _read_messages(self, number: int, child: CoreChild) -> None:
        while self._loop.is_watched(child.control.fileno()) and select.select([child.control], [], [], 0)[0]:
            self._on_message(number, child)

    def _on_death(self, number: int, child: CoreChild) -> None:
        self._read_messages(number, child)  # its last messages
        self._unwatch(child)
        del self.children[number]
        self._on_end(number, child, child.reap())

    def _unwatch(self, child: CoreChild) -> None:
        self._loop.unwatch(child.control.fileno())
        self._loop.unwatch(child.pidfd)


def _send_recording(child: CoreChild, client: Client) -> None:
    if client.recording:
        child.send(event="record", client=client.id, directory=client.recording)
