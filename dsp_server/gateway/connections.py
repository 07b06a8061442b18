"""The TCP connections behind a ROUTER's identities: to see that one ends, and to end one.

ZeroMQ tells neither. A message bears the number of the descriptor that it came over (SRCFD), which may name something
else by the time it is read: its connection may be closed, and the number be given to the next one, of another program.
So a number is a claim, and no more:

- Only a connection to our own port is taken for one, never another socket or file of this process.
- A claim that is wrong is one of an identity that has gone. Seeing the end of the wrong connection then tells nothing
  new, and ZeroMQ refuses to route to that identity at the next beat.
- Before a connection is ended, its identity must be one that ZeroMQ still routes to, a second and more after the claim,
  and nobody else may claim the same connection. Identities are the ROUTER's own, which it never gives twice; a peer
  that brings one of its own is not let in.
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
    """A connection that an identity claims, by a descriptor of our own."""

    def __init__(self, identity: bytes, socket_: socket.socket, *, has_keys: bool = False) -> None:
        self.identity = identity
        self.socket = socket_
        self.backlog = Backlog(has_keys=has_keys)
        stat = os.fstat(socket_.fileno())
        self.key: Key = (stat.st_dev, stat.st_ino)

    @property
    def peer(self) -> str:
        """``HOST:PORT`` of the other end."""
        return peer_of(self.socket)


class Connections:
    """All connections that are claimed.

    Args:
        port: Ours, which they come to.
        is_reachable: Whether ZeroMQ still routes to an identity.
        has_keys: Whether what they send is encrypted.
    """

    def __init__(self, port: int, is_reachable: Callable[[bytes], bool], *, has_keys: bool = False) -> None:
        self._port = port
        self._has_keys = has_keys
        self._is_reachable = is_reachable
        self._epoll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._claims: Counter[Key] = Counter()

    def fileno(self) -> int:
        """A descriptor that is readable when ``ended`` has something to say."""
        return self._epoll.fileno()

    def claim(self, identity: bytes, fd: int) -> Connection | None:
        """The connection that a message of ``identity`` came over, by its descriptor; None when it has gone.

        Raises:
            OSError: this process has no descriptor left.
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
        """A connection to our port, by another descriptor than the one that names it; None when that names none.

        Raises:
            OSError: as ``claim``.
        """
        return copy_of(fd, self._is_ours)

    def _is_ours(self, found: socket.socket) -> bool:
        return found.family in {socket.AF_INET, socket.AF_INET6} and found.getsockname()[1] == self._port

    def is_claimed(self, key: Key) -> bool:
        """Whether a connection is some identity's."""
        return key in self._claims

    def __len__(self) -> int:
        """How many connections are claimed."""
        return len(self._by_fd)

    def flooding(self, most_bytes: int, seconds: float) -> list[Connection]:
        """Those that have sent more bytes than so many that are unread; ``seconds`` since it was asked before."""
        return [
            connection
            for connection in self._by_fd.values()
            if connection.backlog.unread_bytes(received_bytes(connection.socket), seconds) > most_bytes
        ]

    def ended(self) -> list[Connection]:
        """Those whose other end has closed them, or gives no sign of life."""
        return [self._by_fd[fd] for fd, _ in self._epoll.poll(0)]

    def end(self, connection: Connection) -> bool:
        """End a connection, unless it may be another identity's; whether its identity has gone, or goes now."""
        if not self._is_reachable(connection.identity):
            return True
        if self._claims[connection.key] > 1:
            return False
        try:
            connection.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return True  # it has gone by itself
        return True

    def release(self, connection: Connection) -> None:
        """Look at a connection no more; it goes on."""
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
    """``HOST:PORT`` of a connection's other end."""
    try:
        host, port, *_ = connection.getpeername()
    except OSError:
        return "?"
    return f"{host}:{port}"


def reset_when_closed(connection: socket.socket) -> None:
    """Have the other end told by a reset when ZeroMQ closes its side: a flood would wait, and not learn of it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def is_given(identity: bytes) -> bool:
    """Whether an identity looks like the ROUTER's own: a zero byte and a number of 32 bits."""
    return len(identity) == 5 and identity[0] == 0
