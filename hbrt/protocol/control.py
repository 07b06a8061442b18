"""Control messages: schema, codec, version. Bytes to messages and back are pure functions; sockets live elsewhere.

Rules
    A request is one msgpack map ``{v, id, verb, args}``; a reply is ``{v, id, status, text, data}``.
    Every request gets one reply with its id. Over a lease's connection they have a ``HEAD``. A frame has at most
    MAX_REQUEST_BYTES (or MAX_REPLY_BYTES), so that a peer cannot make the other side hold more than it allows. Nothing
    is ever evaluated or unpickled. ``MalformedMessageError``: the peer broke the protocol. ``ValueError``: our own side
    would.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgpack

VERSION = 2
MAX_REQUEST_BYTES = 64 * 1024
MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_TEXT = 4096
MAX_SITE = 512
"""Maximum characters of a call's ``file:line``."""
MAX_PLACES_TEXT = 16 * 1024
"""Maximum characters of the JSON with a finding's places."""
TOKEN_BYTES = 16
HEAD = struct.Struct("<QQ")
"""Precedes a message over a lease's connection: its size in bytes, and the request's number."""
PACKET_BYTES = 1 << 16
"""A longer message over a lease's connection is split into packets."""
_U32 = (1 << 32) - 1
_U64 = (1 << 64) - 1
MEMORY_USES = ("reads", "writes", "points to")
"""What a task does with memory shared with another task, by number: READS, WRITES, POINTS."""
READS, WRITES, POINTS = range(len(MEMORY_USES))


class Int(NamedTuple):
    """An integer argument and its inclusive bounds."""

    low: int
    high: int

    def problem(self, value: object) -> str:
        """Return why the value is invalid; empty if valid."""
        if type(value) is not int:
            return f"must be an integer, not {type(value).__name__}"
        return "" if self.low <= value <= self.high else f"is {value}, outside {self.low}..{self.high}"


class Text(NamedTuple):
    """A text argument and its maximum length in characters."""

    most: int = MAX_TEXT

    def problem(self, value: object) -> str:
        """Return why the value is invalid; empty if valid."""
        if type(value) is not str:
            return f"must be text, not {type(value).__name__}"
        if "\0" in value:
            return "has a NUL"
        return "" if len(value) <= self.most else f"has {len(value)} characters; the limit is {self.most}"


class Verb(NamedTuple):
    """Arguments of a verb; ``leased`` verbs are for attached clients, over their leases' connections."""

    args: Mapping[str, Int | Text] = MappingProxyType({})
    optional: frozenset[str] = frozenset()
    leased: bool = False


_PHY = Int(0, _U64)
VERBS: dict[str, Verb] = {
    "alloc": Verb(
        {"size": Int(1, _U32), "cached": Int(0, 1), "site": Text(MAX_SITE), "use": Text(MAX_SITE), "at": _PHY},
        optional=frozenset({"site", "use", "at"}),
        leased=True,
    ),
    "free": Verb({"phy": _PHY, "site": Text(MAX_SITE)}, optional=frozenset({"site"}), leased=True),
    "register": Verb({"phy": _PHY, "size": Int(1, _U32)}, leased=True),
    "import": Verb(
        {"fd": Int(0, (1 << 31) - 1), "offset": Int(0, _U64), "size": Int(1, _U32), "site": Text(MAX_SITE)},
        optional=frozenset({"site"}),
        leased=True,
    ),
    "unregister": Verb({"phy": _PHY, "site": Text(MAX_SITE)}, optional=frozenset({"site"}), leased=True),
    "found": Verb({"kind": Text(32), "text": Text(), "places": Text(MAX_PLACES_TEXT)}, leased=True),
    "leave": Verb(leased=True),
    "slots": Verb({"count": Int(1, 1024)}, leased=True),
    "waits": Verb({"text": Text()}, leased=True),
    "verify_lease": Verb({"peer": Int(1, _U32), "nonce": Text(64), "proof": Text(64)}, leased=True),
    "record": Verb({"directory": Text()}, leased=True),
    "status": Verb(),
    "ops": Verb(),
    "profile": Verb(),
    "why": Verb(),
    "tasks": Verb({"last": Int(1, 1_000_000)}),
    "trace": Verb({"do": Text(8), "events": Int(0, _U32)}),
    "mem": Verb({"most": Int(0, 1_000_000)}),
    "forget": Verb(),
    "stop": Verb(),
    "restart": Verb(
        {"core": Int(-1, 63), "image": Text(), "load_ms": Int(1, _U32)},
        optional=frozenset({"core", "image", "load_ms"}),
    ),
    "recovery": Verb({"enabled": Int(0, 1)}, optional=frozenset({"enabled"})),
    "listen": Verb({"endpoint": Text(), "keys": Text()}, optional=frozenset({"keys"})),
    "inject": Verb({"faults": Text(), "clear": Int(0, 1)}, optional=frozenset({"faults", "clear"})),
    "accelerators": Verb({"model": Text()}, optional=frozenset({"model"}), leased=True),
    "sram": Verb({"do": Text(4), "start": _PHY, "size": _PHY}, leased=True),
    "start_core": Verb({"core": Int(0, 63)}),
    "stop_core": Verb({"core": Int(0, 63)}),
}


