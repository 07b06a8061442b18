"""SRAM of the NPU: the pages for a context, their bitmap, and the bytes of internal tensors in it. Pure.

Source: RKNN SDK advanced guide (chapter 5), 5.7
Emulator: a context gets one range of pages, the first that fits all of its internal memory, otherwise the largest; the
saved traffic is counted, not timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rknn_api.planning import arena_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rknn_api.planning import Placed

PAGE: Final = 4096
_ROW_PAGES: Final = 32


class Region(NamedTuple):
    """Pages of SRAM, bytes from its start."""

    start: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.start + self.size_bytes


def take(wanted_bytes: int, total_bytes: int, taken: Iterable[Region]) -> Region:
    """Pages for a context that are not used by others; 0 bytes if none are free or requested."""
    wanted = -(-wanted_bytes // PAGE) * PAGE
    gaps, at = [], 0
    for one in [*sorted(taken), Region(total_bytes // PAGE * PAGE, 0)]:
        if one.start > at:
            gaps.append(Region(at, one.start - at))
        at = max(at, one.end)
    best = next((gap for gap in gaps if gap.size_bytes >= wanted), None)
    best = best or max(gaps, key=lambda gap: gap.size_bytes, default=Region(0, 0))
    return Region(best.start, min(best.size_bytes, wanted))


def bitmap(total_bytes: int, taken: Iterable[Region]) -> str:
    """The pages as the NPU's driver shows them: ``*`` for a used one, ``.`` for a free one, 32 a row; then the sums."""
    marks = ["."] * (total_bytes // PAGE)
    for one in taken:
        for page in range(one.start // PAGE, -(-one.end // PAGE)):
            marks[page] = "*"
    used = marks.count("*") * PAGE
    rows = [
        f"[{at // _ROW_PAGES:03}] [{''.join(marks[at : at + _ROW_PAGES])}]" for at in range(0, len(marks), _ROW_PAGES)
    ]
    return "\n".join(
        (
            'SRAM bitmap: "*" - used, "." - free (1bit = 4KB)',
            *rows,
            f"SRAM total size: {total_bytes}, used: {used}, free: {total_bytes - used}",
        )
    )


def hit(start: int, end: int, window: Region) -> int:
    """Bytes of a tensor in SRAM."""
    return max(0, min(end, window.end) - max(start, window.start))


class Traffic(NamedTuple):
    """Bytes moved by a run: the total for internal tensors, each written once and read once, and the part in SRAM."""

    internal: int
    in_sram: int


def traffic(placed: Sequence[tuple[int, int]], window: Region, edge_bytes: int) -> Traffic:
    """The traffic of tensors by (start, end); ``edge_bytes`` of the model's inputs and outputs are moved once."""
    sizes = sum(end - start for start, end in placed)
    return Traffic(2 * sizes + edge_bytes, 2 * sum(hit(start, end, window) for start, end in placed))


def table(placed: Sequence[Placed], window: Region, base: int, edge_bytes: int) -> str:
    """The internal tensors of a model with their offsets, as logged by the runtime at level 3.

    Args:
        placed: The tensors; the arena begins with the window.
        window: SRAM of the context.
        base: Physical address of the SRAM.
        edge_bytes: Bytes of the model's inputs and outputs.
    """
    start, in_sram = base + window.start, Region(0, window.size_bytes)
    rows = [
        f"{at:<4}{one.tensor.name:<24} 0x{start + one.start:08x} 0x{start + one.end:08x} "
        f"0x{one.tensor.size_bytes:08x} | 0x{hit(one.start, one.end, in_sram):08x}"
        for at, one in enumerate(placed, 1)
    ]
    moved = traffic([(one.start, one.end) for one in placed], in_sram, edge_bytes)
    addresses = f"[0x{start:08x}, 0x{start + in_sram.end:08x})"
    return "\n".join(
        (
            f"Total allocated Internal SRAM Size: {window.size_bytes}, Addr: {addresses}",
            f"{'ID':<4}{'Tensor':<24} {'[Start':<10} {'End)':<10} {'Size':<10} | SramHit",
            *rows,
            f"Total Internal Memory Size: {arena_bytes(placed)}",
            f"Predict Internal Memory RW Amount: {moved.internal}",
            f"Predict SRAM Hit RW Amount: {moved.in_sram}",
        )
    )
