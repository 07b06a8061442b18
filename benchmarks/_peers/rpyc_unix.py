"""rpyc over a Unix socket: an exposed method of a remote object, a thread for each client."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import rpyc
from rpyc.utils.factory import unix_connect
from rpyc.utils.server import ThreadedServer

from benchmarks._peers import Place


def serve(place: Place) -> None:
    """Expose ``echo``; bytes travel by value."""
    service = type("Echo", (rpyc.Service,), {"exposed_echo": lambda _self, payload: payload})
    server = ThreadedServer(service, socket_path=place.socket)
    place.ready()
    server.start()


class RpycClient:
    """A connection; calls in flight are rpyc's own asynchronous results."""

    def __init__(self, place: Place) -> None:
        self._connection = self._dial(place.socket)
        self.call: Callable[[bytes], bytes] = self._connection.root.echo
        self._begin = rpyc.async_(self.call)
        self._under_way: deque[Any] = deque()

    @staticmethod
    def _dial(path: str) -> Any:
        # The server binds when it is made, and listens only inside start().
        give_up_s = time.monotonic() + 10
        while True:
            try:
                return unix_connect(path)
            except ConnectionRefusedError:
                if time.monotonic() > give_up_s:
                    raise
                time.sleep(0.01)

    def send(self, payload: bytes) -> None:
        """Begin a call."""
        self._under_way.append(self._begin(payload))

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""
        result = self._under_way.popleft()
        result.wait()
        reply: bytes = result.value
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def connect(place: Place) -> RpycClient:
    """Return a client of the server at ``place``."""
    return RpycClient(place)
