"""Messages between an ARM process and the relay of a board on another machine: schema, codec. Pure functions.

Rules
    A frame is one msgpack list ``[version, kind, field, ...]`` of at most MAX_FRAME_BYTES. Each kind has a fixed list
    of fields, which a receiver checks before reading them; each side accepts only the other side's kinds.
    Nothing is evaluated or unpickled. ``MalformedMessageError``: the peer broke the protocol; its connection closes.

Talk
    HELLO is answered by WELCOME or REFUSED. REQUEST (a control request of ``hbrt.protocol.control``), PULL and CHECK
    are answered by one REPLY with their id, CANCEL, ASK and DROP by one STATE, CLOCK by NOW.
    LOOK, LOG and TRACE replace HELLO on a read-only connection: each is answered by one REPLY, whose number the next
    request repeats (0 for the first). TRACE asks for the names of the board's trace files, and then for each part of
    each file. PUSH and DATA carry changed bytes to and from the board, numbered; TAKEN and ACK say up to which number
    they were processed. A REPLY of more than SMALL_REPLY_BYTES is numbered among DATA. A sender never has more than
    WINDOW_BYTES or WINDOW_FRAMES of them unacknowledged, which bounds buffers. PUSH counts from 1; the numbers of DATA
    and REPLY grow by unpredictable steps, so that an ACK proves that its frame was read. SUBMIT comes after the
    bytes that the task reads, END after those that it wrote. DATA and END name the last PUSH processed before they were
    created: see ``hbrt.remote.shadow.merge``. LEASE replaces HELLO on a connection to a farm. PLACE gives the program's
    place in the queue, whenever it changes and every PLACE_SECONDS; GRANTED the port of the farm's host where its
    board's relay listens. The connection is the lease: the board is reclaimed when it ends, and GONE says why the farm
    ends it. QUEUE asks a farm for its boards and its queue, answered by one REPLY. BEAT is sent every BEAT_SECONDS.
    GONE says that the relay ends the session, and why; BYE that the program does.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from hbrt.ddr.layout import MAX_CORES, SLOT_TEXT_BYTES
from hbrt.mailbox.table import ANSWER, REQUEST, State
from hbrt.profiles.work import WORK
from hbrt.protocol.control import MAX_REQUEST_BYTES, Int, Text
from hbrt.protocol.frames import Protocol, Raw, Says

VERSION = 3
MAX_REPLY_BYTES = 1 << 20
SMALL_REPLY_BYTES = 1024  # need no ACK
MAX_LOG_BYTES = MAX_REPLY_BYTES - 8192
TRACE_BYTES = 1 << 19  # of a trace file, before compression
CHUNK_BYTES = 1 << 20  # the maximum that one Change (hbrt.remote.shadow) covers
MAX_FRAME_BYTES = CHUNK_BYTES + CHUNK_BYTES // 8 + 4096
WINDOW_BYTES = 8 << 20
WINDOW_FRAMES = 1024
BEAT_SECONDS = 1.0
PLACE_SECONDS = 5.0
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 1000, 4000  # ZeroMQ's, both ways, answered without the interpreter
_U32 = (1 << 32) - 1
_U64 = (1 << 64) - 1
_I32 = Int(-(1 << 31), (1 << 31) - 1)
_NUMBER = Int(0, _U64)
_TASK = Int(1, _U64)
_PHY = Int(0, _U64)

# Field of SUBMIT: the sender's number of the task, then REQUEST. Field of END: that number, state, ANSWER, WORK.
TASK_NUMBER = struct.Struct("<Q")
TASK_REQUEST = struct.Struct("<Q" + REQUEST.format.removeprefix("<"))
TASK_END = struct.Struct(f"<QQ{ANSWER.size}s{WORK.size}s")

# Control requests allowed from programs on other machines; the rest are for users of the board's machine.
LOOKS = frozenset({"status", "ops", "profile", "mem", "tasks"})  # read-only requests
FORWARDED = LOOKS | {"alloc", "free", "register", "unregister", "found", "leave", "sram"}


class RemoteFrame(IntEnum):
    """Kinds of frames: up to QUEUE a program's, from WELCOME on the relay's."""

    HELLO = 1
    REQUEST = 2
    PUSH = 3
    SUBMIT = 4
    CANCEL = 5
    ASK = 6
    DROP = 7
    PULL = 8
    CHECK = 9
    ACK = 10
    CLOCK = 11
    BYE = 12
    LOOK = 13
    LOG = 14
    TRACE = 15
    LEASE = 16
    QUEUE = 17
    WELCOME = 32
    REFUSED = 33
    REPLY = 34
    DATA = 35
    END = 36
    STATE = 37
    TAKEN = 38
    NOW = 39
    BEAT = 40
    GONE = 41
    PLACE = 42
    GRANTED = 43


_CHANGE: dict[str, Int | Text | Raw] = {
    "phy": _PHY,
    "size": Int(1, CHUNK_BYTES),
    "mask": Raw(0, CHUNK_BYTES // 8),
    "data": Raw(0, CHUNK_BYTES),
}
_CORES = Raw(0, MAX_CORES)  # the activity byte of each core
PROGRAM_SAYS: Says = {
    RemoteFrame.HELLO: {"program": Text(64), "pid": Int(1, _U32)},
    RemoteFrame.REQUEST: {"request": Raw(1, MAX_REQUEST_BYTES)},
    RemoteFrame.PUSH: {"number": _NUMBER, **_CHANGE},
    RemoteFrame.SUBMIT: {"task": Raw(TASK_REQUEST.size, TASK_REQUEST.size)},
    RemoteFrame.CANCEL: {"number": _NUMBER, "task": _TASK},
    RemoteFrame.ASK: {"number": _NUMBER, "task": _TASK},
    RemoteFrame.DROP: {"number": _NUMBER, "task": _TASK},
    RemoteFrame.PULL: {"number": _NUMBER, "phy": _PHY, "size": Int(0, _U64)},
    RemoteFrame.CHECK: {"number": _NUMBER, "what": Text(16), "phy": _PHY, "size": Int(0, _U64)},
    RemoteFrame.ACK: {"number": _NUMBER},
    RemoteFrame.CLOCK: {"number": _NUMBER},
    RemoteFrame.BYE: {},
    RemoteFrame.LOOK: {"ticket": _NUMBER, "request": Raw(1, MAX_REQUEST_BYTES)},
    RemoteFrame.LOG: {"ticket": _NUMBER, "lines": Int(0, (1 << 31) - 1), "since": Int(-1, (1 << 63) - 1)},
    RemoteFrame.LEASE: {"program": Text(64), "pid": Int(1, _U32), "user": Text(64), "pool": Text(64)},
    RemoteFrame.QUEUE: {},
    RemoteFrame.TRACE: {"ticket": _NUMBER, "file": Text(255), "at": Int(0, (1 << 63) - 1)},
}
RELAY_SAYS: Says = {
    RemoteFrame.WELCOME: {
        "client": Int(1, _U32),
        "cores": _CORES,
        "heap": Int(1, _U64),
        "daemon": Int(1, _U32),
        "relay": Int(1, _U32),
        "board": Text(64),
    },
    RemoteFrame.REFUSED: {"status": _I32, "text": Text()},
    RemoteFrame.REPLY: {"number": _NUMBER, "reply": Raw(1, MAX_REPLY_BYTES)},
    RemoteFrame.DATA: {"number": _NUMBER, "seen": _NUMBER, **_CHANGE},
    RemoteFrame.END: {"task": Raw(TASK_END.size, TASK_END.size), "text": Raw(0, SLOT_TEXT_BYTES)},
    RemoteFrame.STATE: {"number": _NUMBER, "task": _TASK, "state": Int(0, max(State))},
    RemoteFrame.TAKEN: {"number": _NUMBER},
    RemoteFrame.NOW: {"number": _NUMBER, "now_ns": _NUMBER},
    RemoteFrame.BEAT: {"cores": _CORES},
    RemoteFrame.GONE: {"status": _I32, "text": Text()},
    RemoteFrame.PLACE: {"place": Int(1, _U32), "why": Text()},
    RemoteFrame.GRANTED: {"port": Int(1, (1 << 16) - 1), "board": Text(64)},
}

_PROTOCOL = Protocol("remote", VERSION, RemoteFrame, MAX_FRAME_BYTES)
encode, decode = _PROTOCOL.encode, _PROTOCOL.decode
