"""Events of a ZeroMQ socket. pyzmq's own function loads asyncio and ssl: 15 of the 230 ms of a gateway's start."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import zmq

_EVENT = struct.Struct("=Hi")  # see zmq_socket_monitor(3)


def next_event(monitor: zmq.Socket[bytes], flags: int = 0) -> tuple[int, int]:
    """Receive an event and its value from a socket's monitor.

    Args:
        monitor: See ``zmq.Socket.get_monitor_socket``.
        flags: Flags of ``recv_multipart``.

    Raises:
        zmq.Again: there is none, with zmq.NOBLOCK.
    """
    event, value = _EVENT.unpack(monitor.recv_multipart(flags)[0])
    return event, value
