"""What new memory holds: zeros, or bytes that show where a program reads what nobody wrote.

Emulator: what DDR and TCM hold after an allocation is not documented; on a chip it is what was there before.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hbrt import settings
from hbrt.findings.checks import checks_of

PATTERN = b"\xcd"
"""As a 32-bit float -4.3e8, as an int8 -51: neither a likely value nor a likely sum of such."""


def new_memory() -> Callable[[int], bytes] | None:
    """Bytes for a block or tile of a size, as HBRT_FILL has them; None where it is left as it is.

    Raises:
        BadSettingError: HBRT_FILL has none of its values.
    """
    how, seed = settings.seeded("HBRT_FILL")
    if not settings.is_given("HBRT_FILL") and checks_of(settings.words("HBRT_CHECK")):
        how = "pattern"
    if how == "random":
        return random.Random(seed).randbytes  # noqa: S311 - repeatable, for a test
    return (lambda size_bytes: PATTERN * size_bytes) if how == "pattern" else None
