"""pyzmq REQ/REP over ipc: the plainest request and reply of ZeroMQ, and the unit of the table."""

from __future__ import annotations

import zmq

from benchmarks._peers import Place


def serve(place: Place) -> None:
    """Send every request back."""
    with zmq.Context() as context, context.socket(zmq.REP) as server:
        server.bind(f"ipc://{place.socket}")
        place.ready()
        while True:
            server.send(server.recv())


class ReqClient:
    """A REQ socket: one call at a time."""

    def __init__(self, place: Place) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.connect(f"ipc://{place.socket}")

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""
        self._socket.send(payload)
        return self._socket.recv()

    def close(self) -> None:
        """Close socket and context."""
        self._socket.close(linger=0)
        self._context.term()


def connect(place: Place) -> ReqClient:
    """Return a client of the server at ``place``."""
    return ReqClient(place)
