"""The contents of new memory: zeros, or bytes that reveal reads of uninitialized memory.

Emulator: the contents of DDR and TCM after an allocation are not documented; on a chip, the old contents remain.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from hbrt import settings
from hbrt.findings.checks import checks_of

PATTERN = b"\xcd"
"""-4.3e8 as a 32-bit float, -51 as an int8: neither is a likely value or sum of values."""

_WORD = struct.Struct("<II")
UNWRITTEN_PAGE = b"".join(
    _WORD.pack((at + 1) * 0x9E3779B1 & 0xFFFF_FFFF, int.from_bytes(PATTERN * 4, "little")) for at in range(512)
)
"""An unwritten page of a new block, under checks: the pattern in every other four bytes, and between them numbers that
depend on their place, so that program data never looks like part of it (the multiplier is 2^32 divided by the golden
ratio: Knuth, The Art of Computer Programming 3, 6.4)."""


def unwritten(size_bytes: int) -> bytes:
    """Return the contents of a new block for a program with checks, from the start of a page."""
    return (UNWRITTEN_PAGE * -(-size_bytes // len(UNWRITTEN_PAGE)))[:size_bytes]


def new_memory() -> Callable[[int], bytes] | None:
    """Return the initial bytes of a block or tile, as set by HBRT_FILL; None to leave it unchanged.

    Raises:
        BadSettingError: HBRT_FILL has an invalid value.
    """
    how, seed = settings.seeded("HBRT_FILL")
    if not settings.is_given("HBRT_FILL") and checks_of(settings.words("HBRT_CHECK")):
        how = "pattern"
    if how == "random":
        return random.Random(seed).randbytes  # noqa: S311 - repeatable, for a test
    return (lambda size_bytes: PATTERN * size_bytes) if how == "pattern" else None
