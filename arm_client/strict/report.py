"""Mistakes found in this process, and how they are reported to the program and the board.

A real board reports nothing: its DSP reads the old contents of memory. An op may even succeed with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from arm_client.cabi import say
from arm_client.cabi.call_site import call_site
from hbrt.findings.record import KINDS, Finding, Place
from hbrt.findings.text import counted
from hbrt.protocol.control import MAX_SITE, MEMORY_USES
from hbrt.types import HB_SYS_MEM_CACHE_CLEAN

if TYPE_CHECKING:
    from arm_client.memory.block import Block
    from arm_client.strict.rules import Span
    from hbrt.attach.link import Link


def dirty_byte_count(block: Block, start: int, end: int) -> int:
    """Count the dirty bytes of a range: changed by the CPU since they were last flushed; 0 without an image.

    The image is compared with its own earlier state, so bytes that the device wrote do not count.
    """
    if block.image is None or block.flushed is None:
        return 0
    import numpy as np  # only strict mode needs it

    now, before = (np.frombuffer(view[start:end], np.uint8) for view in (block.image, block.flushed))
    return int(np.count_nonzero(now != before))


class Mistake(NamedTuple):
    """A mistake of this process.

    Attributes:
        kind: One of hbrt.findings.record.KINDS.
        text: The message, with values and what to do.
        places: The sides of the mistake, the main one first.
    """

    kind: str
    text: str
    places: tuple[Place, ...]


ENDLESS_WAIT: Final = Mistake(
    "endless-wait",
    "hbDSPWaitTaskDone waits without a limit: if the core hangs, so does this program. Pass a timeout in "
    "milliseconds, and release the task when it returns HB_DSP_TIMEOUT.",
    (Place("waits"),),
)


class MistakeError(Exception):
    """Under fail-fast: the call is refused because of a mistake in it."""


def missing_clean(what: str, span: Span, count: int) -> Mistake:
    """Report memory that is read although the CPU changed it without a clean.

    Args:
        what: What reads the range: "input block", "input tensor".
        span: The range.
        count: Bytes in it that were not cleaned.
    """
    return _missing_clean_of(
        f"The {what} at {span} holds {counted(count, 'byte')} that the CPU changed but did not clean: "
        f"the old contents of memory are read. Call hbSysFlushMem with HB_SYS_MEM_CACHE_CLEAN after "
        f"writing.",
        span,
    )


def missing_clean_in_output(span: Span, count: int) -> Mistake:
    """Like ``missing_clean``, for an output block."""
    return _missing_clean_of(
        f"The output block at {span} holds {counted(count, 'byte')} that the CPU changed but did not "
        "clean: when the cache writes them back, they overwrite the DSP's results. Call hbSysFlushMem after writing, "
        "before the task is submitted.",
        span,
    )


def missing_clean_behind_pointer(span: Span, count: int, params: int, at: int) -> Mistake:
    """Like ``missing_clean``, for memory whose address is in the input block.

    Args:
        span: The memory that was checked, from that address on.
        count: Bytes in it that were not cleaned.
        params: Start of the input block.
        at: Offset of the address in the input block.
    """
    return _missing_clean_of(
        f"The memory at {span.start:#x}, whose address is at offset {at} of the input block {params:#x}, holds "
        f"{counted(count, 'byte')} that the CPU changed but did not clean: the old contents of memory "
        f"are read or, if the DSP writes there, the cache overwrites its results. Call hbSysFlushMem "
        f"with HB_SYS_MEM_CACHE_CLEAN after "
        "writing.",
        span,
    )


def _missing_clean_of(text: str, span: Span) -> Mistake:
    used = Place("used by a task", phy_addr=span.start, size_bytes=span.end - span.start)
    return Mistake("missing-clean", text, (used,))


def shared_block(span: Span, new: tuple[int, int], old: tuple[int, int], submitted_at: str) -> Mistake:
    """Report memory that two unfinished tasks use, one of which writes it.

    Args:
        span: That memory.
        new: Command of the task about to be submitted, and what it does there (an index into MEMORY_USES).
        old: Likewise, for the unfinished task.
        submitted_at: ``file:line`` of the unfinished task's submission; empty if unknown.
    """
    earlier = f" The earlier task was submitted at {submitted_at}." if submitted_at else ""
    return Mistake(
        "shared-block",
        f"This task of command {new[0]:#x} {MEMORY_USES[new[1]]} {span}, which an earlier one "
        f"of command {old[0]:#x} that has not finished {MEMORY_USES[old[1]]}: the result depends on their timing. Wait "
        f"for that one first, or use separate memory.{earlier}",
        tuple(
            Place(MEMORY_USES[use], site, cmd=cmd, phy_addr=span.start, size_bytes=span.end - span.start)
            for (cmd, use), site in ((new, None), (old, submitted_at or None))
        ),
    )


def is_needless(block: Block, start: int, end: int, flag: int) -> bool:
    """Return whether a flush would move only bytes that have not changed since the last flush."""
    if block.image is None or block.flushed is None:
        return False
    if flag == HB_SYS_MEM_CACHE_CLEAN:
        return block.image[start:end] == block.flushed[start:end]
    return not block.is_given and block.base[start:end] == block.flushed[start:end]


def needless_flush(span: Span, flag: int) -> Mistake:
    """Return advice about a flush that moves nothing."""
    is_clean = flag == HB_SYS_MEM_CACHE_CLEAN
    name, why = (
        ("CLEAN", "the CPU has changed no byte there") if is_clean else ("INVALIDATE", "no task has had the block")
    )
    return Mistake(
        "needless-flush",
        f"HB_SYS_MEM_CACHE_{name} of {span} moves nothing: {why} since the last flush. On a board it "
        f"still takes time; remove it if that is always the case.",
        (Place("flushes", phy_addr=span.start, size_bytes=span.end - span.start),),
    )


def report_mistake(link: Link, mistake: Mistake) -> None:
    """Have the board record a mistake with the calling line; log it here if the board does not report it."""
    site = call_site(MAX_SITE)
    text = f"{site}: {mistake.text}"
    if KINDS[mistake.kind].is_reported_at_once:
        say.tell(Finding(mistake.kind, text))
    main, *others = mistake.places
    link.find(mistake.kind, text, main if main.site else main._replace(site=site), *others)
