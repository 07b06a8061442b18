"""iceoryx2's request-response in shared memory, where each side sleeps until the other one's event wakes it.

Each client has its own event service, so that a reply wakes only the client that waits for it. All
files lie in the run's directory, and all segments in /dev/shm begin with its name, to be removed by it.
"""

from __future__ import annotations

import ctypes
import signal
from collections import deque
from pathlib import Path
from typing import Any

import iceoryx2 as iox2

from benchmarks._peers import DEPTH, Place

MAX_CLIENTS = 32
MAX_NODES = 40


class Message(ctypes.Structure):
    """A request, and its reply."""

    _fields_ = (("data", ctypes.c_uint8 * 64),)


class Sender(ctypes.Structure):
    """A request's header: which client to wake."""

    _fields_ = (("index", ctypes.c_uint64),)


def prefix(directory: Path) -> str:
    """Return the beginning of every name this peer makes."""
    return f"{directory.parent.name}_"


def make_node(directory: Path) -> Any:
    """Return a node whose files and names are private to this run."""
    # blocking_wait() continues waiting after a handler has run: SIGTERM has to end the process by itself.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    iox2.set_log_level(iox2.LogLevel.Error)
    config = iox2.config.default()
    config.global_cfg.prefix = iox2.FileName.new(prefix(directory))
    config.global_cfg.root_path = iox2.Path.new(str(directory))
    builder = iox2.NodeBuilder.new().config(config)
    return builder.signal_handling_mode(iox2.SignalHandlingMode.Disabled).create(iox2.ServiceType.Ipc)


def event_service(node: Any, name: str) -> Any:
    """Open the event service ``name``; its listener is not told of notifiers that come and go."""
    builder = node.service_builder(iox2.ServiceName.new(name)).event()
    builder = builder.disable_notifier_created_event().disable_notifier_dropped_event().disable_notifier_dead_event()
    return builder.max_listeners(1).max_notifiers(MAX_CLIENTS).max_nodes(MAX_NODES).open_or_create()


def echo_service(node: Any) -> Any:
    """Open the request-response service, with room for each client's calls in flight."""
    builder = node.service_builder(iox2.ServiceName.new("echo")).request_response(Message, Message)
    builder = builder.request_header(Sender).max_clients(MAX_CLIENTS).max_nodes(MAX_NODES)
    return builder.max_active_requests_per_client(2 * DEPTH).max_loaned_requests(2 * DEPTH).open_or_create()


def serve(place: Place) -> None:
    """Send every request back, and wake its sender."""
    node = make_node(place.directory)
    listener = event_service(node, "server").listener_builder().create()
    server = echo_service(node).server_builder().create()
    clients: dict[int, Any] = {}
    place.ready()
    while True:
        listener.blocking_wait()
        # receive() looks at the clients in a fixed order, and one that is answered at once may have its next
        # request there before anyone else's is seen. So, of several clients, first take all that wait.
        waiting = iter(server.receive, None)
        for request in waiting if len(clients) < 2 else list(waiting):
            request.send_copy(Message.from_address(request.payload_ptr))
            index = Sender.from_address(request.user_header_ptr).index
            request.delete()
            if index not in clients:
                clients[index] = event_service(node, f"client/{index}").notifier_builder().create()
            clients[index].notify()


class IceoryxClient:
    """A client port, the server's doorbell, and its own doorbell."""

    def __init__(self, place: Place) -> None:
        self._index = place.index
        self._node = make_node(place.directory)
        self._notifier = event_service(self._node, "server").notifier_builder().create()
        self._listener = event_service(self._node, f"client/{place.index}").listener_builder().create()
        self._port = echo_service(self._node).client_builder().create()
        self._under_way: deque[Any] = deque()

    def call(self, payload: bytes) -> bytes:
        """Send ``payload`` and return the reply."""
        self.send(payload)
        return self.receive()

    def send(self, payload: bytes) -> None:
        """Begin a call."""
        request = self._port.loan_uninit()
        Sender.from_address(request.user_header_ptr).index = self._index
        self._under_way.append(request.write_payload(Message.from_buffer_copy(payload)).send())
        self._notifier.notify()

    def receive(self) -> bytes:
        """Return the reply of the oldest call under way."""
        pending = self._under_way.popleft()
        while (response := pending.receive()) is None:
            self._listener.blocking_wait()
        reply = ctypes.string_at(response.payload_ptr, ctypes.sizeof(Message))
        response.delete()
        pending.delete()
        return reply

    def close(self) -> None:
        """Release the ports."""
        for port in (self._port, self._listener, self._notifier):
            port.delete()


def connect(place: Place) -> IceoryxClient:
    """Return a client of the server at ``place``."""
    return IceoryxClient(place)
