"""The first difference between two boards' results of one task. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hbrt.status import name_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from arm_client.transport.routed.other_board import Ended

_BYTES_SHOWN = 8


def unlike_ends(here: Ended, there: Ended) -> str:
    """Return the message for a task that ended with a different status on each board."""
    told = "".join(
        f"\n{where}: {end.text.strip()}" for where, end in (("Here", here), ("There", there)) if end.status and end.text
    )
    return f"it ended with {_named(here.status)} here and with {_named(there.status)} there{told}"


def _named(status: int) -> str:
    return f"{status} ({name_of(status)})" if status else "0"


class Difference(NamedTuple):
    """The first byte, or element, of a range that differs.

    Attributes:
        offset: Offset of the byte in the range.
        text: Its place, and both values.
    """

    offset: int
    text: str


def first_difference(
    here: NDArray[np.uint8], there: NDArray[np.uint8], dtype: DTypeLike | None = None
) -> Difference | None:
    """Compare the bytes of one range on two boards; None if all are equal.

    Args:
        here: This board's bytes.
        there: The other board's bytes, the same number.
        dtype: Element type of the range; None if unknown.
    """
    differs = np.flatnonzero(here != there)
    if not len(differs):
        return None
    offset, count = int(differs[0]), len(differs)
    kind = None if dtype is None else np.dtype(dtype)
    if kind is None or len(here) % kind.itemsize:
        shown = slice(offset, offset + _BYTES_SHOWN)
        where = f"byte {offset} is {here[offset]:#04x} here and {there[offset]:#04x} there"
        values = f"from there {bytes(here[shown]).hex(' ')} here, {bytes(there[shown]).hex(' ')} there"
        return Difference(offset, f"{where} ({values}); {_counted(count, len(here), 'byte')}")
    index = offset // kind.itemsize
    ours, theirs = here.view(kind), there.view(kind)
    elements = len(np.unique(differs // kind.itemsize))
    text = f"element {index} ({kind}, byte {offset}) is {ours[index]} here and {theirs[index]} there"
    return Difference(offset, f"{text}; {_counted(elements, len(ours), 'element')}")


def _counted(count: int, total: int, what: str) -> str:
    return f"{count} of {total} {what}{'s' if total > 1 else ''} differ{'s' if count == 1 else ''}"
