"""A server for programs on other machines: its listening socket, connections, and the thread that polls them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import zmq

from dsp_server.gateway.connections import Connection, Connections, PendingConnections, reset_when_closed
from dsp_server.gateway.listening import Listener, ListenOptions
from hbrt.board.descriptors import check_free

_MAX_DESCRIPTORS = 24  # 16 to keep, the event loop in the keys' thread, and those used to load a module
MAX_AT_ONCE = 64  # messages received before other work gets a turn
_NOBLOCK = int(zmq.NOBLOCK)


class Server(ABC):
    """What a gateway and a farm have in common; subclasses handle messages, and connections that end.

    Args:
        options: Address and keys.
        log: Writes a sentence to the log.

    Raises:
        BoardError: it cannot listen on the address, or has too few file descriptors.
    """

    def __init__(self, options: ListenOptions, log: Callable[[str], None]) -> None:
        check_free(_MAX_DESCRIPTORS, f"a {options.what} that listens")
        self.is_stopping = False
        self._log = log
        self._handlers: dict[int | zmq.Socket[bytes], Callable[[], object]] = {}
        self._poller = zmq.Poller()
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        try:
            self._listener = Listener(self._context, options)
        except BaseException:
            self._context.term()
            raise
        self._socket = self._listener.socket
        self.endpoint = self._listener.endpoint
        port = int(self.endpoint.rpartition(":")[2])
        self._connections = Connections(port, self._is_reachable, has_keys=self._listener.has_keys)
        self._pending = PendingConnections(self._listener.accepted, self._connections, log, options.what)
        self.watch(self._socket, self._receive)
        self.watch(self._listener.accepted, self._pending.on_accepted)
        self.watch(self._connections.fileno(), self._on_ends)

    def watch(self, fd: int | zmq.Socket[bytes], handler: Callable[[], object], event: int = zmq.POLLIN, /) -> None:
        """Call ``handler`` whenever the descriptor is readable; with ``zmq.POLLERR``, when its other end is closed."""
        self._handlers[fd] = handler
        self._poller.register(fd, event)

    def unwatch(self, fd: int | zmq.Socket[bytes], /) -> None:
        """Undo ``watch``."""
        del self._handlers[fd]
        self._poller.unregister(fd)

    def stop(self) -> None:
        """Make ``run`` return soon; a signal handler may call it."""
        self.is_stopping = True

    @abstractmethod
    def run(self) -> None:
        """Serve until ``stop`` is called."""

    def close(self) -> None:
        """Stop listening, and release all connections."""
        for fd in list(self._handlers):
            self.unwatch(fd)
        self._listener.close()
        self._context.term()
        self._connections.close()

    def _poll(self, seconds: float) -> None:
        """Handle what is readable, or becomes readable within this time."""
        for ready, _ in self._poller.poll(int(seconds * 1000)):
            if (handler := self._handlers.get(ready)) is not None:
                handler()

    def _receive(self) -> None:
        for _ in range(MAX_AT_ONCE):
            try:
                identity = self._socket.recv(_NOBLOCK)
            except zmq.Again:
                return
            frame = self._socket.recv(_NOBLOCK, copy=False)
            is_more = frame.more
            while self._socket.rcvmore:
                self._socket.recv(_NOBLOCK)
            self._on_message(identity, frame, is_more=is_more)

    def _end_floods(self, most_bytes: int, seconds: float) -> None:
        """End connections that have too many unread bytes; a refusal would have to wait behind these bytes.

        Args:
            most_bytes: Maximum that a connection may have.
            seconds: Time since the last call.
        """
        self._pending.end_floods()
        for connection in self._connections.flooding(most_bytes, seconds):
            self._on_flood(connection)
            reset_when_closed(connection.socket)
            self._connections.end(connection)

    def _is_reachable(self, identity: bytes) -> bool:
        """Whether ZeroMQ still routes to an identity."""
        try:
            self._socket.send_multipart((identity, self._beat_frame()), _NOBLOCK)
        except zmq.Again:
            return True  # ZeroMQ routes to it, but the peer does not read
        except zmq.ZMQError:
            return False
        return True

    def _on_ends(self) -> None:
        for connection in self._connections.ended():
            self._on_end(connection)

    @abstractmethod
    def _on_message(self, identity: bytes, frame: zmq.Frame, *, is_more: bool) -> None:
        """Handle the first frame of a message; ``is_more`` tells whether more frames follow, which are dropped."""

    @abstractmethod
    def _on_end(self, connection: Connection) -> None:
        """Release a connection that has ended."""

    @abstractmethod
    def _on_flood(self, connection: Connection) -> None:
        """Handle a connection that is about to be ended because of its unread bytes."""

    @abstractmethod
    def _beat_frame(self) -> bytes:
        """Return a heartbeat in the programs' protocol."""
