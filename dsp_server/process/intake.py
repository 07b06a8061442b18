"""Receives the messages of this machine's processes at a ZeroMQ socket, and ends the connection of one that floods it.

ZeroMQ must read everything (ZMQ_RCVHWM 0): libzmq 4.3.5 aborts the process of a socket whose peer fills a queue, closes
its end and has sent a PING (``Assertion failed: !_io_error``, libzmq issues 4364 and 4767). A Unix socket has no count
of received bytes to compare with. So the server takes all waiting messages before it answers any: a peer that waits for
its answers has a few messages there. A peer with more than MAX_WAITING_BYTES does not wait for answers.
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

MAX_WAITING_BYTES = 4 << 20  # of one process
CHECK_BYTES = 1 << 16  # are taken from a flooding process before it is checked again
_PEER = struct.Struct("=iII")  # of SO_PEERCRED: process, user, group
_NOBLOCK = int(zmq.NOBLOCK)


class Intake:
    """The messages of a socket.

    Args:
        socket: The socket, before its bind.
        endpoint: ``ipc://PATH`` that it will be bound to.
        most: The most small messages of one process that may wait; of large ones fewer.
        log: Writes a sentence to the log.
    """

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str, most: int, log: Callable[[str], None]) -> None:
        socket.rcvhwm = 0
        self._socket = socket
        self._path = endpoint.removeprefix("ipc://").encode()
        self._name = endpoint.rpartition("/")[2]
        self._message_bytes = MAX_WAITING_BYTES // most  # each message counts this many bytes more than it has
        self._log = log

    def take_all(self) -> list[list[bytes]]:
        """All waiting messages, each with its frames; those of a flooding connection are dropped."""
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
        """Take the messages of a possible flood, counted by process."""
        receive = self._socket.recv
        taken: Counter[str] = Counter()
        next_checks: dict[str, float] = {}  # flooding processes: bytes taken at their next check
        flooding: set[bytes] = set()  # the ROUTER's identities
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
        """End the connection of a frame; False when it has closed, and its number may belong to another one."""
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
        self._log(f"Ended a connection of process {process} to {self._name}: it sends and does not wait for answers.")
        return True

    def _is_ours(self, found: socket.socket) -> bool:
        return found.family == socket.AF_UNIX and os.fsencode(found.getsockname()) == self._path


def source_fd(frame: zmq.Frame) -> int:
    """Descriptor of a frame's connection, as the frame names it; -1 for none."""
    try:
        return int(frame.get(zmq.MessageOption.SRCFD))
    except zmq.ZMQError:
        return -1


def copy_of(fd: int, is_ours: Callable[[socket.socket], bool]) -> socket.socket | None:
    """A duplicate of a descriptor, if it is one of our connections; else None.

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
    """``ADDRESS:USER:GROUP:PROCESS`` of a frame's sender; empty for this process."""
    try:
        return str(frame.get("Peer-Address"))
    except zmq.ZMQError:
        return ""
