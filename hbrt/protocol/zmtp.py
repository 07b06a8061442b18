"""The bytes of a ZeroMQ stream (ZMTP 3.0, NULL, a DEALER) as an attached process writes and reads them.

ZeroMQ's own library has threads, descriptors and aborts of its own; one connection with single-frame messages needs
none of them, and a process that reads its socket itself loses no message when a signal's handler raises.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
_LONG, _COMMAND = 2, 4
_LARGEST_SHORT = 255
_LONG_SIZE = struct.Struct(">Q")
_SHORT_HEAD, _LONG_HEAD = 2, 9


def frame(message: bytes) -> bytes:
    """A message of one frame."""
    if len(message) <= _LARGEST_SHORT:
        return bytes((0, len(message))) + message
    return bytes((_LONG,)) + _LONG_SIZE.pack(len(message)) + message


def frames(stream: bytes) -> Iterator[tuple[bytes | None, int]]:
    """Each whole frame of a stream: its message, None for a command and where it ends."""
    at = 0
    while end := _end(stream, at):
        head = _LONG_HEAD if stream[at] & _LONG else _SHORT_HEAD
        yield None if stream[at] & _COMMAND else stream[at + head : end], end
        at = end


def needed_bytes(stream: bytes) -> int:
    """How many bytes the first frame of a stream has; 0 when too little of it is there to tell."""
    is_long = bool(stream) and stream[0] & _LONG
    if len(stream) < (_LONG_HEAD if is_long else _SHORT_HEAD):
        return 0
    return _LONG_HEAD + _LONG_SIZE.unpack_from(stream, 1)[0] if is_long else _SHORT_HEAD + stream[1]


def _end(stream: bytes, at: int) -> int:
    size = needed_bytes(stream[at : at + _LONG_HEAD])
    return at + size if size and at + size <= len(stream) else 0
