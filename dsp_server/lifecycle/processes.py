"""The core processes of a board: starting them, talking with them, noticing their end."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

from dsp_server.clients import Client, Clients
from dsp_server.lifecycle.child import CoreChild, spawn
from dsp_server.lifecycle.snapshots import Image
from dsp_server.process.event_loop import Loop
from hbrt.mailbox.doorbell import ring


class Fleet:
    """All processes of all cores: serving, loading, ending.

    Args:
        loop: Watches them.
        clients: Every process gets the doorbells of those that are attached.
        ddr_fd: The board's DDR file.
        log_fd: Where the processes' standard output and error go.
        core_count: Cores of the board.
        on_ready: Called with a process, and its number, that has loaded its image.
        on_end: Called with a process, and its number, that has ended and was collected; the text that comes with it
            follows its name in a sentence.
    """

    def __init__(
        self,
        loop: Loop,
        clients: Clients,
        ddr_fd: int,
        log_fd: int,
        core_count: int,
        on_ready: Callable[[int, CoreChild], None],
        on_end: Callable[[int, CoreChild, str], None],
    ) -> None:
        self.doorbells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(core_count)]
        # Rung for a task that may interrupt what a core runs.
        self.urgent_bells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(core_count)]
        self.children: dict[int, CoreChild] = {}  # by their number
        self._loop = loop
        self._clients = clients
        self._ddr_fd = ddr_fd
        self._log_fd = log_fd
        self._tell_ready = on_ready
        self._tell_end = on_end

    def start(self, number: int, index: int, image: Image, load_seconds: float) -> None:
        """Start a process for a core; it loads the image, and is given up when that takes too long.

        Args:
            number: What to call the process; no other had it before.
            index: The core.
            image: What it loads.
            load_seconds: How long that may take.

        Raises:
            OSError: no process or descriptor left.
        """
        child = spawn(index, self._ddr_fd, self.doorbells, self.urgent_bells[index], image, self._log_fd, self._loop)
        self.children[number] = child
        for client in self._clients.by_id.values():
            if not client.has_gone:
                child.send_doorbell(client.id, client.doorbell)
        self._loop.watch(child.control.fileno(), lambda: self._on_message(number, child))
        self._loop.watch(child.pidfd, lambda: self._on_death(number, child))
        child.timer = self._loop.later(load_seconds, lambda: child.give_up(load_seconds))

    def tell_of(self, client: Client) -> None:
        """Hand a new client's doorbell to every process."""
        for child in self.children.values():
            child.send_doorbell(client.id, client.doorbell)

    def tell_gone(self, client: Client) -> None:
        """Have every process forget a client; its doorbell may be closed then."""
        for child in self.children.values():
            child.forget_client(client.id)

    def ring(self, *, all_but: int) -> None:
        """Wake every core but one, to look what there is."""
        for index, doorbell in enumerate(self.doorbells):
            if index != all_but:
                ring(doorbell)

    def await_end(self, has_grace: Callable[[int], bool]) -> None:
        """Returns when all processes, which were told to end, have ended.

        Args:
            has_grace: Whether a core, by index, is given time to end its task; asked again as clients go.
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
        if not message:  # its death is told by its pidfd
            self._loop.unwatch(child.control.fileno())
        elif message.get("event") == "ready" and child.be_ready(message):
            self._tell_ready(number, child)
        elif message.get("event") == "broken":
            child.fail(str(message.get("text", "")))

    def _on_death(self, number: int, child: CoreChild) -> None:
        while self._loop.is_watched(child.control.fileno()) and select.select([child.control], [], [], 0)[0]:
            self._on_message(number, child)  # what it had still to say
        self._loop.unwatch(child.control.fileno())
        self._loop.unwatch(child.pidfd)
        del self.children[number]
        self._tell_end(number, child, child.reap())
