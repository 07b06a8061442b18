"""Control messages, both ways: what is one, what is not, and what is said about it."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from hbrt.protocol import control
from hbrt.protocol.control import ControlReply, ControlRequest, Int, MalformedMessageError, Text


def _body(**changes: Any) -> dict[str, Any]:
    body = {"v": control.VERSION, "id": 1, "verb": "free", "args": {"phy": 0x8000_0000}}
    return {name: value for name, value in {**body, **changes}.items() if value is not ...}


BROKEN: tuple[tuple[dict[str, Any], str], ...] = (
    (_body(v=1), "The frame has protocol version 1; this side speaks 2. Use the same installation on both sides."),
    (_body(v="x" * 500), f"The frame has protocol version '{'x' * 39}; this side speaks 2."),
    (_body(v=True), "The frame has protocol version True; this side speaks 2."),
    (_body(v=...), "The frame has protocol version None; this side speaks 2."),
    (
        _body(verb="explode"),
        "Unknown verb 'explode'; known: accelerators, alloc,",
    ),
    (_body(verb="x" * 5000), f"Unknown verb '{'x' * 64}'; known:"),
    (_body(verb=7), "The field 'verb' must be str, not int."),
    (_body(verb=...), "The field 'verb' must be str, not NoneType."),
    (_body(id=-1), "The field 'id' is out of range."),
    (_body(id=True), "The field 'id' must be int, not bool."),
    (_body(id=1.0), "The field 'id' must be int, not float."),
    (_body(client=1), "The frame has unknown fields: client."),
    (_body(args=[]), "The field 'args' must be dict, not list."),
    (_body(args={}), "free needs the argument 'phy'."),
    (_body(args={"phy": "0x8000"}), "The argument 'phy' of free must be an integer, not str."),
    (_body(args={"phy": True}), "The argument 'phy' of free must be an integer, not bool."),
    (_body(args={"phy": -1}), "The argument 'phy' of free is -1, outside 0..18446744073709551615."),
    (_body(args={"phy": 1, "size": 2}), "free takes no argument 'size'."),
    (_body(verb="alloc", args={"size": 0, "cached": 0}), "The argument 'size' of alloc is 0, outside 1..4294967295."),
    (_body(verb="restart", args={"image": "a\0b"}), "The argument 'image' of restart has a NUL."),
    (
        _body(verb="restart", args={"image": "x" * 4097}),
        "The argument 'image' of restart has 4097 characters; the limit is 4096.",
    ),
    (_body(verb="restart", args={"image": b"x"}), "The argument 'image' of restart must be text, not bytes."),
    (_body(extra=1), "The frame has unknown fields: extra."),
    (_body(**{"x" * 500: 1}), f"The frame has unknown fields: {'x' * 200}."),
)


@pytest.mark.parametrize(("body", "text"), BROKEN, ids=[text[:40] for _, text in BROKEN])
def test_request_that_breaks_the_schema_is_named(body: dict[str, Any], text: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        control.decode_request(msgpack.packb(body))
    assert str(caught.value).startswith(text)
    assert len(str(caught.value)) < 500


RAW: tuple[tuple[bytes, str], ...] = (
    (b"", "The frame is not msgpack"),
    (b"\xc1", "The frame is not msgpack"),
    (b"\x93\x01\x02\x03", "The frame contains a list, not a map."),
    (b"\xc0", "The frame contains a NoneType, not a map."),
    (b"\x81\x01\x02", "The frame is not msgpack"),  # a key that is not text
    (b"\x81\xa1\xff\x02", "The frame is not msgpack"),  # a key that is not UTF-8
    (b"\x91" * 5000 + b"\x01", "The frame is not msgpack"),  # deeper than anybody reads
    (b"\xdf\xff\xff\xff\xff", "The frame is not msgpack"),  # a map that says it has 2**32 - 1 entries
    (b"\xdb\xff\xff\xff\xff", "The frame is not msgpack"),  # a text that says it has 4 GiB
    (b"\x82\xa1v\x01\xa1v\x01", "The frame has the key 'v' more than once in a map."),
    (b"\x82\xa1v\x02\xa4args\x82\xa3phy\x01\xa3phy\x02", "The frame has the key 'phy' more than once in a map."),
    (bytes(control.MAX_REQUEST_BYTES + 1), f"The frame has {control.MAX_REQUEST_BYTES + 1} bytes; the limit is 65536."),
)


@pytest.mark.parametrize(("raw", "text"), RAW, ids=[repr(raw[:8]) for raw, _ in RAW])
def test_bytes_that_are_no_map_are_named(raw: bytes, text: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        control.decode_request(raw)
    assert str(caught.value).startswith(text)


def test_own_mistake_is_found_before_it_is_sent() -> None:
    for request in (ControlRequest(1, "explode"), ControlRequest(1, "free"), ControlRequest(1, "slots", {"count": 0})):
        with pytest.raises(ValueError, match=request.verb):
            control.encode_request(request)


def test_reply_that_nobody_would_take_is_refused_by_its_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MAX_REPLY_BYTES", 100)
    with pytest.raises(ValueError, match=r"A reply of \d+ bytes exceeds the limit of 100; request less\."):
        control.encode_reply(ControlReply(1, 0, "", "x" * 100))


def test_bounds_of_arguments_are_included() -> None:
    count = Int(1, 1024)
    assert [bool(count.problem(value)) for value in (0, 1, 1024, 1025)] == [True, False, False, True]
    text = Text(3)
    assert [bool(text.problem(value)) for value in ("", "abc", "abcd", None)] == [False, False, True, True]


def test_verbs_that_act_on_what_a_client_holds_need_its_lease() -> None:
    leased = {name for name, verb in control.VERBS.items() if verb.leased}
    assert {"alloc", "free", "register", "unregister", "slots"} <= leased
    assert not leased & {"status", "ops", "mem", "stop", "restart", "start_core", "stop_core"}
    assert all(verb.optional <= set(verb.args) for verb in control.VERBS.values())


def test_handshake_message_has_a_version() -> None:
    assert control.unpack_map(control.pack(event="go"), 100) == {"v": control.VERSION, "event": "go"}
