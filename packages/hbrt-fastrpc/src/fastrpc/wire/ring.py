"""The rings of a dspqueue: packets in board memory, with one writer and one reader. Pure.

``native/dsp/dspqueue.c`` is the counterpart for images in C.

A packet has a header, buffer descriptions, and a message; it never wraps. A SKIP header sends the reader to the start.
Sizes are multiples of 8.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from fastrpc.wire import types
from fastrpc.wire.aee import Aee, AeeError

MAX_BYTES: Final = 16 << 20
MAX_BUFFERS: Final = 64
MAX_MESSAGE: Final = 65_536
FLAG_MESSAGE: Final = int(types.DSPQUEUE_PACKET_FLAG_MESSAGE)
FLAG_BUFFERS: Final = int(types.DSPQUEUE_PACKET_FLAG_BUFFERS)
FLAG_WAKEUP: Final = int(types.DSPQUEUE_PACKET_FLAG_WAKEUP)
OWN_FLAGS: Final = FLAG_MESSAGE | FLAG_BUFFERS | FLAG_WAKEUP
"""Flags implied by a packet's contents, regardless of the writer's."""
WAKEUP: Final = struct.Struct("<II")
"""Message of an early wake-up, which readers do not receive: microseconds until the packet, and its flags."""
MAX_QUEUES: Final = 64
"""Maximum number of queues in a process."""
BUFFER_REF: Final = int(types.DSPQUEUE_BUFFER_FLAG_REF)
BUFFER_DEREF: Final = int(types.DSPQUEUE_BUFFER_FLAG_DEREF)
HEAD_BYTES: Final = 64

PACKET: Final = struct.Struct("<HHI")
"""Flags, number of buffers, bytes of the message."""
BUFFER: Final = struct.Struct("<IIIIQ")
"""Descriptor, bytes, offset, flags, physical address."""
_SKIP: Final = 0xFFFF


class Buffer(NamedTuple):
    """A buffer referenced by a packet."""

    fd: int
    size: int
    offset: int
    flags: int
    phy_addr: int


class Packet(NamedTuple):
    """A packet."""

    flags: int
    buffers: tuple[Buffer, ...]
    message: bytes


class Ring:
    """A ring.

    Args:
        view: Its header and its bytes, initially zeros.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view
        # Where the next packet is written and read. Stored as words: struct writes zeros first, which the other side
        # would take for a position.
        self._at = view[:8].cast("I")
        self._size = len(view) - HEAD_BYTES

    def write(self, buffers: tuple[Buffer, ...], message: bytes, flags: int = 0) -> bool:
        """Add a packet, with these flags in addition to those implied by its contents; False if there is no room now.

        Raises:
            AeeError: AEE_EBADPARM: more buffers or bytes than a packet of this ring may have; AEE_EBADSTATE: the
                positions do not fit the ring.
        """
        need = _whole(len(buffers), len(message))
        if len(buffers) > MAX_BUFFERS or len(message) > MAX_MESSAGE or need > self._size - 8:
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"A packet of {len(buffers)} buffers and {len(message)} bytes is too large: at most "
                f"{MAX_BUFFERS} buffers, {MAX_MESSAGE} bytes, and {self._size - 8} bytes of the queue are allowed.",
            )
        written, read = self._positions()
        at = written
        if written >= read and need > self._size - written - (8 if not read else 0):
            at = 0
        if at == written and written >= read:
            pass
        elif need >= read - at:  # a full ring would look empty
            if written == read:  # it is empty: send the reader to the start, for the next attempt
                PACKET.pack_into(self._view, HEAD_BYTES + written, _SKIP, 0, 0)
                self._at[0] = 0
            return False
        if at != written:
            PACKET.pack_into(self._view, HEAD_BYTES + written, _SKIP, 0, 0)
        flags |= (FLAG_MESSAGE if message else 0) | (FLAG_BUFFERS if buffers else 0)
        raw = PACKET.pack(flags, len(buffers), len(message)) + b"".join(BUFFER.pack(*one) for one in buffers) + message
        self._view[HEAD_BYTES + at : HEAD_BYTES + at + len(raw)] = raw
        self._at[0] = (at + need) % self._size  # last: the reader sees only whole packets
        return True

    def peek(self) -> tuple[int, int, int] | None:
        """Flags, buffers and bytes of the next packet; None if there is none.

        Raises:
            AeeError: AEE_EBADSTATE, as all below: the positions, or the packet there, do not fit the ring.
        """
        found = self._next()
        return None if found is None else found[2:]

    def read(self) -> Packet | None:
        """Take the next packet; None if there is none."""
        if (found := self._next()) is None:
            return None
        at, after, flags, count, length = found
        start = HEAD_BYTES + at + PACKET.size
        buffers = tuple(Buffer(*BUFFER.unpack_from(self._view, start + index * BUFFER.size)) for index in range(count))
        behind = start + count * BUFFER.size
        message = bytes(self._view[behind : behind + length])
        self._at[1] = after
        return Packet(flags, buffers, message)

    def depth(self) -> tuple[int, int]:
        """Packets in the ring, and their bytes."""
        written, at = self._positions()
        packets = size = 0
        while (found := self._find(at, written)) is not None:
            _, at, _, count, length = found
            packets, size = packets + 1, size + _whole(count, length)
        return packets, size

    def _next(self) -> tuple[int, int, int, int, int] | None:
        """Like ``_find``, for the next packet that is not an early wake-up."""
        written, at = self._positions()
        while (found := self._find(at, written)) is not None and found[2] & FLAG_WAKEUP:
            at = found[1]
            self._at[1] = at
        if found is None and at != written:  # the writer waits until the reader is back at the start
            self._at[1] = written
        return found

    def _find(self, at: int, written: int) -> tuple[int, int, int, int, int] | None:
        """The position of a packet and of the next one, its flags, buffers and bytes; None if there is none."""
        while at != written:
            end = written if at < written else self._size
            flags, count, length = PACKET.unpack_from(self._view, HEAD_BYTES + at)
            if flags == _SKIP and at > written:
                at = 0
                continue
            if flags == _SKIP or count > MAX_BUFFERS or length > MAX_MESSAGE or _whole(count, length) > end - at:
                raise self._damaged(at)
            return at, (at + _whole(count, length)) % self._size, flags, count, length
        return None

    def _positions(self) -> tuple[int, int]:
        """The positions for the next write and read; checked, since the other side shares the memory."""
        written, read = self._at
        for at in (written, read):
            if at >= self._size or at % 8:
                raise self._damaged(at)
        return written, read

    def _damaged(self, at: int) -> AeeError:
        return AeeError(
            Aee.AEE_EBADSTATE,
            f"A ring of the queue is corrupt: no packet can be at position {at} of its {self._size} bytes. The program "
            "has overwritten it.",
        )


