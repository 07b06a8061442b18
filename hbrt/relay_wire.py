"""What an ARM process and a relay say to each other: schema, codec, version. Pure functions; sockets live elsewhere.

Rules
    A frame is one msgpack list ``[version, kind, field, ...]`` of at most MAX_FRAME_BYTES. Each kind has a fixed list
    of fields, which a receiver checks before it looks at them; each side accepts the kinds of the other side alone.
    A task descriptor is the 64 bytes of ``hbrt.mailbox.REQUEST``, as in the slot that its handle names.
    Nothing is ever evaluated or unpickled.
    The frame of a call, SUBMIT, always has the same length and the same bytes before its field: a receiver that finds
    these has checked the frame, and need not parse it.
    ``MalformedMessageError``: the peer broke the protocol.

Two sockets
    All talk goes over a ROUTER, but SUBMIT, which goes to a PULL: one frame to receive, without the sender's name
    before it. The sender is told by a ticket, a random number that its WELCOME gave it.

Talk
    HELLO shows who the sender is (a client of the board, by a proof of its lease); WELCOME or REFUSED answers it.
    SUBMIT has no answer: the relay makes the task's slot READY, and the core that ends the task rings its owner. A
    task that the relay refuses ends in its slot too, and END tells the owner to look, since a relay has no doorbell of
    it. A SUBMIT whose slot holds something else by now was taken back, and means nothing. PING is answered by PONG.
    BYE has no answer. GONE says that the relay ends, and why. REFUSED without a HELLO: the relay does not serve this
    process, or not what it said.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack

from hbrt.mailbox import REQUEST
from hbrt.wire import Int, MalformedMessageError, Text

VERSION = 2
MAX_FRAME_BYTES = 16 * 1024
_U32 = (1 << 32) - 1
_U64 = (1 << 64) - 1
_I32 = Int(-(1 << 31), (1 << 31) - 1)


class Kind(IntEnum):
    """Kinds of frames: up to BYE a client's, from WELCOME on the relay's."""

    HELLO = 1
    SUBMIT = 2
    PING = 3
    BYE = 4
    WELCOME = 16
    REFUSED = 17
    END = 18
    PONG = 19
    GONE = 20


class Raw(NamedTuple):
    """A field of bytes and the least and greatest number of them."""

    least: int
    most: int

    def problem(self, value: object) -> str:
        """Why the value is not one, or an empty text."""
        if type(value) is not bytes:
            return f"must be bytes, not {type(value).__name__}"
        return "" if self.least <= len(value) <= self.most else f"has {len(value)} bytes, not {self.least}..{self.most}"


# Field of SUBMIT: the sender's ticket, the task's handle, then REQUEST.
TASK_REQUEST = struct.Struct("<QQ" + REQUEST.format.removeprefix("<"))

_TASK = Int(1, _U64)
_NUMBER = Int(0, _U64)

CLIENT_SAYS: dict[int, dict[str, Int | Text | Raw]] = {
    Kind.HELLO: {"client": Int(1, _U32), "nonce": Text(64), "proof": Text(64)},
    Kind.SUBMIT: {"task": Raw(TASK_REQUEST.size, TASK_REQUEST.size)},
    Kind.PING: {"number": _NUMBER},
    Kind.BYE: {},
}
RELAY_SAYS: dict[int, dict[str, Int | Text | Raw]] = {
    Kind.WELCOME: {"pid": Int(1, _U32), "ticket": Int(1, _U64)},
    Kind.REFUSED: {"status": _I32, "text": Text()},
    Kind.END: {"task": _TASK},
    Kind.PONG: {"number": _NUMBER},
    Kind.GONE: {"status": _I32, "text": Text()},
}


class Message(NamedTuple):
    """A frame that was checked: its kind and its fields, in the order of the tables above."""

    kind: int
    fields: list[Any]


def encode(kind: Kind, *fields: Any) -> bytes:
    """Bytes of a frame. The fields are not checked here: the receiver does that."""
    raw: bytes = msgpack.packb((VERSION, int(kind), *fields))
    return raw


SUBMIT_HEAD = encode(Kind.SUBMIT, bytes(TASK_REQUEST.size))[: -TASK_REQUEST.size]
# A whole SUBMIT: SUBMIT_HEAD, ticket, handle, then REQUEST.
SUBMIT = struct.Struct(f"<{len(SUBMIT_HEAD)}s" + TASK_REQUEST.format.removeprefix("<"))
REQUEST_AT = SUBMIT.size - REQUEST.size  # where its descriptor begins


def decode(raw: bytes, says: dict[int, dict[str, Int | Text | Raw]]) -> Message:
    """Message from bytes.

    Args:
        raw: One frame.
        says: What the sender may say: CLIENT_SAYS or RELAY_SAYS.

    Raises:
        MalformedMessageError: not a frame of this protocol, or not one that this sender may send; names the field.
    """
    if len(raw) > MAX_FRAME_BYTES:
        raise MalformedMessageError(f"The frame has {len(raw)} bytes; the limit is {MAX_FRAME_BYTES}.")
    try:
        body = msgpack.unpackb(raw, raw=False)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError, TypeError) as error:
        raise MalformedMessageError(f"The frame is not msgpack: {error or type(error).__name__}.") from None
    if type(body) is not list or len(body) < 2:
        raise MalformedMessageError("The frame is not a list of a version, a kind and fields.")
    if type(body[0]) is not int or body[0] != VERSION:
        raise MalformedMessageError(
            f"The frame has relay protocol version {body[0]!r:.40}; this side speaks {VERSION}. "
            "Use the same installation on both sides."
        )
    kind = body[1]
    spec = says.get(kind) if type(kind) is int else None
    if spec is None:
        raise MalformedMessageError(f"The kind {kind!r:.40} is not one that this sender may send.")
    fields = body[2:]
    if len(fields) != len(spec):
        raise MalformedMessageError(f"{Kind(kind).name} has {len(spec)} fields; {len(fields)} came.")
    for value, (name, field) in zip(fields, spec.items(), strict=True):
        if problem := field.problem(value):
            raise MalformedMessageError(f"The field {name!r} of {Kind(kind).name} {problem}.")
    return Message(kind, fields)
