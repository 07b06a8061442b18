"""The backlog of a connection: bytes that it has sent and the gateway has not read. ZeroMQ holds them without a bound.

With ZeroMQ's own bound (ZMQ_RCVHWM), ZeroMQ stops reading from a connection whose queue is full. In libzmq 4.3.5 a peer
can then end the process: the peer resets the connection, and the next heartbeat, or a PING that was read before, meets
``Assertion failed: !_io_error`` (libzmq issues 4364 and 4767). So ZeroMQ reads everything. The gateway subtracts the
sizes of the frames that it took from the kernel's count of received bytes, and ends a connection with a large rest.
"""

from __future__ import annotations

import socket
import struct

from hbrt.protocol.remote import MAX_FRAME_BYTES, WINDOW_BYTES

MAX_UNREAD_BYTES = 2 * WINDOW_BYTES + 4 * MAX_FRAME_BYTES  # a program that respects its window never reaches this
MAX_UNKNOWN_BYTES = 1 << 18  # of a pending connection: its first frame is small
LIVELINESS_BYTES = 256  # a second, which the gateway does not see: PING and PONG
_RECEIVED = struct.Struct("=128xQ")  # of struct tcp_info: tcpi_bytes_received
_CURVE_BYTES = 33  # of a message with keys: command name, nonce, authenticator, flags


class Backlog:
    """Counts the unread bytes of one connection; it has no clock and no socket.

    Args:
        has_keys: Whether its frames are encrypted, and therefore longer.
    """

    def __init__(self, *, has_keys: bool = False) -> None:
        self._overhead = _CURVE_BYTES if has_keys else 0
        self._read = 0

    def on_frame(self, size_bytes: int) -> None:
        """Count a frame that was read, with its short or long header."""
        body = size_bytes + self._overhead
        self._read += body + (2 if body < 1 << 8 else 9)

    def unread_bytes(self, received_bytes: int, seconds: float) -> int:
        """Unread bytes among those received so far; ``seconds`` is the time since the last call."""
        self._read = min(self._read + int(LIVELINESS_BYTES * seconds), received_bytes)
        return received_bytes - self._read


def received_bytes(connection: socket.socket) -> int:
    """Bytes received over a TCP connection since its start."""
    (count,) = _RECEIVED.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size))
    return int(count)
