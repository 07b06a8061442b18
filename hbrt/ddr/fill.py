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
"""As a 32-bit float -4.3e8, as an int8 -51: neither a likely value nor a likely sum of such."""

_WORD = struct.Struct("<II")
UNWRITTEN_PAGE = b"".join(
    _WORD.pack((at + 1) * 0x9E3779B1 & 0xFFFF_FFFF, int.from_bytes(PATTERN * 4, "little")) for at in range(512)
)
"""A page that nobody wrote since its block was allocated, under checks: the pattern in every other four bytes, and
between them numbers that differ by their place, so that bytes of a program look like no part of it (the multiplier is
2^32 by the golden ratio: Knuth, The Art of Computer Programming 3, 6.4)."""


def unwritten(size_bytes: int) -> bytes:
    """The contents of a new block of a program with checks, from the start of a page."""
    return (UNWRITTEN_PAGE * -(-size_bytes // len(UNWRITTEN_PAGE)))[:size_bytes]


def new_memory() -> Callable[[int], bytes] | None:
    """Bytes for a block or tile of a size, as set by HBRT_FILL; None if it is left unchanged.

    Raises:
        BadSettingError: HBRT_FILL has an invalid value.
    """
    how, seed = settings.seeded("HBRT_FILL")
    if not settings.is_given("HBRT_FILL") and checks_of(settings.words("HBRT_CHECK")):
        how = "pattern"
    if how == "random":
        return random.Random(seed).randbytes  # noqa: S311 - repeatable, for a test
    return (lambda size_bytes: PATTERN * size_bytes) if how == "pattern" else None
