"""Pending connections: accepted, and not yet admitted. The gateway ends each that stays pending too long.

ZeroMQ ends a connection whose peer does not finish the handshake or stops its heartbeat. But a connection whose peer
does both and sends no frame has no identity by which the gateway could know it. So the gateway notes every connection
when it is accepted, and checks later whether an identity has claimed it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from dsp_server.gateway.backlog import MAX_UNKNOWN_BYTES, received_bytes
from dsp_server.gateway.connections import Connections, Key, peer_of, reset_when_closed

SILENT_SECONDS = 30.0  # a program sends HELLO right after its handshake, which takes 5 s at most
MAX_SILENT = 256  # each uses a descriptor
_NOBLOCK = int(zmq.NOBLOCK)


class _Pending(NamedTuple):
    fd: int  # ZeroMQ's descriptor; the number may belong to another connection by now
    accepted_at: float


class PendingConnections:
    """The connections that were accepted lately.

    Args:
        accepted: Monitor socket that reports each accepted connection (zmq.EVENT_ACCEPTED).
        connections: The claimed connections.
        log: Writes a sentence to the log.
        what: What they were made to, for sentences.
    """

    def __init__(
        self, accepted: zmq.Socket[bytes], connections: Connections, log: Callable[[str], None], what: str = "relay"
    ) -> None:
        self._accepted = accepted
        self._connections = connections
        self._log, self._what = log, what
        self._pending: dict[Key, _Pending] = {}  # oldest first; those to check again are last

    def on_accepted(self) -> None:
        """Note the connections that were accepted; end the oldest of more than MAX_SILENT."""
        with contextlib.suppress(zmq.Again):
            while True:
                self._note(int(recv_monitor_message(self._accepted, _NOBLOCK)["value"]))
        for key in list(self._pending)[: max(0, len(self._pending) - MAX_SILENT)]:
            self._check(key, f"it was not admitted, and {MAX_SILENT} newer connections are pending")

    def end_silent(self) -> None:
        """End the connections that are pending for SILENT_SECONDS."""
        now = time.monotonic()
        for key, pending in list(self._pending.items()):
            if now - pending.accepted_at >= SILENT_SECONDS:
                self._check(key, f"it was not admitted within {SILENT_SECONDS:g} s")

    def end_floods(self) -> None:
        """End the connections that have sent more bytes than a first frame has."""
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
        """End a connection that has sent more than so many bytes, unless it is claimed or has ended."""
        pending = self._pending.pop(key)
        if self._connections.is_claimed(key):
            return
        try:
            found = self._connections.copy_of(pending.fd)
        except OSError:  # no descriptor left: check again at the next beat
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
