"""Two eventfds and a page of shared memory: what the machine takes to wake another process and back, with no board."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from os import eventfd_read, eventfd_write

from benchmarks._peers import PAYLOAD, Place

_BYTES = len(PAYLOAD)


def answer(page: mmap.mmap, asked: int, answered: int) -> None:
    """Copy each request into the reply, forever."""
    while True:
        eventfd_read(asked)
        page[_BYTES : 2 * _BYTES] = page[:_BYTES]
        eventfd_write(answered, 1)


def serve(place: Place) -> None:
    """Accept clients, a thread each."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place.socket)
        listener.listen(32)
        place.ready()
        while True:
            connection, _ = listener.accept()
            _, (memory, asked, answered), _, _ = socket.recv_fds(connection, 1, 3)
            page = mmap.mmap(memory, mmap.PAGESIZE)
            threading.Thread(target=answer, args=(page, asked, answered), daemon=True).start()


class EchoClient:
    """One client; a call at a time."""

    def __init__(self, place: Place) -> None:
        memory = os.memfd_create("echo")
        os.ftruncate(memory, mmap.PAGESIZE)
        self._asked, self._answered = os.eventfd(0), os.eventfd(0)
        self._page = mmap.mmap(memory, mmap.PAGESIZE)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(place.socket)
            socket.send_fds(connection, [b"\0"], [memory, self._asked, self._answered])
        os.close(memory)

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""
        self._page[:_BYTES] = payload
        eventfd_write(self._asked, 1)
        eventfd_read(self._answered)
        return self._page[_BYTES : 2 * _BYTES]

    def close(self) -> None:
        """Close the page and both eventfds."""
        self._page.close()
        os.close(self._asked)
        os.close(self._answered)


def connect(place: Place) -> EchoClient:
    """Return a client of the server at ``place``."""
    return EchoClient(place)
