"""gRPC over a Unix socket: a unary method that carries plain bytes, without protobuf."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from benchmarks._peers import Place

SERVICE, METHOD = "benchmark.Echo", "Call"


def serve(place: Place) -> None:
    """Send every request back."""
    handler = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    server.add_insecure_port(f"unix:{place.socket}")
    server.start()
    place.ready()
    try:
        server.wait_for_termination()
    finally:
        server.stop(grace=None).wait()


class GrpcClient:
    """A channel; calls in flight are its futures."""

    def __init__(self, place: Place) -> None:
        self._channel = grpc.insecure_channel(f"unix:{place.socket}")
        self._method = self._channel.unary_unary(f"/{SERVICE}/{METHOD}")
        self.call: Callable[[bytes], bytes] = self._method
        self._under_way: deque[Any] = deque()

    def send(self, payload: bytes) -> None:
        """Begin a call."""
        self._under_way.append(self._method.future(payload))

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""
        reply: bytes = self._under_way.popleft().result()
        return reply

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


def connect(place: Place) -> GrpcClient:
    """Return a client of the server at ``place``."""
    return GrpcClient(place)
