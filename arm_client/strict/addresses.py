"""Mistakes with addresses in submitted tasks and freed memory, found under the check memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arm_client.strict.report import Mistake
from hbrt.ddr.misuse import misuse
from hbrt.findings.record import Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arm_client.memory.block import Block
    from arm_client.memory.blocks import Blocks
    from arm_client.memory.freed import FreedBlock
    from arm_client.strict.rules import Span
    from hbrt.ddr.file import Ddr


def refused_block(ddr: Ddr, blocks: Blocks, cmd: int, phy_addr: int, size_bytes: int, why: str) -> Mistake:
    """Report a task refused because of one of its blocks.

    Args:
        ddr: The board's memory.
        blocks: This process's blocks.
        cmd: The task's command.
        phy_addr: The block's address, as given in the task.
        size_bytes: Its size.
        why: The refusal's message.
    """
    here = Place("submitted", cmd=cmd, phy_addr=phy_addr, size_bytes=size_bytes)
    real = blocks.physical_of(phy_addr)
    if real is not None:
        text = f"A task of command {cmd:#x} uses the virtual address {phy_addr:#x} of the block "
        return Mistake("virtual-address", f"{text}{_block_of(blocks, real)}: write {real:#x}, its phyAddr.", (here,))
    kind, places = misuse(ddr, phy_addr, size_bytes)
    gone = blocks.freed.find_physical(phy_addr)
    if gone is None or kind != "use-after-free":
        return Mistake(kind, f"A task of command {cmd:#x} is refused. {why}", (here, *places))
    return Mistake(
        kind,
        f"A task of command {cmd:#x} uses the block {phy_addr:#x}+{size_bytes:#x}, which is in freed memory: {gone}. "
        "Free a block after its last use.",
        (here, _freed(gone), _allocated(gone)),
    )


def virtual_words(
    blocks: Blocks, cmd: int, into: Span, words: Iterable[tuple[int, int]], pointers: Iterable[tuple[int, int]]
) -> Mistake | None:
    """Report a virtual address in a structure that an op reads; None if each is next to its physical address.

    Args:
        blocks: This process's blocks.
        cmd: The task's command.
        into: The input block.
        words: Offset and value of each word that is a virtual address.
        pointers: Offset and value of each physical address: a structure with both, such as an hbSysMem, is correct.
    """
    known = {block.phy_addr for _, word in pointers if (block := blocks.holding(word)) is not None}
    for at, word in words:
        real = blocks.physical_of(word)
        block = None if real is None else blocks.holding(real)
        if real is None or block is None or block.phy_addr in known:
            continue
        return Mistake(
            "virtual-address",
            f"The input block {into.start:#x}+{into.end - into.start:#x} of a task of command {cmd:#x} has, at offset "
            f"{at} the virtual address {word:#x}, which no op can use. Write {real:#x}, the physical one "
            f"(mem.phyAddr), of the block {_block_of(blocks, real)}.",
            (
                Place("submitted", cmd=cmd, phy_addr=into.start + at, size_bytes=8, block=into.start),
                Place(
                    "allocated",
                    block.allocated_at or None,
                    phy_addr=real,
                    block=block.phy_addr,
                    block_bytes=block.size_bytes,
                ),
            ),
        )
    return None


def double_free(gone: FreedBlock, freed_at: str) -> Mistake:
    """Report a double free.

    Args:
        gone: The block, and where it was first freed.
        freed_at: ``file:line`` of the second free.
    """
    return Mistake(
        "double-free",
        f"Freed memory is freed again: {gone}. Free a block only once, then drop its address.",
        (
            Place("freed again", freed_at, phy_addr=gone.phy_addr, block=gone.phy_addr, block_bytes=gone.size_bytes),
            _freed(gone),
            _allocated(gone),
        ),
    )


def freed_in_use(block: Block, freed_at: str, user: str, submitted_at: str, cmd: int | None = None) -> Mistake:
    """Report a block freed while a task may still use it.

    Args:
        block: The block.
        freed_at: ``file:line`` of the free.
        user: The task, as named in the message.
        submitted_at: ``file:line`` of its submission.
        cmd: Command of a DSP task.
    """
    allocated = f", allocated at {block.allocated_at}," if block.allocated_at else ""
    submitted = f", submitted at {submitted_at}," if submitted_at else ""
    return Mistake(
        "use-after-free",
        f"The block {block.phy_addr:#x}+{block.size_bytes:#x}{allocated} is freed while "
        f"{user}{submitted} may still use it: the program has not waited for it. Wait for a task "
        "(hbDSPWaitTaskDone, hbDNNWaitTaskDone, or result() in Python) before its memory is freed.",
        (
            Place("freed", freed_at, phy_addr=block.phy_addr, block=block.phy_addr, block_bytes=block.size_bytes),
            Place("submitted", submitted_at or None, cmd=cmd),
            Place("allocated", block.allocated_at or None, phy_addr=block.phy_addr, block=block.phy_addr),
        ),
    )


def late_flush(gone: FreedBlock) -> Mistake:
    """Report a flush of a freed block."""
    return Mistake(
        "use-after-free",
        f"Freed memory is flushed: {gone}. Flush a block before freeing it.",
        (
            Place("flushed", phy_addr=gone.phy_addr, size_bytes=gone.size_bytes, block=gone.phy_addr),
            _freed(gone),
            _allocated(gone),
        ),
    )


def late_view(gone: FreedBlock, at: int, *, is_write: bool) -> Mistake:
    """Report the use of an array of a freed block.

    Args:
        gone: The block.
        at: The first byte accessed.
        is_write: Whether the access was a write.
    """
    does = "written" if is_write else "read"
    return Mistake(
        "use-after-free",
        f"Byte {at} of freed memory is {does} through an array or a view: {gone}. The array keeps a copy "
        f"of the block's last bytes, which no task sees. Free a block after its last use, or copy the "
        f"array before.",
        (
            Place(does, phy_addr=gone.phy_addr + at, size_bytes=1, block=gone.phy_addr, block_bytes=gone.size_bytes),
            _freed(gone),
            _allocated(gone),
        ),
    )


def _freed(gone: FreedBlock) -> Place:
    return Place("freed", gone.freed_at, phy_addr=gone.phy_addr, block=gone.phy_addr, block_bytes=gone.size_bytes)


def _allocated(gone: FreedBlock) -> Place:
    return Place(
        "allocated", gone.allocated_at or None, phy_addr=gone.phy_addr, block=gone.phy_addr, block_bytes=gone.size_bytes
    )


def _block_of(blocks: Blocks, phy_addr: int) -> str:
    block = blocks.holding(phy_addr)
    if block is None:
        return f"at {phy_addr:#x}"
    where = f", allocated at {block.allocated_at}" if block.allocated_at else ""
    return f"{block.phy_addr:#x}+{block.size_bytes:#x}{where}"
