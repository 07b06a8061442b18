"""How many bytes a connection has sent that the gate has not read; ZeroMQ holds them, and sets no bound to them.

ZeroMQ's own bound (ZMQ_RCVHWM) makes it stop reading from a connection whose queue is full. In libzmq 4.3.5 that is how
a peer ends the process: the peer resets the connection, and the next heartbeat, or a PING that was read before, meets
``Assertion failed: !_io_error`` (libzmq issues 4364 and 4767). So ZeroMQ reads all that comes. The gate compares the
kernel's count of bytes that came with the sizes of the frames that it took, and ends a connection that is far ahead.
"""

from __future__ import annotations

import socket
import struct

from hbrt.protocol.remote import MAX_FRAME_BYTES, WINDOW_BYTES

MOST_UNREAD_BYTES = 2 * WINDOW_BYTES + 4 * MAX_FRAME_BYTES  # what a program that keeps to its window never reaches
MOST_UNKNOWN_BYTES = 1 << 18  # of a connection that nobody was let in by: it has one small frame to send
LIVELINESS_BYTES = 256  # a second, which the gate does not see: PING and PONG
_RECEIVED = struct.Struct("=128xQ")  # of struct tcp_info: tcpi_bytes_received
_CURVE_BYTES = 33  # of a message with keys: name of the command, nonce, authenticator, flags


class Backlog:
    """Unread bytes of one connection: a count, no clock and no socket.

    Args:
        has_keys: Whether its frames are encrypted, and so longer.
    """

    def __init__(self, *, has_keys: bool = False) -> None:
        self._overhead = _CURVE_BYTES if has_keys else 0
        self._read = 0

    def on_frame(self, size_bytes: int) -> None:
        """A frame was taken: it had a short or a long header before it."""
        body = size_bytes + self._overhead
        self._read += body + (2 if body < 1 << 8 else 9)

    def unread_bytes(self, received_bytes: int, seconds: float) -> int:
        """Bytes that are unread, of those that came so far; ``seconds`` since it was asked before."""
        self._read = min(self._read + int(LIVELINESS_BYTES * seconds), received_bytes)
        return received_bytes - self._read


def received_bytes(connection: socket.socket) -> int:
    """Bytes that came over a TCP connection since it was made."""
    (count,) = _RECEIVED.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size))
    return int(count)
