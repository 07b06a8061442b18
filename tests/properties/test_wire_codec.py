"""The codec against anything: what goes in comes out, and nothing but a refusal comes out of nonsense."""

from __future__ import annotations

import contextlib
from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from hbrt.protocol import control
from hbrt.protocol.control import ControlReply, ControlRequest, Int, MalformedMessageError, Text

U64 = (1 << 64) - 1
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
PLAIN = st.none() | st.booleans() | st.integers(-(1 << 63), U64) | st.floats(allow_nan=False) | TEXT | st.binary()
DATA = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


def _argument(kind: Int | Text) -> st.SearchStrategy[Any]:
    if isinstance(kind, Int):
        return st.integers(kind.low, kind.high)
    return st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=min(kind.most, 60))


@st.composite
def requests(draw: st.DrawFn) -> ControlRequest:
    verb = draw(st.sampled_from(sorted(control.VERBS)))
    spec = control.VERBS[verb]
    left_out = draw(st.sets(st.sampled_from(sorted(spec.optional)))) if spec.optional else set()
    args = {name: draw(_argument(kind)) for name, kind in spec.args.items() if name not in left_out}
    return ControlRequest(draw(st.integers(0, U64)), verb, args)


@given(requests())
def test_every_request_of_the_schema_comes_back_and_a_part_of_it_is_none(request: ControlRequest) -> None:
    raw = control.encode_request(request)
    assert control.decode_request(raw) == request
    for part in (*(raw[:size] for size in range(len(raw))), raw + b"\0"):
        with pytest.raises(MalformedMessageError):
            control.decode_request(part)


@given(st.integers(0, U64), st.integers(-(1 << 31), (1 << 31) - 1), TEXT, DATA)
def test_every_reply_comes_back_and_a_part_of_it_is_none(number: int, status: int, text: str, data: object) -> None:
    reply = ControlReply(number, status, text, data)
    raw = control.encode_reply(reply)
    assert control.decode_reply(raw) == reply
    for part in (*(raw[:size] for size in range(len(raw))), raw + b"\0"):
        with pytest.raises(MalformedMessageError):
            control.decode_reply(part)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(raw: bytes) -> None:
    with contextlib.suppress(MalformedMessageError):
        control.decode_request(raw)
    with contextlib.suppress(MalformedMessageError):
        control.decode_reply(raw)


@given(requests(), st.data())
def test_request_with_one_byte_changed_is_a_request_or_refused(request: ControlRequest, data: st.DataObject) -> None:
    raw = bytearray(control.encode_request(request))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessageError):
        changed = control.decode_request(bytes(raw))
        assert control.decode_request(control.encode_request(changed)) == changed


@given(requests(), st.sampled_from(["id", "verb", "args"]), DATA)
def test_request_with_one_field_of_any_kind_is_a_request_or_refused(
    request: ControlRequest, name: str, value: object
) -> None:
    body = msgpack.unpackb(control.encode_request(request))
    body[name] = value
    with contextlib.suppress(MalformedMessageError):
        changed = control.decode_request(msgpack.packb(body))
        assert changed.verb in control.VERBS
        assert not any(
            control.VERBS[changed.verb].args[argument].problem(given_value)
            for argument, given_value in changed.args.items()
        )
