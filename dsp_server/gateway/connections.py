"""The TCP connections behind a ROUTER's identities: this file detects their ends, and ends them.

ZeroMQ offers neither. A message carries the number of the descriptor that it came over (SRCFD). By the time the message
is read, the connection may be closed, and the number may belong to a connection of another program. So the number is
only a claim:

- Only a connection to our own port can be claimed, never another socket or file of this process.
- A wrong claim belongs to an identity that is gone. The end of the wrong connection then changes nothing, and ZeroMQ
  refuses to route to that identity at the next beat.
- A connection is ended only while ZeroMQ still routes to its identity, a second or more after the claim, and only when
  no other identity claims it. The ROUTER makes the identities and never reuses one; a peer that sets its own identity
  is not admitted.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from dsp_server.gateway.backlog import Backlog, received_bytes
from dsp_server.process.intake import copy_of

Key: TypeAlias = tuple[int, int]  # device and inode: of a connection, whatever its descriptor


_NO_LINGER = struct.pack("=ii", 1, 0)


class Connection:
    """A connection that an identity claims, with its own descriptor."""

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
        """A descriptor that is readable when ``ended`` has a result."""
        return self._epoll.fileno()

    def claim(self, identity: bytes, fd: int) -> Connection | None:
        """Claim the connection that a message of ``identity`` came over; None when it has ended.

        Raises:
            OSError: no descriptor left.
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
        """A duplicate of a descriptor, if it is a connection to our port; else None.

        Raises:
            OSError: as ``claim``.
        """
        return copy_of(fd, self._is_ours)

    def _is_ours(self, found: socket.socket) -> bool:
        return found.family in {socket.AF_INET, socket.AF_INET6} and found.getsockname()[1] == self._port

    def is_claimed(self, key: Key) -> bool:
        """Whether an identity claims a connection."""
        return key in self._claims

    def __len__(self) -> int:
        """Number of claimed connections."""
        return len(self._by_fd)

    def flooding(self, most_bytes: int, seconds: float) -> list[Connection]:
        """Connections with more than ``most_bytes`` unread bytes; ``seconds`` is the time since the last call."""
        return [
            connection
            for connection in self._by_fd.values()
            if connection.backlog.unread_bytes(received_bytes(connection.socket), seconds) > most_bytes
        ]

    def ended(self) -> list[Connection]:
        """Connections that the peer has closed, or that ZeroMQ's heartbeat has ended."""
        return [self._by_fd[fd] for fd, _ in self._epoll.poll(0)]

    def end(self, connection: Connection) -> bool:
        """End a connection, unless another identity claims it too; whether its identity is gone, or goes now."""
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
        """Stop watching a connection; the connection stays open."""
        del self._by_fd[connection.socket.fileno()]
        self._epoll.unregister(connection.socket)
        self._claims[connection.key] -= 1
        if not self._claims[connection.key]:
            del self._claims[connection.key]
        connection.socket.close()

    def close(self) -> None:
        """Release all."""
        for connection in list(self._by_fd.values()):
            self.release(connection)
        self._epoll.close()


def peer_of(connection: socket.socket) -> str:
    """``HOST:PORT`` of a connection's peer."""
    try:
        host, port, *_ = connection.getpeername()
    except OSError:
        return "?"
    return f"{host}:{port}"


def reset_when_closed(connection: socket.socket) -> None:
    """Send a reset when ZeroMQ closes its side: a peer that only sends would not see an orderly end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def is_given(identity: bytes) -> bool:
    """Whether the ROUTER made an identity: a zero byte and a number of 32 bits."""
    return len(identity) == 5 and identity[0] == 0
