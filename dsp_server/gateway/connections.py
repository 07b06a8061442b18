"""The TCP connections behind a ROUTER's identities: first pending, then claimed, each with a backlog of unread bytes.

ZeroMQ does not report when a connection ends, cannot end one for us, and reads without limit; this module does.

Claims: each message carries the number of the descriptor that it arrived on (SRCFD). By the time the message is read,
that connection may be closed and its number reused for another program's. So the number is only a claim:

- Only a connection to our own port can be claimed, never another socket or file of this process.
- A wrong claim belongs to an identity that is gone. When the wrong connection ends, nothing changes, and at the next
  beat ZeroMQ refuses to route to that identity.
- A connection is ended only while ZeroMQ still routes to its identity, a second or more after the claim, and only if
  no other identity claims it. The ROUTER makes the identities and never reuses one; a peer that sets its own identity
  is not admitted.

Pending: ZeroMQ ends a connection if its peer does not finish the handshake or stops its heartbeat. But if the peer does
both and sends no frame, the connection has no identity by which the gateway could know it. So the gateway records each
connection when it is accepted, checks later whether an identity has claimed it, and if not, ends it.

Backlog: with ZeroMQ's own limit (ZMQ_RCVHWM), ZeroMQ stops reading from a connection whose queue is full. In libzmq
4.3.5 a peer can then crash the process: if it resets the connection, the next heartbeat, or a PING that was read
earlier, fails with ``Assertion failed: !_io_error`` (libzmq issues 4364 and 4767). So ZeroMQ reads everything. The
gateway subtracts the sizes of the frames that it has taken from the kernel's count of received bytes, and ends a
connection if the difference is large.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import zmq

from dsp_server.process.intake import copy_of
from hbrt.protocol.remote import MAX_FRAME_BYTES, WINDOW_BYTES
from hbrt.remote.monitor import next_event

Key: TypeAlias = tuple[int, int]  # device and inode of a connection, whatever its descriptor
_NO_LINGER = struct.pack("=ii", 1, 0)
MAX_UNREAD_BYTES = 2 * WINDOW_BYTES + 4 * MAX_FRAME_BYTES  # a program that respects its window never reaches this
MAX_UNKNOWN_BYTES = 1 << 18  # for a pending connection: its first frame is small
LIVELINESS_BYTES = 256  # PING and PONG per second, which the gateway does not see
_RECEIVED = struct.Struct("=128xQ")  # in struct tcp_info: tcpi_bytes_received
_CURVE_BYTES = 33  # added to a message by encryption: command name, nonce, authenticator, flags
SILENT_SECONDS = 30.0  # a program sends HELLO right after its handshake, which takes at most 5 s
MAX_SILENT = 256  # each uses a descriptor
_NOBLOCK = int(zmq.NOBLOCK)


class Connection:
    """A connection claimed by an identity, with a descriptor of its own."""

    def __init__(self, identity: bytes, socket_: socket.socket, *, has_keys: bool = False) -> None:
        self.identity = identity
        self.socket = socket_
        self.backlog = Backlog(has_keys=has_keys)
        stat = os.fstat(socket_.fileno())
        self.key: Key = (stat.st_dev, stat.st_ino)

    @property
    def peer(self) -> str:
        """``HOST:PORT`` of the peer."""
        return peer_of(self.socket)


class Connections:
    """All claimed connections.

    Args:
        port: The gateway's port.
        is_reachable: Whether ZeroMQ still routes to an identity.
        has_keys: Whether frames are encrypted.
    """

    def __init__(self, port: int, is_reachable: Callable[[bytes], bool], *, has_keys: bool = False) -> None:
        self._port = port
        self._has_keys = has_keys
        self._is_reachable = is_reachable
        self._epoll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._claims: Counter[Key] = Counter()

    def fileno(self) -> int:
        """A descriptor that becomes readable when ``ended`` has a result."""
        return self._epoll.fileno()

    def claim(self, identity: bytes, fd: int) -> Connection | None:
        """Claim the connection that a message of ``identity`` came over; None if it has ended.

        Raises:
            OSError: out of descriptors.
        """
        found = self.copy_of(fd)
        if found is None:
            return None
        try:
            self._epoll.register(found, select.EPOLLRDHUP)
        except OSError:
            found.close()
            raise
        connection = Connection(identity, found, has_keys=self._has_keys)
        self._claims[connection.key] += 1
        self._by_fd[found.fileno()] = connection
        return connection

    def copy_of(self, fd: int) -> socket.socket | None:
        """Return a duplicate of a descriptor if it is a connection to our port; else None.

        Raises:
            OSError: see ``claim``.
        """
        return copy_of(fd, self._is_ours)

    def _is_ours(self, found: socket.socket) -> bool:
        return found.family in {socket.AF_INET, socket.AF_INET6} and found.getsockname()[1] == self._port

    def is_claimed(self, key: Key) -> bool:
        """Whether any identity claims a connection."""
        return key in self._claims

    def __len__(self) -> int:
        """Number of claimed connections."""
        return len(self._by_fd)

    def flooding(self, most_bytes: int, seconds: float) -> list[Connection]:
        """Connections with more than ``most_bytes`` unread; ``seconds``: time since the last call."""
        return [
            connection
            for connection in self._by_fd.values()
            if connection.backlog.unread_bytes(received_bytes(connection.socket), seconds) > most_bytes
        ]

    def ended(self) -> list[Connection]:
        """Return connections that the peer has closed, or that ZeroMQ's heartbeat has ended."""
        return [self._by_fd[fd] for fd, _ in self._epoll.poll(0)]

    def end(self, connection: Connection) -> bool:
        """End a connection unless another identity claims it too; return whether its identity is, or will be, gone."""
        if not self._is_reachable(connection.identity):
            return True
        if self._claims[connection.key] > 1:
            return False
        try:
            connection.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return True  # the connection has ended
        return True

    def release(self, connection: Connection) -> None:
        """Stop watching a connection; it stays open."""
        del self._by_fd[connection.socket.fileno()]
        self._epoll.unregister(connection.socket)
        self._claims[connection.key] -= 1
        if not self._claims[connection.key]:
            del self._claims[connection.key]
        connection.socket.close()

    def close(self) -> None:
        """Release all connections."""
        for connection in list(self._by_fd.values()):
            self.release(connection)
        self._epoll.close()


