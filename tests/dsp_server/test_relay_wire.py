"""What relay and program say to each other: every frame comes back as it was, and nothing else comes through."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbrt import relay_wire
from hbrt.mailbox import ANSWER, State
from hbrt.relay_wire import CLIENT_SAYS, RELAY_SAYS, TASK_END, TASK_REQUEST, Kind, decode, encode
from hbrt.wire import MalformedMessageError

U64 = (1 << 64) - 1
REQUEST = (7, -3, 0x1000, 9, 1, 5, 5, 0x80000000, 64, 0x80001000, 128)


def test_a_submission_comes_back_as_it_was() -> None:
    message = decode(relay_wire.encode_submit(1 << 61, *REQUEST), CLIENT_SAYS)
    assert message.kind == Kind.SUBMIT
    assert TASK_REQUEST.unpack(message.fields[0]) == (1 << 61, *REQUEST)


@pytest.mark.parametrize("text", [b"", "über".encode(), b"x" * 3000])
def test_an_end_comes_back_as_it_was(text: bytes) -> None:
    answer = bytes(range(ANSWER.size))
    message = decode(relay_wire.encode_end(99, State.FAILED, answer, text), RELAY_SAYS)
    assert (message.kind, message.fields[1]) == (Kind.END, text)
    assert TASK_END.unpack(message.fields[0]) == (99, State.FAILED, answer)


def test_frames_of_a_call_are_msgpack_like_the_others() -> None:
    submit = msgpack.unpackb(relay_wire.encode_submit(1, *REQUEST))
    end = msgpack.unpackb(relay_wire.encode_end(1, State.DONE, bytes(ANSWER.size)))
    assert [submit[:2], end[:2]] == [[1, Kind.SUBMIT], [1, Kind.END]]
    assert (len(submit[2]), len(end[2]), end[3]) == (TASK_REQUEST.size, TASK_END.size, b"")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Kind.HELLO, [5, "n" * 32, "p" * 64]),
        (Kind.CANCEL, [0, 1]),
        (Kind.ASK, [U64, U64]),
        (Kind.DROP, [0, 3]),
        (Kind.PING, [0]),
        (Kind.BYE, []),
    ],
)
def test_what_a_program_says(kind: Kind, fields: list[object]) -> None:
    assert decode(encode(kind, *fields), CLIENT_SAYS) == (kind, fields)
    with pytest.raises(MalformedMessageError, match="is not one that this sender may send"):
        decode(encode(kind, *fields), RELAY_SAYS)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "not msgpack"),
        (b"\xc1", "not msgpack"),
        (msgpack.packb({"v": 1}), "not a list"),
        (msgpack.packb([1]), "not a list"),
        (msgpack.packb([2, Kind.BYE]), "protocol version 2; this side speaks 1"),
        (msgpack.packb([True, Kind.BYE]), "protocol version True"),
        (msgpack.packb([1, 99]), "The kind 99"),
        (msgpack.packb([1, [7]]), "may send"),
        (msgpack.packb([1, Kind.PING]), "PING has 1 fields; 0 came"),
        (msgpack.packb([1, Kind.PING, -1]), "'number' of PING is -1, outside"),
        (msgpack.packb([1, Kind.PING, True]), "'number' of PING must be an integer, not bool"),
        (msgpack.packb([1, Kind.DROP, 0, 0]), "'task' of DROP is 0, outside"),
        (msgpack.packb([1, Kind.HELLO, 1, "n" * 65, "p"]), "'nonce' of HELLO is too long"),
        (msgpack.packb([1, Kind.HELLO, 1, b"n", "p"]), "'nonce' of HELLO must be text, not bytes"),
        (msgpack.packb([1, Kind.SUBMIT, bytes(71)]), "'task' of SUBMIT has 71 bytes, not 72..72"),
        (msgpack.packb([1, Kind.SUBMIT, "x" * 72]), "'task' of SUBMIT must be bytes, not str"),
        (msgpack.packb([1, Kind.BYE]) + b"\0", "not msgpack"),
        (bytes(relay_wire.MAX_FRAME_BYTES + 1), "the limit is 16384"),
        (b"\x91" * 2000, "not msgpack"),
    ],
)
def test_what_is_no_frame_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError, match=why):
        decode(raw, CLIENT_SAYS)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(raw: bytes) -> None:
    for says in (CLIENT_SAYS, RELAY_SAYS):
        try:
            kind, fields = decode(raw, says)
        except MalformedMessageError:
            continue
        assert len(fields) == len(says[kind])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), U64) | st.binary(max_size=80) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3),
)


@given(st.integers(0, 30), st.lists(_VALUES, max_size=5))
def test_only_fields_within_their_bounds_come_through(kind: int, fields: list[object]) -> None:
    raw = msgpack.packb([relay_wire.VERSION, kind, *fields])
    try:
        message = decode(raw, CLIENT_SAYS)
    except MalformedMessageError:
        return
    spec = CLIENT_SAYS[message.kind]
    assert [field.problem(value) for field, value in zip(spec.values(), message.fields, strict=True)] == [""] * len(
        spec
    )
