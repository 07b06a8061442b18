"""Receives local processes' messages from a ZeroMQ socket, and disconnects processes that flood it.

ZeroMQ must read everything (ZMQ_RCVHWM 0): libzmq 4.3.5 aborts the socket's process if a peer fills a queue, closes
its end and has sent a PING (``Assertion failed: !_io_error``, libzmq issues 4364 and 4767). A Unix socket cannot say
how many bytes it received. So the server takes all waiting messages before answering any: a peer that waits for its
answers has only a few messages there. A peer with more than MAX_WAITING_BYTES does not wait for answers.
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

MAX_WAITING_BYTES = 4 << 20  # per process
CHECK_BYTES = 1 << 16  # taken from a flooding process before it is checked again
_PEER = struct.Struct("=iII")  # SO_PEERCRED: process, user, group
_NOBLOCK = int(zmq.NOBLOCK)


class Intake:
    """Receives a socket's messages.

    Args:
        socket: The socket, not yet bound.
        endpoint: The ``ipc://PATH`` that it will be bound to.
        most: How many small messages of one process may wait; fewer if they are large.
        log: Writes a sentence to the log.
    """

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str, most: int, log: Callable[[str], None]) -> None:
        socket.rcvhwm = 0
        self._socket = socket
        self._path = endpoint.removeprefix("ipc://").encode()
        self._name = endpoint.rpartition("/")[2]
        self._message_bytes = MAX_WAITING_BYTES // most  # each message counts as this many bytes plus its own size
        self._log = log

    def take_all(self) -> list[list[bytes]]:
        """Take all waiting messages, as lists of frames; those of flooding connections are dropped."""
        messages: list[list[bytes]] = []
        receive, room = self._socket.recv_multipart, MAX_WAITING_BYTES
        try:
            while room > 0:
                message = receive(_NOBLOCK)
                messages.append(message)
                room -= sum(map(len, message)) + self._message_bytes
        except zmq.Again:
            return messages
        return self._take_flood(messages)

    def _take_flood(self, messages: list[list[bytes]]) -> list[list[bytes]]:
        """Take the messages of a possible flood, counting them by process."""
        receive = self._socket.recv
        taken: Counter[str] = Counter()
        next_checks: dict[str, float] = {}  # number of bytes at which each flooding process is checked next
        flooding: set[bytes] = set()  # identities of the ROUTER socket
        with contextlib.suppress(zmq.Again):
            while True:
                frames = [receive(_NOBLOCK, copy=False)]
                while frames[-1].more:
                    frames.append(receive(_NOBLOCK, copy=False))
                peer = _peer_of(frames[-1])
                taken[peer] += sum(map(len, frames)) + self._message_bytes
                if not peer or taken[peer] <= MAX_WAITING_BYTES:
                    messages.append([frame.bytes for frame in frames])
                    continue
                if len(frames) > 1:
                    flooding.add(frames[0].bytes)
                if taken[peer] > next_checks.get(peer, 0):
                    next_checks[peer] = math.inf if self._end(frames[-1], peer) else taken[peer] + CHECK_BYTES
        return [message for message in messages if message[0] not in flooding]

    def _end(self, frame: zmq.Frame, peer: str) -> bool:
        """End a frame's connection; False if it has closed, so that its number may belong to another one."""
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
        self._log(f"Ended a connection of process {process} to {self._name}: it sends without waiting for answers.")
        return True

    def _is_ours(self, found: socket.socket) -> bool:
        return found.family == socket.AF_UNIX and os.fsencode(found.getsockname()) == self._path


def source_fd(frame: zmq.Frame) -> int:
    """Descriptor of a frame's connection, as stored in the frame; -1 for none."""
    try:
        return int(frame.get(zmq.MessageOption.SRCFD))
    except zmq.ZMQError:
        return -1


def copy_of(fd: int, is_ours: Callable[[socket.socket], bool]) -> socket.socket | None:
    """Return a duplicate of a descriptor if it is one of our connections, else None.

    Raises:
        OSError: this process is out of descriptors.
    """
    try:
        os.fstat(fd)
    except OSError:
        return None
    copy = os.dup(fd)
    try:
        found = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)  # not a socket
        return None
    with contextlib.suppress(OSError):
        found.getpeername()  # raises unless it is connected
        if is_ours(found):
            return found
    found.close()
    return None


def _peer_of(frame: zmq.Frame) -> str:
    """Return ``ADDRESS:USER:GROUP:PROCESS`` of a frame's sender; empty for this process."""
    try:
        return str(frame.get("Peer-Address"))
    except zmq.ZMQError:
        return ""
