"""Input that the CPU changed and did not clean, in strict mode: what tells a program of the flush that it left out.

A board says nothing: its DSP reads what memory held before, a structure of zeros perhaps, with which an op may succeed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from arm_client.call_site import call_site
from arm_client.refusal import RequestRefusedError

if TYPE_CHECKING:
    from arm_client.memory import Block
    from hbrt.link import Link

_MOST_BYTES = (1 << 32) - 1


def unclean_bytes(block: Block, start: int, end: int) -> int:
    """How many bytes of a range the CPU has changed since the last flush that moved them; 0 without an image.

    What the device wrote meanwhile is no change of the CPU's: the image is held against what it was itself.
    """
    if block.image is None or block.flushed is None:
        return 0
    import numpy as np  # strict mode alone pays for it

    now, before = (np.frombuffer(view[start:end], np.uint8) for view in (block.image, block.flushed))
    return int(np.count_nonzero(now != before))


def tell(link: Link, what: str, phy_addr: int, size_bytes: int, count: int) -> None:
    """Log a warning in this process, and have the board keep a finding.

    Args:
        link: This process's attachment.
        what: What reads the range: "input block", "input tensor".
        phy_addr: Its start.
        size_bytes: Its size.
        count: Bytes in it that were not cleaned.
    """
    import logging

    logging.getLogger("hbrt").warning(
        "%s: The %s at %#x+%#x holds %d bytes that the CPU changed and did not clean: what memory held before is read. "
        "Call hbSysFlushMem with HB_SYS_MEM_CACHE_CLEAN after writing.",
        call_site(),
        what,
        phy_addr,
        size_bytes,
        count,
    )
    with contextlib.suppress(RequestRefusedError):  # the call that follows says what ails the board
        link.request("unclean", phy=phy_addr, size=min(size_bytes, _MOST_BYTES), count=min(count, _MOST_BYTES))
