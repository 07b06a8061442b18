"""SRAM of the NPU: the pages for a context, their bitmap, and the bytes of internal tensors in it. Pure.

Source: RKNN SDK advanced guide (chapter 5), 5.7
Emulator: a context gets one range of pages, the first that fits all of its internal memory, otherwise the largest; the
saved traffic is counted, not timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hbrt.borders.printable import printable
from rknn_api.planning import arena_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rknn_api.planning import Lifetime, Placed

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


def table(
    placed: Sequence[Placed],
    edges: tuple[Sequence[Lifetime], Sequence[Lifetime]],
    weights: tuple[int, int],
    window: Region,
    base: int,
) -> str:
    """The tensors of a model and the traffic of a run, as logged by the runtime at level 3.

    Args:
        placed: The internal tensors, with their offsets in an arena that begins with the window.
        edges: The inputs and the outputs, which are in the program's memory.
        weights: Bytes of the weights as stored, and as read by a run.
        window: SRAM of the context.
        base: Physical address of the SRAM.
    """
    start, in_sram = base + window.start, Region(0, window.size_bytes)
    rows = [_row(one, "", "", "\\") for one in edges[0]]
    rows += [
        _row(
            one.tensor,
            f"0x{start + one.start:08x}",
            f"0x{start + one.end:08x}",
            f"0x{hit(one.start, one.end, in_sram):08x}",
        )
        for one in placed
    ]
    rows += [_row(one, "", "", "\\") for one in edges[1]]
    head = [
        "ID",
        "User",
        "Tensor",
        "DataType",
        "OrigShape",
        "NativeShape",
        "|",
        "[Start",
        "End)",
        "Size",
        "|",
        "SramHit",
    ]
    cells = [head, *([str(at), *row] for at, row in enumerate(rows, 1))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    addresses = f"[0x{start:08x}, 0x{start + in_sram.end:08x})"
    edge_bytes = sum(one.size_bytes for one in (*edges[0], *edges[1]))
    moved = traffic([(one.start, one.end) for one in placed], in_sram, edge_bytes)
    return "\n".join(
        (
            f"Total allocated Internal SRAM Size: {window.size_bytes}, Addr: {addresses}",
            *lines,
            f"Total Weight Memory Size: {weights[0]}",
            f"Total Internal Memory Size: {arena_bytes(placed)}",
            f"Predict Internal Memory RW Amount: {moved.internal}",
            f"Predict Weight Memory RW Amount: {weights[1]}",
            f"Predict SRAM Hit RW Amount: {moved.in_sram}",
        )
    )


def _row(tensor: Lifetime, start: str, end: str, in_sram: str) -> list[str]:
    shapes = ["(" + ",".join(map(str, shape)) + ")" for shape in (tensor.shape, tensor.native)]
    name = printable(tensor.name)
    return [
        tensor.user,
        name,
        tensor.dtype.upper(),
        *shapes,
        "|",
        start,
        end,
        f"0x{tensor.size_bytes:08x}",
        "|",
        in_sram,
    ]
