"""Mistakes that strict mode finds in this process: how they are counted, and reported to the program and the board.

A board says nothing: its DSP reads what memory held before, a structure of zeros perhaps, with which an op may succeed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from arm_client.cabi.call_site import call_site
from arm_client.cabi.last_error import RequestRefusedError
from hbrt.protocol.control import MEMORY_USES

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from hbrt.attach.link import Link

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


def report_input(link: Link, what: str, phy_addr: int, size_bytes: int, count: int) -> None:
    """Log a warning in this process, and have the board keep a finding.

    Args:
        link: This process's attachment.
        what: What reads the range: "input block", "input tensor".
        phy_addr: Its start.
        size_bytes: Its size.
        count: Bytes in it that were not cleaned.
    """
    _warn(
        f"The {what} at {phy_addr:#x}+{size_bytes:#x} holds {count} bytes that the CPU changed and did not clean: what "
        "memory held before is read. Call hbSysFlushMem with HB_SYS_MEM_CACHE_CLEAN after writing."
    )
    _find(link, "missing_clean", phy=phy_addr, size=size_bytes, count=count)


def report_output(link: Link, phy_addr: int, size_bytes: int, count: int) -> None:
    """As ``report_input``, of an output block."""
    _warn(
        f"The output block at {phy_addr:#x}+{size_bytes:#x} holds {count} bytes that the CPU changed and did not "
        "clean: when the cache writes them back, they replace what the DSP wrote. Call hbSysFlushMem after writing, "
        "before the task is submitted."
    )
    _find(link, "missing_clean", phy=phy_addr, size=size_bytes, count=count, is_output=1)


def report_pointed(link: Link, phy_addr: int, size_bytes: int, count: int, params: int, at: int) -> None:
    """As ``report_input``, of memory that the input block has an address of.

    Args:
        link: This process's attachment.
        phy_addr: That address.
        size_bytes: How far the memory was looked at.
        count: Bytes in it that were not cleaned.
        params: Start of the input block.
        at: Offset of the address in the input block.
    """
    _warn(
        f"The memory at {phy_addr:#x}, whose address stands at offset {at} of the input block {params:#x}, holds "
        f"{count} bytes that the CPU changed and did not clean: what memory held before is read, or, if the DSP writes "
        "there, the cache replaces what it wrote. Call hbSysFlushMem with HB_SYS_MEM_CACHE_CLEAN after writing."
    )
    _find(link, "missing_clean", phy=phy_addr, size=size_bytes, count=count, params=params, at=at)


def report_shared(link: Link, phy_addr: int, size_bytes: int, new: tuple[int, int], old: tuple[int, int]) -> None:
    """As ``report_input``, of memory that two unfinished tasks use, one of which writes it.

    Args:
        link: This process's attachment.
        phy_addr: Start of that memory.
        size_bytes: Its size.
        new: Command of the task that is about to be submitted, and what it does there (an index of MEMORY_USES).
        old: Likewise, of the task that has not ended.
    """
    _warn(
        f"This task of command {new[0]:#x} {MEMORY_USES[new[1]]} {phy_addr:#x}+{size_bytes:#x}, which an earlier one "
        f"of command {old[0]:#x} that has not ended {MEMORY_USES[old[1]]}: the result depends on which is faster. Wait "
        "for that one first, or give each memory of its own."
    )
    _find(link, "shared", phy=phy_addr, size=size_bytes, cmd=new[0], use=new[1], earlier_cmd=old[0], earlier_use=old[1])


def _warn(sentence: str) -> None:
    import logging

    logging.getLogger("hbrt").warning("%s: %s", call_site(), sentence)


def _find(link: Link, verb: str, **args: Any) -> None:
    bounded = {name: min(value, _MOST_BYTES) if name in {"size", "count"} else value for name, value in args.items()}
    with contextlib.suppress(RequestRefusedError):  # the call that follows says what ails the board
        link.request(verb, **bounded)
