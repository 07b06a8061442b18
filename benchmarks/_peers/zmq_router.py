"""pyzmq DEALER/ROUTER over ipc: asynchronous sockets, the server answers itself."""

from __future__ import annotations

import zmq

from benchmarks._peers import Place


def serve(place: Place) -> None:
    """Send every request back to the client it came from."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as server:
        server.bind(f"ipc://{place.socket}")
        place.ready()
        while True:
            server.send_multipart(server.recv_multipart())


class DealerClient:
    """A DEALER socket: as many calls under way as wanted, answered in order."""

    def __init__(self, place: Place) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.connect(f"ipc://{place.socket}")

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""
        self._socket.send(payload)
        return self._socket.recv()

    def send(self, payload: bytes) -> None:
        """Begin a call."""
        self._socket.send(payload)

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""
        return self._socket.recv()

    def close(self) -> None:
        """Close socket and context."""
        self._socket.close(linger=0)
        self._context.term()


def connect(place: Place) -> DealerClient:
    """Return a client of the server at ``place``."""
    return DealerClient(place)
