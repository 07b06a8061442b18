"""Connections that were accepted and that nobody has been let in by: each is ended after a while.

ZeroMQ ends one whose other end does not finish the handshake, or gives no sign of life. But one that does both and says
nothing has no identity that the gate could know it by. So the gate hears of every connection when it is accepted, and
looks later whether it has become somebody's.
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

from dsp_server.gateway.backlog import MOST_UNKNOWN_BYTES, received_bytes
from dsp_server.gateway.connections import Connections, Key, peer_of, reset_when_closed

SILENT_SECONDS = 30.0  # a program says who it is as soon as its handshake is over, which takes 5 s at most
MOST_SILENT = 256  # each takes a descriptor
_NOBLOCK = int(zmq.NOBLOCK)


class _Newcomer(NamedTuple):
    """A connection by the number of its descriptor, which may be another's by now, and when it was accepted."""

    fd: int
    came_at: float


class Newcomers:
    """Those who were accepted lately.

    Args:
        accepted: Tells of each (zmq.EVENT_ACCEPTED).
        connections: What is somebody's.
        say: Gets a sentence for the log.
    """

    def __init__(self, accepted: zmq.Socket[bytes], connections: Connections, say: Callable[[str], None]) -> None:
        self._accepted = accepted
        self._connections = connections
        self._say = say
        self._found: dict[Key, _Newcomer] = {}  # in the order in which they came; last, who is to be looked at again

    def take_in(self) -> None:
        """Note who was accepted; of more than may be silent, the oldest has to go."""
        with contextlib.suppress(zmq.Again):
            while True:
                self._note(int(recv_monitor_message(self._accepted, _NOBLOCK)["value"]))
        for key in list(self._found)[: max(0, len(self._found) - MOST_SILENT)]:
            self._look_at(key, f"yet, and {MOST_SILENT} came after it")

    def end_silent(self) -> None:
        """End those whose time is over."""
        now = time.monotonic()
        for key, newcomer in list(self._found.items()):
            if now - newcomer.came_at >= SILENT_SECONDS:
                self._look_at(key, f"in {SILENT_SECONDS:g} s")

    def end_floods(self) -> None:
        """End those that have sent more than a first frame may have."""
        for key in list(self._found):
            self._look_at(key, f"and it has sent more than {MOST_UNKNOWN_BYTES} bytes", MOST_UNKNOWN_BYTES)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found)

    def _note(self, fd: int) -> None:
        try:
            stat = os.fstat(fd)
        except OSError:
            return  # it has gone again
        key = stat.st_dev, stat.st_ino
        self._found.pop(key, None)
        self._found[key] = _Newcomer(fd, time.monotonic())

    def _look_at(self, key: Key, why: str, more_than: int = -1) -> None:
        """End a connection that more bytes came over, unless it is somebody's or has gone; else look at it no more."""
        newcomer = self._found.pop(key)
        if self._connections.is_claimed(key):
            return
        try:
            found = self._connections.copy_of(newcomer.fd)
        except OSError:  # no descriptor left: again at the next beat
            self._found[key] = (
                newcomer if more_than >= 0 else newcomer._replace(came_at=newcomer.came_at - SILENT_SECONDS)
            )
            return
        if found is None:
            return
        with found:
            stat = os.fstat(found.fileno())
            if (stat.st_dev, stat.st_ino) != key:
                return  # the number is another connection's
            if received_bytes(found) <= more_than:
                self._found[key] = newcomer
                return
            self._say(f"The relay ends a connection from {peer_of(found)}: nobody was let in by it {why}.")
            if more_than >= 0:
                reset_when_closed(found)
            with contextlib.suppress(OSError):  # it has gone by itself
                found.shutdown(socket.SHUT_RDWR)
