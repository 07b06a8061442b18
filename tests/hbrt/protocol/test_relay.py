"""What relay and program say to each other: every frame comes back as it was, and nothing else comes through.

The last two are of the relay of another machine as well, whose other frames are in test_remote.py.
"""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from hbrt.mailbox.table import REQUEST as DESCRIPTOR
from hbrt.protocol import relay, remote
from hbrt.protocol.control import MalformedMessageError
from hbrt.protocol.relay import CLIENT_SAYS, RELAY_SAYS, SUBMIT, SUBMIT_HEAD, TASK_REQUEST, RelayFrame, decode, encode
from tests.each import each

U64 = (1 << 64) - 1
V = relay.VERSION
REQUEST = (7, -3, 0x1000, 9, 1, 5, 5, 0x80000000, 64, 0x80001000, 128)


def test_a_submission_comes_back_as_it_was() -> None:
    message = decode(SUBMIT.pack(SUBMIT_HEAD, U64, 1 << 61, *REQUEST), CLIENT_SAYS)
    assert message.kind == RelayFrame.SUBMIT
    assert TASK_REQUEST.unpack(message.fields[0]) == (U64, 1 << 61, *REQUEST)


def test_the_frame_of_a_call_is_msgpack_like_the_others() -> None:
    raw = SUBMIT.pack(SUBMIT_HEAD, 9, 1, *REQUEST)
    version, kind, task = msgpack.unpackb(raw)
    assert (version, kind, len(task)) == (relay.VERSION, RelayFrame.SUBMIT, TASK_REQUEST.size)
    assert raw == encode(RelayFrame.SUBMIT, TASK_REQUEST.pack(9, 1, *REQUEST))
    assert raw[relay.REQUEST_AT :] == DESCRIPTOR.pack(*REQUEST)


@each(
    "kind, fields",
    [
        (RelayFrame.HELLO, [5, "n" * 32, "p" * 64]),
        (RelayFrame.PING, [U64]),
        (RelayFrame.BYE, []),
    ],
)
def test_what_a_program_says(kind: RelayFrame, fields: list[object]) -> None:
    assert decode(encode(kind, *fields), CLIENT_SAYS) == (kind, fields)
    with pytest.raises(MalformedMessageError, match="This sender may not send the kind"):
        decode(encode(kind, *fields), RELAY_SAYS)


@each(
    "kind, fields",
    [
        (RelayFrame.WELCOME, [1, U64]),
        (RelayFrame.REFUSED, [-5, "why"]),
        (RelayFrame.END, [1 << 61]),
        (RelayFrame.PONG, [0]),
        (RelayFrame.GONE, [-5, "über"]),
    ],
)
def test_what_a_relay_says(kind: RelayFrame, fields: list[object]) -> None:
    assert decode(encode(kind, *fields), RELAY_SAYS) == (kind, fields)
    with pytest.raises(MalformedMessageError, match="This sender may not send the kind"):
        decode(encode(kind, *fields), CLIENT_SAYS)


@each(
    "raw, why",
    [
        (b"", "not msgpack"),
        (b"\xc1", "not msgpack"),
        (msgpack.packb({"v": 1}), "not a list"),
        (msgpack.packb([V]), "not a list"),
        (msgpack.packb([1, RelayFrame.BYE]), "protocol version 1; this side speaks 2"),
        (msgpack.packb([True, RelayFrame.BYE]), "protocol version True"),
        (msgpack.packb([V, 99]), "the kind 99"),
        (msgpack.packb([V, [7]]), "may not send"),
        (msgpack.packb([V, RelayFrame.PING]), "PING must have 1 fields, not 0"),
        (msgpack.packb([V, RelayFrame.BYE, 0]), "BYE must have 0 fields, not 1"),
        (msgpack.packb([V, RelayFrame.PING, -1]), "'number' of PING is -1, outside"),
        (msgpack.packb([V, RelayFrame.PING, True]), "'number' of PING must be an integer, not bool"),
        (msgpack.packb([V, RelayFrame.HELLO, 1, "n" * 65, "p"]), "'nonce' of HELLO has 65 characters"),
        (msgpack.packb([V, RelayFrame.HELLO, 1, b"n", "p"]), "'nonce' of HELLO must be text, not bytes"),
        (msgpack.packb([V, RelayFrame.SUBMIT, bytes(79)]), "'task' of SUBMIT has 79 bytes, not 80..80"),
        (msgpack.packb([V, RelayFrame.SUBMIT, "x" * 80]), "'task' of SUBMIT must be bytes, not str"),
        (msgpack.packb([V, RelayFrame.BYE]) + b"\0", "not msgpack"),
        (bytes(relay.MAX_FRAME_BYTES + 1), "the limit is 16384"),
        (b"\x91" * 2000, "not msgpack"),
    ],
)
def test_what_is_no_frame_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError, match=why):
        decode(raw, CLIENT_SAYS)


SIDES = [(relay.VERSION, CLIENT_SAYS), (relay.VERSION, RELAY_SAYS)]
SIDES += [(remote.VERSION, remote.PROGRAM_SAYS), (remote.VERSION, remote.RELAY_SAYS)]
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), U64) | st.binary(max_size=80) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_refused(raw: bytes) -> None:
    for version, says in SIDES:
        try:
            kind, fields = (decode if version == relay.VERSION else remote.decode)(raw, says)
        except MalformedMessageError:
            continue
        assert len(fields) == len(says[kind])


@given(st.sampled_from([(side, kind) for side in SIDES for kind in (*side[1], 99)]), st.lists(_VALUES, max_size=6))
def test_only_fields_within_their_bounds_come_through(chosen: tuple[Any, int], fields: list[object]) -> None:
    (version, says), kind = chosen
    raw = msgpack.packb([version, kind, *fields])
    try:
        message = (decode if version == relay.VERSION else remote.decode)(raw, says)
    except MalformedMessageError:
        return
    spec = says[message.kind].values()
    assert not any(field.problem(value) for field, value in zip(spec, message.fields, strict=True))
