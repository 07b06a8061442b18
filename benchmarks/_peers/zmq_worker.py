"""pyzmq DEALER/ROUTER with a broker that hands each call to a worker process."""

from __future__ import annotations

import zmq

from benchmarks._peers import Place
from benchmarks._peers.zmq_router import connect

__all__ = ["connect", "serve"]


def serve(place: Place) -> None:
    """Be the broker, whose loop is libzmq's own proxy, or the worker behind it."""
    backend_address = f"ipc://{place.socket}-worker"
    with zmq.Context() as context, context.socket(zmq.DEALER) as backend:
        if place.role == "broker":
            with context.socket(zmq.ROUTER) as frontend:
                frontend.bind(f"ipc://{place.socket}")
                backend.bind(backend_address)
                place.ready()
                zmq.proxy(frontend, backend)
        else:
            backend.connect(backend_address)
            place.ready()
            while True:
                backend.send_multipart(backend.recv_multipart())
