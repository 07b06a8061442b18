"""Takes what processes of this machine sent to a ZeroMQ socket; ends the connection of one that floods it.

ZeroMQ must read all that comes (ZMQ_RCVHWM 0): libzmq 4.3.5 aborts the process of a socket whose peer fills a queue,
closes its end and has sent a PING (``Assertion failed: !_io_error``, libzmq issues 4364 and 4767). A Unix socket has no
count of bytes that the server could compare. So the server takes all that waits before it answers anything: a peer that
waits for its answers has a few messages there. One that has more than MOST_WAITING_BYTES is not waiting for answers.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable

import zmq

MOST_WAITING_BYTES = 4 << 20  # of one process
LOOK_BYTES = 1 << 16  # of a connection that floods are taken before it is looked at again
_PEER = struct.Struct("=iII")  # of SO_PEERCRED: process, user, group
_NOBLOCK = int(zmq.NOBLOCK)


class Intake:
    """The messages of a socket.

    Args:
        socket: It is not bound yet.
        endpoint: ``ipc://PATH`` that it will be bound to.
        most: How many small messages of one process may wait; there may be fewer large ones.
        say: Gets a sentence for the log.
    """

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str, most: int, say: Callable[[str], None]) -> None:
        socket.rcvhwm = 0
        self._socket = socket
        self._path = endpoint.removeprefix("ipc://").encode()
        self._name = endpoint.rpartition("/")[2]
        self._message_bytes = MOST_WAITING_BYTES // most  # each counts as so many more than it has
        self._say = say

    def take_all(self) -> list[list[bytes]]:
        """The messages that wait, each with all its frames; those of a connection that floods are dropped."""
        messages: list[list[bytes]] = []
        receive, room = self._socket.recv_multipart, MOST_WAITING_BYTES
        try:
            while room > 0:
                message = receive(_NOBLOCK)
                messages.append(message)
                room -= sum(map(len, message)) + self._message_bytes
        except zmq.Again:
            return messages
        return self._take_flood(messages)

    def _take_flood(self, messages: list[list[bytes]]) -> list[list[bytes]]:
        """Take more than peers that wait for their answers have sent, counted by process."""
        receive = self._socket.recv
        taken: Counter[str] = Counter()
        looks: dict[str, float] = {}  # at processes that flood: the next, when so many bytes were taken
        flooding: set[bytes] = set()  # identities that a ROUTER gave
        with contextlib.suppress(zmq.Again):
            while True:
                frames = [receive(_NOBLOCK, copy=False)]
                while frames[-1].more:
                    frames.append(receive(_NOBLOCK, copy=False))
                peer = _peer_of(frames[-1])
                taken[peer] += sum(map(len, frames)) + self._message_bytes
                if not peer or taken[peer] <= MOST_WAITING_BYTES:
                    messages.append([frame.bytes for frame in frames])
                    continue
                if len(frames) > 1:
                    flooding.add(frames[0].bytes)
                if taken[peer] > looks.get(peer, 0):
                    looks[peer] = math.inf if self._end(frames[-1], peer) else taken[peer] + LOOK_BYTES
        return [message for message in messages if message[0] not in flooding]

    def _end(self, frame: zmq.Frame, peer: str) -> bool:
        """End the connection that a frame came over; False when it has gone: its number may be another one's."""
        try:
            found = copy_of(source_fd(frame), self._is_ours)
            if found is None:
                return False
            with found:
                process, user, group = _PEER.unpack(found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
                if not peer.endswith(f":{user}:{group}:{process}"):
                    return False
                found.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
        self._say(f"Ended a connection of process {process} to {self._name}: it sends and does not wait for answers.")
        return True

    def _is_ours(self, found: socket.socket) -> bool:
        return found.family == socket.AF_UNIX and os.fsencode(found.getsockname()) == self._path


def source_fd(frame: zmq.Frame) -> int:
    """Descriptor that a frame says it came over; -1 when it says none."""
    try:
        return int(frame.get(zmq.MessageOption.SRCFD))
    except zmq.ZMQError:
        return -1


def copy_of(fd: int, is_ours: Callable[[socket.socket], bool]) -> socket.socket | None:
    """A connection by another descriptor than the one that names it; None when that names none of ours.

    Raises:
        OSError: this process has no descriptor left.
    """
    try:
        os.fstat(fd)
    except OSError:
        return None
    copy = os.dup(fd)
    try:
        found = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)  # no socket at all
        return None
    with contextlib.suppress(OSError):
        found.getpeername()  # it is connected
        if is_ours(found):
            return found
    found.close()
    return None


def _peer_of(frame: zmq.Frame) -> str:
    """``ADDRESS:USER:GROUP:PROCESS`` of who sent a frame; an empty text when it is this process."""
    try:
        return str(frame.get("Peer-Address"))
    except zmq.ZMQError:
        return ""