class Queue(NamedTuple):
    """The rings of a queue, and the byte that tells whether the DSP side is processing it.

    Attributes:
        view: All bytes.
        requests: To the DSP.
        responses: To the CPU.
    """

    view: memoryview
    requests: Ring
    responses: Ring

    @property
    def is_served(self) -> bool:
        """Whether the DSP side was notified and has not yet found the requests empty for the last time."""
        return bool(self.view[_SERVED])

    def set_served(self, *, is_served: bool) -> None:
        """Note it."""
        self.view[_SERVED] = is_served

    @property
    def importer(self) -> int:
        """The core whose image has the queue open; -1 if none has."""
        return int(self.view[_IMPORTER]) - 1

    def set_importer(self, core: int) -> None:
        """Note it."""
        self.view[_IMPORTER] = core + 1


def _whole(buffers: int, message_bytes: int) -> int:
    """Bytes of a packet in a ring."""
    return -(-(PACKET.size + BUFFER.size * buffers + message_bytes) // 8) * 8


SIZES: Final = struct.Struct("<II")
"""At the start of a queue: sizes of its rings, including their headers."""
_SERVED, _IMPORTER = 16, 17
QUEUE_HEAD_BYTES: Final = 64


def ring_bytes(size: int) -> int:
    """Size of a ring for this many bytes of packets.

    Raises:
        AeeError: AEE_EBADPARM: more than 16 MiB, or 0.
    """
    if not 0 < size <= MAX_BYTES:
        raise AeeError(Aee.AEE_EBADPARM, f"Invalid queue size {size}: must be 1 to {MAX_BYTES} bytes.")
    return HEAD_BYTES + max(-(-size // 8) * 8, 16)


def queue_of(view: memoryview) -> Queue:
    """The queue in its bytes, whose sizes have already been written."""
    requests, responses = SIZES.unpack_from(view)
    end = QUEUE_HEAD_BYTES + requests
    return Queue(view, Ring(view[QUEUE_HEAD_BYTES:end]), Ring(view[end : end + responses]))


def is_ring(size_bytes: int) -> bool:
    """Whether this is a valid size for a ring with its header."""
    return HEAD_BYTES < size_bytes <= HEAD_BYTES + MAX_BYTES and size_bytes % 8 == 0
