"""Messages between an ARM process and a relay: schema, codec, version. Pure functions; sockets are elsewhere.

Rules
    A frame is one msgpack list ``[version, kind, field, ...]`` of at most MAX_FRAME_BYTES. Each kind has a fixed list
    of fields, which a receiver checks before reading them; each side accepts only the other side's kinds.
    A task descriptor is the 64 bytes of ``hbrt.mailbox.table.REQUEST``, as in the slot that its handle names.
    Nothing is ever evaluated or unpickled.
    The frame of a call, SUBMIT, always has the same length and the same bytes before its field: a receiver that finds
    these has checked the frame, and need not parse it.
    ``MalformedMessageError``: the peer broke the protocol.

Two sockets
    Everything goes over a ZeroMQ ROUTER except SUBMIT, which goes to a SOCK_SEQPACKET socket: one message, without the
    sender's name. The sender is identified by a ticket, a random number from its WELCOME.

Talk
    HELLO identifies the sender (a client of the board, by a proof of its lease); the answer is WELCOME or REFUSED.
    SUBMIT has no answer: the relay makes the task's slot READY, and the core that ends the task rings its owner. A task
    refused by the relay also ends in its slot, and END tells the owner to look, since a relay does not have its
    doorbell. A SUBMIT whose slot now holds something else was withdrawn and is ignored. PING is answered by PONG. BYE
    has no answer. GONE says that the relay is ending, and why. REFUSED without a HELLO: the relay does not serve this
    process, or not what it sent.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from hbrt.mailbox.table import REQUEST
from hbrt.protocol.control import Int, Text
from hbrt.protocol.frames import Protocol, Raw, Says

VERSION = 2
MAX_FRAME_BYTES = 16 * 1024
_U32 = (1 << 32) - 1
_U64 = (1 << 64) - 1
_I32 = Int(-(1 << 31), (1 << 31) - 1)


class RelayFrame(IntEnum):
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


# Field of SUBMIT: the sender's ticket, the task's handle, then REQUEST.
TASK_REQUEST = struct.Struct("<QQ" + REQUEST.format.removeprefix("<"))

_TASK = Int(1, _U64)
_NUMBER = Int(0, _U64)

CLIENT_SAYS: Says = {
    RelayFrame.HELLO: {"client": Int(1, _U32), "nonce": Text(64), "proof": Text(64)},
    RelayFrame.SUBMIT: {"task": Raw(TASK_REQUEST.size, TASK_REQUEST.size)},
    RelayFrame.PING: {"number": _NUMBER},
    RelayFrame.BYE: {},
}
RELAY_SAYS: Says = {
    RelayFrame.WELCOME: {"pid": Int(1, _U32), "ticket": Int(1, _U64)},
    RelayFrame.REFUSED: {"status": _I32, "text": Text()},
    RelayFrame.END: {"task": _TASK},
    RelayFrame.PONG: {"number": _NUMBER},
    RelayFrame.GONE: {"status": _I32, "text": Text()},
}

_PROTOCOL = Protocol("relay", VERSION, RelayFrame, MAX_FRAME_BYTES)
encode, decode = _PROTOCOL.encode, _PROTOCOL.decode

SUBMIT_HEAD = encode(RelayFrame.SUBMIT, bytes(TASK_REQUEST.size))[: -TASK_REQUEST.size]
# A whole SUBMIT: SUBMIT_HEAD, ticket, handle, then REQUEST.
SUBMIT = struct.Struct(f"<{len(SUBMIT_HEAD)}s" + TASK_REQUEST.format.removeprefix("<"))
REQUEST_AT = SUBMIT.size - REQUEST.size  # offset of its descriptor
