"""What an ARM process and a relay say to each other: schema, codec, version. Pure functions; sockets live elsewhere.

Rules
    A frame is one msgpack list ``[version, kind, field, ...]`` of at most MAX_FRAME_BYTES. Each kind has a fixed list
    of fields, which a receiver checks before it looks at them; each side accepts the kinds of the other side alone.
    A task descriptor is the 64 bytes of ``hbrt.mailbox.REQUEST`` and an answer the 48 of ``ANSWER``, as in a slot.
    Nothing is ever evaluated or unpickled.
    The two frames of a call that succeeds, SUBMIT and END without a text, always have the same length and the same
    bytes before their field: a receiver that finds these has checked the frame, and need not parse it.
    ``MalformedMessageError``: the peer broke the protocol.

Talk
    HELLO shows who the sender is (a client of the board, by a proof of its lease); WELCOME or REFUSED answers it.
    SUBMIT is answered by one END when the task has ended, unless DROP came first. CANCEL, ASK and DROP are answered by
    STATE with their number, when it is done; before it comes the END of a task that was cancelled. PING is answered by
    PONG. BYE has no answer. GONE says that the relay ends, and why.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack

from hbrt.layout import SLOT_TEXT_BYTES
from hbrt.mailbox import ANSWER, REQUEST, State
from hbrt.wire import Int, MalformedMessageError, Text

VERSION = 1
MAX_FRAME_BYTES = 16 * 1024
_U32 = (1 << 32) - 1
_U64 = (1 << 64) - 1
_I32 = Int(-(1 << 31), (1 << 31) - 1)


class Kind(IntEnum):
    """Kinds of frames: up to BYE a client's, from WELCOME on the relay's."""

    HELLO = 1
    SUBMIT = 2
    CANCEL = 3
    ASK = 4
    DROP = 5
    PING = 6
    BYE = 7
    WELCOME = 16
    REFUSED = 17
    END = 18
    STATE = 19
    PONG = 20
    GONE = 21


class Raw(NamedTuple):
    """A field of bytes and the least and greatest number of them."""

    least: int
    most: int

    def problem(self, value: object) -> str:
        """Why the value is not one, or an empty text."""
        if type(value) is not bytes:
            return f"must be bytes, not {type(value).__name__}"
        return "" if self.least <= len(value) <= self.most else f"has {len(value)} bytes, not {self.least}..{self.most}"


# Field of SUBMIT: the sender's number of the task, then REQUEST. Field of END: that number, state, then ANSWER.
TASK_REQUEST = struct.Struct("<Q" + REQUEST.format.removeprefix("<"))
TASK_END = struct.Struct(f"<QQ{ANSWER.size}s")

_TASK = Int(1, _U64)
_NUMBER = Int(0, _U64)
_STATE = Int(0, max(State))

CLIENT_SAYS: dict[int, dict[str, Int | Text | Raw]] = {
    Kind.HELLO: {"client": Int(1, _U32), "nonce": Text(64), "proof": Text(64)},
    Kind.SUBMIT: {"task": Raw(TASK_REQUEST.size, TASK_REQUEST.size)},
    Kind.CANCEL: {"number": _NUMBER, "task": _TASK},
    Kind.ASK: {"number": _NUMBER, "task": _TASK},
    Kind.DROP: {"number": _NUMBER, "task": _TASK},
    Kind.PING: {"number": _NUMBER},
    Kind.BYE: {},
}
RELAY_SAYS: dict[int, dict[str, Int | Text | Raw]] = {
    Kind.WELCOME: {"pid": Int(1, _U32)},
    Kind.REFUSED: {"status": _I32, "text": Text()},
    Kind.END: {"task": Raw(TASK_END.size, TASK_END.size), "text": Raw(0, SLOT_TEXT_BYTES)},
    Kind.STATE: {"number": _NUMBER, "task": _TASK, "state": _STATE},
    Kind.PONG: {"number": _NUMBER},
    Kind.GONE: {"status": _I32, "text": Text()},
}


_SUBMIT, _END = int(Kind.SUBMIT), int(Kind.END)


class Message(NamedTuple):
    """A frame that was checked: its kind and its fields, in the order of the tables above."""

    kind: int
    fields: list[Any]


def encode(kind: Kind, *fields: Any) -> bytes:
    """Bytes of a frame. The fields are not checked here: the receiver does that."""
    raw: bytes = msgpack.packb((VERSION, int(kind), *fields))
    return raw


_NO_TEXT: bytes = msgpack.packb(b"")
_SUBMIT_HEAD = encode(Kind.SUBMIT, bytes(TASK_REQUEST.size))[: -TASK_REQUEST.size]
_SUBMIT_BYTES = len(_SUBMIT_HEAD) + TASK_REQUEST.size
_END_HEAD = encode(Kind.END, bytes(TASK_END.size), b"")[: -TASK_END.size - len(_NO_TEXT)]
_END_BYTES = len(_END_HEAD) + TASK_END.size + len(_NO_TEXT)


def encode_submit(task: int, *request: int) -> bytes:
    """SUBMIT: ``request`` are the fields of ``hbrt.mailbox.REQUEST``.

    Raises:
        struct.error: a field does not fit its bytes.
    """
    return _SUBMIT_HEAD + TASK_REQUEST.pack(task, *request)


def encode_end(task: int, state: int, answer: bytes, text: bytes = b"") -> bytes:
    """END: ``answer`` are the bytes of ``hbrt.mailbox.ANSWER``, ``text`` at most SLOT_TEXT_BYTES of UTF-8."""
    if text:
        return encode(Kind.END, TASK_END.pack(task, state, answer), text)
    return _END_HEAD + TASK_END.pack(task, state, answer) + _NO_TEXT


def decode(raw: bytes, says: dict[int, dict[str, Int | Text | Raw]]) -> Message:
    """Message from bytes.

    Args:
        raw: One frame.
        says: What the sender may say: CLIENT_SAYS or RELAY_SAYS.

    Raises:
        MalformedMessageError: not a frame of this protocol, or not one that this sender may send; names the field.
    """
    size = len(raw)
    if size == _SUBMIT_BYTES and says is CLIENT_SAYS and raw.startswith(_SUBMIT_HEAD):
        return Message(_SUBMIT, [raw[-TASK_REQUEST.size :]])
    if size == _END_BYTES and says is RELAY_SAYS and raw.startswith(_END_HEAD) and raw.endswith(_NO_TEXT):
        return Message(_END, [raw[len(_END_HEAD) : -len(_NO_TEXT)], b""])
    return _parse(raw, says)


def _parse(raw: bytes, says: dict[int, dict[str, Int | Text | Raw]]) -> Message:
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