def peer_of(connection: socket.socket) -> str:
    """Return ``HOST:PORT`` of a connection's peer."""
    try:
        host, port, *_ = connection.getpeername()
    except OSError:
        return "?"
    return f"{host}:{port}"


def reset_when_closed(connection: socket.socket) -> None:
    """Send a reset when ZeroMQ closes its side: a peer that only sends would not notice an orderly close."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def is_given(identity: bytes) -> bool:
    """Whether the ROUTER made an identity: a zero byte and a 32-bit number."""
    return len(identity) == 5 and identity[0] == 0


class Backlog:
    """Counts one connection's unread bytes; has no clock and no socket.

    Args:
        has_keys: Whether its frames are encrypted, and therefore longer.
    """

    def __init__(self, *, has_keys: bool = False) -> None:
        self._overhead = _CURVE_BYTES if has_keys else 0
        self._read = 0

    def on_frame(self, size_bytes: int) -> None:
        """Count a frame that was read, including its short or long header."""
        body = size_bytes + self._overhead
        self._read += body + (2 if body < 1 << 8 else 9)

    def unread_bytes(self, received_bytes: int, seconds: float) -> int:
        """Return how many of the received bytes are unread; ``seconds`` is the time since the last call."""
        self._read = min(self._read + int(LIVELINESS_BYTES * seconds), received_bytes)
        return received_bytes - self._read


def received_bytes(connection: socket.socket) -> int:
    """Return the number of bytes received over a TCP connection since it was opened."""
    (count,) = _RECEIVED.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size))
    return int(count)


class _Pending(NamedTuple):
    fd: int  # ZeroMQ's descriptor; its number may by now belong to another connection
    accepted_at: float


class PendingConnections:
    """Recently accepted connections.

    Args:
        accepted: Monitor socket that reports each accepted connection (zmq.EVENT_ACCEPTED).
        connections: The claimed connections.
        log: Writes a sentence to the log.
        what: What they connected to, for sentences.
    """

    def __init__(
        self, accepted: zmq.Socket[bytes], connections: Connections, log: Callable[[str], None], what: str = "relay"
    ) -> None:
        self._accepted = accepted
        self._connections = connections
        self._log, self._what = log, what
        self._pending: dict[Key, _Pending] = {}  # oldest first; those to be checked again come last

    def on_accepted(self) -> None:
        """Record newly accepted connections; if there are more than MAX_SILENT, end the oldest."""
        with contextlib.suppress(zmq.Again):
            while True:
                self._note(next_event(self._accepted, _NOBLOCK)[1])
        for key in list(self._pending)[: max(0, len(self._pending) - MAX_SILENT)]:
            self._check(key, f"it was not admitted, and {MAX_SILENT} newer connections are pending")

    def end_silent(self) -> None:
        """End connections that have been pending for SILENT_SECONDS."""
        now = time.monotonic()
        for key, pending in list(self._pending.items()):
            if now - pending.accepted_at >= SILENT_SECONDS:
                self._check(key, f"it was not admitted within {SILENT_SECONDS:g} s")

    def end_floods(self) -> None:
        """End connections that have sent more bytes than a first frame can have."""
        for key in list(self._pending):
            self._check(key, f"it was not admitted, and sent more than {MAX_UNKNOWN_BYTES} bytes", MAX_UNKNOWN_BYTES)

    def __len__(self) -> int:
        """Number of pending connections."""
        return len(self._pending)

    def _note(self, fd: int) -> None:
        try:
            stat = os.fstat(fd)
        except OSError:
            return  # the connection has ended
        key = stat.st_dev, stat.st_ino
        self._pending.pop(key, None)
        self._pending[key] = _Pending(fd, time.monotonic())

    def _check(self, key: Key, why: str, more_than: int = -1) -> None:
        """End a connection that has sent more than this many bytes, unless it is claimed or already ended."""
        pending = self._pending.pop(key)
        if self._connections.is_claimed(key):
            return
        try:
            found = self._connections.copy_of(pending.fd)
        except OSError:  # out of descriptors: check again at the next beat
            self._pending[key] = (
                pending if more_than >= 0 else pending._replace(accepted_at=pending.accepted_at - SILENT_SECONDS)
            )
            return
        if found is None:
            return
        with found:
            stat = os.fstat(found.fileno())
            if (stat.st_dev, stat.st_ino) != key:
                return  # the number belongs to another connection
            if received_bytes(found) <= more_than:
                self._pending[key] = pending
                return
            self._log(f"The {self._what} ends a connection from {peer_of(found)}: {why}.")
            if more_than >= 0:
                reset_when_closed(found)
            with contextlib.suppress(OSError):  # the connection has ended
                found.shutdown(socket.SHUT_RDWR)
