"""multiprocessing.connection over AF_UNIX: a pipe between processes, a thread for each client."""

from __future__ import annotations

import threading
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from benchmarks._peers import Place


def answer(connection: Connection[Any, Any]) -> None:
    """Send every request back until the client is gone."""
    try:
        while True:
            connection.send_bytes(connection.recv_bytes())
    except (EOFError, ConnectionResetError, BrokenPipeError):
        connection.close()


def serve(place: Place) -> None:
    """Accept clients."""
    with Listener(place.socket, "AF_UNIX", backlog=32) as listener:
        place.ready()
        while True:
            threading.Thread(target=answer, args=(listener.accept(),), daemon=True).start()


class PipeClient:
    """A connection: a stream, so that several calls may be under way, answered in order."""

    def __init__(self, place: Place) -> None:
        self._connection = Client(place.socket, "AF_UNIX")

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""
        self._connection.send_bytes(payload)
        return self._connection.recv_bytes()

    def send(self, payload: bytes) -> None:
        """Begin a call."""
        self._connection.send_bytes(payload)

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""
        return self._connection.recv_bytes()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def connect(place: Place) -> PipeClient:
    """Return a client of the server at ``place``."""
    return PipeClient(place)