class MalformedMessageError(ValueError):
    """The peer sent bytes that are not a message of this protocol; says what is wrong, and in which field."""


class ControlRequest(NamedTuple):
    """A request."""

    id: int
    verb: str
    args: Mapping[str, Any] = MappingProxyType({})


class ControlReply(NamedTuple):
    """A reply: status 0 and data, or a status and its message."""

    id: int
    status: int
    text: str = ""
    data: Any = None


def encode_request(request: ControlRequest) -> bytes:
    """Encode a request.

    Raises:
        ValueError: the request violates the schema (a bug on this side).
    """
    body = {"v": VERSION, "id": request.id, "verb": request.verb, "args": dict(request.args)}
    raw: bytes = msgpack.packb(body)
    decode_request(raw)
    return raw


def encode_reply(reply: ControlReply) -> bytes:
    """Encode a reply.

    Raises:
        ValueError: it would exceed MAX_REPLY_BYTES.
    """
    body = {"v": VERSION, "id": reply.id, "status": reply.status, "text": reply.text, "data": reply.data}
    raw: bytes = msgpack.packb(body)
    if len(raw) > MAX_REPLY_BYTES:
        raise ValueError(f"A reply of {len(raw)} bytes exceeds the limit of {MAX_REPLY_BYTES}; request less.")
    return raw


def unpack_map(raw: bytes, most_bytes: int) -> dict[str, Any]:
    """Decode one msgpack map with text keys and nothing after it.

    Raises:
        MalformedMessageError: anything else, including a frame over the limit.
    """
    if len(raw) > most_bytes:
        raise MalformedMessageError(f"The frame has {len(raw)} bytes; the limit is {most_bytes}.")
    try:
        body = msgpack.unpackb(raw, raw=False, strict_map_key=True, object_pairs_hook=_map)
    except MalformedMessageError:
        raise
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        why = str(error)[:200] or type(error).__name__
        raise MalformedMessageError(f"The frame is not msgpack: {why}.") from None
    if not isinstance(body, dict):
        raise MalformedMessageError(f"The frame contains a {type(body).__name__}, not a map.")
    if body.get("v") != VERSION or type(body.get("v")) is not int:
        raise MalformedMessageError(
            f"The frame has protocol version {repr(body.get('v'))[:40]}; this side speaks {VERSION}. "
            "Use the same installation on both sides."
        )
    return body


def _map(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Build a map without duplicate keys: two readers of a message may choose different ones of two equal keys."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in made if keys.count(key) > 1)
        raise MalformedMessageError(f"The frame has the key {twice!r:.64} more than once in a map.")
    return made


def _take(body: dict[str, Any], name: str, kind: type) -> Any:
    value = body.get(name)
    if type(value) is not kind:
        raise MalformedMessageError(f"The field {name!r} must be {kind.__name__}, not {type(value).__name__}.")
    return value


def decode_request(raw: bytes) -> ControlRequest:
    """Decode a request.

    Raises:
        MalformedMessageError: not a request of this protocol; names the field.
    """
    body = unpack_map(raw, MAX_REQUEST_BYTES)
    if extra := set(body) - {"v", "id", "verb", "args"}:
        raise MalformedMessageError(f"The frame has unknown fields: {', '.join(sorted(map(str, extra)))[:200]}.")
    verb = _take(body, "verb", str)
    spec = VERBS.get(verb)
    if spec is None:
        raise MalformedMessageError(f"Unknown verb {verb[:64]!r}; known: {', '.join(sorted(VERBS))}.")
    number = _take(body, "id", int)
    if not 0 <= number <= _U64:
        raise MalformedMessageError("The field 'id' is out of range.")
    args = _take(body, "args", dict)
    _check_args(verb, spec, args)
    return ControlRequest(number, verb, args)


def _check_args(verb: str, spec: Verb, args: dict[str, Any]) -> None:
    for name, kind in spec.args.items():
        if name not in args:
            if name in spec.optional:
                continue
            raise MalformedMessageError(f"{verb} needs the argument {name!r}.")
        if problem := kind.problem(args[name]):
            raise MalformedMessageError(f"The argument {name!r} of {verb} {problem}.")
    if extra := set(args) - set(spec.args):
        raise MalformedMessageError(f"{verb} takes no argument {min(map(str, extra))[:64]!r}.")


def decode_reply(raw: bytes) -> ControlReply:
    """Decode a reply.

    Raises:
        MalformedMessageError: not a reply of this protocol.
    """
    body = unpack_map(raw, MAX_REPLY_BYTES)
    return ControlReply(_take(body, "id", int), _take(body, "status", int), _take(body, "text", str), body.get("data"))


def lease_proof(token: bytes, nonce: str) -> str:
    """Return proof that the sender holds a lease, without revealing its token: 64 hexadecimal digits.

    Args:
        token: The lease's token.
        nonce: Text chosen by the sender, used once.
    """
    import hmac  # imported here so that a start need not wait for it

    return hmac.digest(token, nonce.encode(), "sha256").hex()


def pack(**fields: Any) -> bytes:
    """Encode a message of the attach handshake or between daemon and core: a map with the version."""
    raw: bytes = msgpack.packb({"v": VERSION, **fields})
    return raw
