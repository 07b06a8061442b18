"""For the memory check: forbidden writes of a skeleton to the arguments of an invocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from arm_client.strict.report import Mistake, report_mistake
from fastrpc.wire import uri
from fastrpc.wire.message import COPY_ALIGNMENT
from fastrpc.wire.scalars import LONG_METHOD
from hbrt.findings.record import Place
from hbrt.findings.text import counted

if TYPE_CHECKING:
    from arm_client.arrays import Buffer
    from arm_client.session.session import Session
    from fastrpc.domains import Opened
    from fastrpc.wire.scalars import Scalars

FILL: Final = b"\xc5" * COPY_ALIGNMENT
"""Follows each copy in a watched message."""


class Watched(NamedTuple):
    """A buffer of an invocation.

    Attributes:
        number: Number of the argument, from 0.
        phy_addr: Its physical address.
        size_bytes: Its size.
        is_input: Whether the skeleton may only read it.
        is_copied: Whether it is in the message, followed by ``FILL``.
    """

    number: int
    phy_addr: int
    size_bytes: int
    is_input: bool
    is_copied: bool


def watch(buffer: Buffer, given: Scalars, numbers: list[int], copied: set[int]) -> list[Watched]:
    """The buffers of a message; copied ones get their ``FILL``.

    Args:
        buffer: The message.
        given: The scalar word.
        numbers: Physical address and bytes of each argument.
        copied: The numbers of the arguments that are in the message.
    """
    found = []
    for at, (phy_addr, size_bytes) in enumerate(zip(numbers[: 2 * given.buffers : 2], numbers[1::2], strict=False)):
        if size_bytes:
            found.append(Watched(at, phy_addr, size_bytes, at < given.inputs, at in copied))
            if at in copied:
                start = phy_addr - buffer.phy_addr + size_bytes
                buffer.view()[start : start + COPY_ALIGNMENT] = FILL
    return found


def inputs(session: Session, given: list[Watched]) -> dict[int, bytes]:
    """The bytes of each pure input as the DSP sees them before the call, by argument number."""
    outputs = [one for one in given if not one.is_input]
    found = {}
    for one in given:
        end = one.phy_addr + one.size_bytes
        is_shared = any(out.phy_addr < end and one.phy_addr < out.phy_addr + out.size_bytes for out in outputs)
        if one.is_input and not is_shared:
            found[one.number] = _bytes(session, one.phy_addr, one.size_bytes)
    return found


def look(session: Session, opened: Opened, method: int, given: list[Watched], before: dict[int, bytes]) -> None:
    """Report changed inputs, and writes past the end of copies."""
    if method == LONG_METHOD and 0 in before:
        method = int.from_bytes(before[0][:4], "little")
    who = f"Method {method} of {uri.parse(opened.uri, uri.DEFAULT_DOMAIN).symbol}"
    for one in given:
        now = _bytes(session, one.phy_addr, one.size_bytes)
        if (was := before.get(one.number)) is not None and now and was != now:
            first = next(at for at, (old, new) in enumerate(zip(was, now, strict=True)) if old != new)
            _report(
                session,
                "input-written",
                f"{who} has changed argument {one.number}, an input of {counted(one.size_bytes, 'byte')}, from byte "
                f"{first} on. A skeleton may only read its inputs: declare the parameter inrout, or work on a copy.",
                one,
            )
        behind = _bytes(session, one.phy_addr + one.size_bytes, COPY_ALIGNMENT) if one.is_copied else b""
        if behind and behind != FILL:
            first = next(at for at, (old, new) in enumerate(zip(FILL, behind, strict=True)) if old != new)
            _report(
                session,
                "overrun",
                f"{who} has written past the end of argument {one.number}, which has "
                f"{counted(one.size_bytes, 'byte')}: byte {first + 1} past its end is the first bad one. Check the "
                "sizes that the skeleton uses.",
                one,
            )


def _report(session: Session, kind: str, text: str, one: Watched) -> None:
    place = Place("submitted", phy_addr=one.phy_addr, size_bytes=one.size_bytes)
    report_mistake(session.link, Mistake(kind, text, (place,)))


def _bytes(session: Session, phy_addr: int, size_bytes: int) -> bytes:
    """Bytes of the board's memory; empty if they are not in a block of this process."""
    block = session.blocks.holding(phy_addr)
    start = 0 if block is None else phy_addr - block.phy_addr
    return b"" if block is None else bytes(block.base[start : start + size_bytes])
