"""Task handles: client, serial and slot in one integer, so that a stale handle differs from a foreign one."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from hbrt.ddr.layout import SLOT_COUNT

SLOT_MASK: Final = SLOT_COUNT - 1
SLOT_BITS: Final = SLOT_MASK.bit_length()
SERIAL_BITS: Final = 40


class DeadHandle(Enum):
    """Kinds of handles without a live task."""

    NONE = auto()  # not a handle
    RELEASED = auto()  # of this attachment, already released
    FOREIGN = auto()  # of another process or another attachment


def make(client: int, serial: int, slot: int) -> int:
    """Return the handle of a task.

    Args:
        client: Id of the client that submits it.
        serial: Its number among the client's tasks.
        slot: Its slot; slot 0 gives a base to which fast callers add a slot.
    """
    return (client << SERIAL_BITS | serial) << SLOT_BITS | slot


def slot_of(handle: int) -> int:
    """Return the slot of a task."""
    return handle & SLOT_MASK


def serial_of(handle: int) -> int:
    """Return the serial number of a task within its client."""
    return handle >> SLOT_BITS & (1 << SERIAL_BITS) - 1


def kind_of(handle: int, client: int, serials: range) -> DeadHandle:
    """Return the kind of a handle without a live task.

    Args:
        handle: Any integer.
        client: Id of the client that got the handle.
        serials: The serials that this client has used.
    """
    if handle <= 0:
        return DeadHandle.NONE
    rest = handle >> SLOT_BITS
    is_own = rest >> SERIAL_BITS == client and serial_of(handle) in serials
    return DeadHandle.RELEASED if is_own else DeadHandle.FOREIGN
