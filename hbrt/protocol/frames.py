"""Frames of the two protocols between programs and relays: lists of a version, a kind and fields. Pure functions.

A frame is one msgpack list ``[version, kind, field, ...]``, bounded in size. Each kind has a fixed list of fields,
which a receiver checks before it looks at them; nothing is ever evaluated or unpickled.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import msgpack

from hbrt.protocol.control import Int, MalformedMessageError, Text


class Raw(NamedTuple):
    """A bytes field with its minimum and maximum length."""

    least: int
    most: int

    def problem(self, value: object) -> str:
        """Return why the value is invalid; empty if valid."""
        if type(value) is not bytes:
            return f"must be bytes, not {type(value).__name__}"
        return "" if self.least <= len(value) <= self.most else f"has {len(value)} bytes, not {self.least}..{self.most}"


Says: TypeAlias = dict[int, dict[str, Int | Text | Raw]]  # what a side may send: the fields of each kind, in order


class Message(NamedTuple):
    """A validated frame: its kind, and its fields in the order of the tables."""

    kind: int
    fields: list[Any]


class Protocol(NamedTuple):
    """Common properties of a protocol's frames.

    Args:
        name: Name for messages.
        version: This side's version.
        kinds: Enum of the kinds.
        most_bytes: Maximum frame size.
    """

    name: str
    version: int
    kinds: type[IntEnum]
    most_bytes: int

    def encode(self, kind: int, *fields: Any) -> bytes:
        """Encode a frame. The receiver checks the fields."""
        raw: bytes = msgpack.packb((self.version, int(kind), *fields))
        return raw

    def decode(self, raw: bytes, says: Says) -> Message:
        """Decode a message.

        Args:
            raw: One frame.
            says: What the sender may send.

        Raises:
            MalformedMessageError: not a frame of this protocol, or not one that this sender may send; names the field.
        """
        if len(raw) > self.most_bytes:
            raise MalformedMessageError(f"The frame has {len(raw)} bytes; the limit is {self.most_bytes}.")
        try:
            body = msgpack.unpackb(raw, raw=False)
        except (ValueError, msgpack.exceptions.UnpackException, RecursionError, TypeError) as error:
            why = str(error)[:200] or type(error).__name__
            raise MalformedMessageError(f"The frame is not msgpack: {why}.") from None
        if type(body) is not list or len(body) < 2:
            raise MalformedMessageError("The frame is not a list of a version, a kind and fields.")
        version, kind, *fields = body
        if type(version) is not int or version != self.version:
            raise MalformedMessageError(
                f"The frame has {self.name} protocol version {version!r:.40}; this side speaks {self.version}. "
                "Use the same installation on both sides."
            )
        spec = says.get(kind) if type(kind) is int else None
        if spec is None:
            raise MalformedMessageError(f"This sender may not send the kind {kind!r:.40}.")
        if len(fields) != len(spec):
            raise MalformedMessageError(f"{self.kinds(kind).name} must have {len(spec)} fields, not {len(fields)}.")
        for value, (name, field) in zip(fields, spec.items(), strict=True):
            if problem := field.problem(value):
                raise MalformedMessageError(f"The field {name!r} of {self.kinds(kind).name} {problem}.")
        return Message(kind, fields)
