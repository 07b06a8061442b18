"""What a free and an alloc cost as the number of live blocks grows: O(log n) is what it has to be.

    python -m benchmarks.alloc [--rounds N] [--markdown] [--json FILE]

Measures the allocator alone, in this process. For each number of live blocks the heap is filled with blocks of
1 byte to 64 KiB, and a half of them are replaced at random, so that free space is in pieces. Then the heaps take
turns: in each round each frees and allocates at random places. The ratio to the smallest heap is what counts:
10 000 times the blocks may cost a small factor more.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import click

from benchmarks._measure import Rounds, machine, table
from dsp_server.memory.heap import Heap
from hbrt.ddr.layout import PAGE_BYTES

LIVE_BLOCKS = (10, 100, 1_000, 10_000, 100_000)
LARGEST_BLOCK_BYTES = 64 * 1024
HEAP_PAGES_A_BLOCK = 20  # twice what a block of mean size takes with its guard
PAIRS_A_ROUND = 2_000
SEED = 20


class Allocator(Protocol):
    """What is measured. A token is whatever `free` needs to find its block again."""

    def alloc(self, size_bytes: int) -> int:
        """Allocate a block and return its token."""

    def free(self, token: int) -> None:
        """Give a block back."""

    def close(self) -> None:
        """End the measurement; raise when it has left anything wrong."""


class PureHeap:
    """The allocator alone. It is arithmetic, with no bytes behind it, so a heap of any size costs nothing."""

    def __init__(self, live_blocks: int) -> None:
        self._heap = Heap(0x8000_0000, live_blocks * HEAP_PAGES_A_BLOCK * PAGE_BYTES)

    def alloc(self, size_bytes: int) -> int:
        """Return the physical address of a new block."""
        return self._heap.alloc(size_bytes, owner=1).phy_addr

    def free(self, token: int) -> None:
        """Free the block at a physical address."""
        self._heap.free(token)

    def close(self) -> None:
        """Check that the heap has not lost count."""
        if self._heap.used_bytes != sum(block.reserved_bytes for block in self._heap):
            raise RuntimeError("The heap's count of used bytes is wrong.")


class LiveSet:
    """An allocator with a fixed number of live blocks, replaced at random; every run replaces the same ones."""

    def __init__(self, allocator: Allocator, live_blocks: int) -> None:
        self.allocator = allocator
        self._choose = random.Random(SEED)
        self._tokens = [allocator.alloc(self._size_bytes()) for _ in range(live_blocks)]
        halved = self._choose.sample(range(live_blocks), live_blocks // 2)
        for index in halved:
            allocator.free(self._tokens[index])
        for index in halved:
            self._tokens[index] = allocator.alloc(self._size_bytes())

    def _size_bytes(self) -> int:
        return self._choose.randint(1, LARGEST_BLOCK_BYTES)

    def replace_us(self, pairs: int) -> float:
        """Free and allocate `pairs` times; return the mean time of one free and one alloc, in microseconds."""
        tokens, free, alloc = self._tokens, self.allocator.free, self.allocator.alloc
        plan = [(self._choose.randrange(len(tokens)), self._size_bytes()) for _ in range(pairs)]
        before_ns = time.perf_counter_ns()
        for index, size_bytes in plan:
            free(tokens[index])
            tokens[index] = alloc(size_bytes)
        return (time.perf_counter_ns() - before_ns) / 1e3 / pairs


def measure(make: Callable[[int], Allocator], rounds: int) -> dict[int, Rounds]:
    """Microseconds of one free and one alloc in each round, by number of live blocks."""
    sets = {live_blocks: LiveSet(make(live_blocks), live_blocks) for live_blocks in LIVE_BLOCKS}
    found: dict[int, list[float]] = {live_blocks: [] for live_blocks in sets}
    for _ in range(rounds):
        for live_blocks, live_set in sets.items():
            found[live_blocks].append(live_set.replace_us(PAIRS_A_ROUND))
    for live_set in sets.values():
        live_set.allocator.close()
    return {live_blocks: Rounds(tuple(values)) for live_blocks, values in found.items()}


def curve(found: dict[int, Rounds], *, markdown: bool) -> str:
    """Lay out the curve as a table."""
    smallest = found[LIVE_BLOCKS[0]]
    rows = [
        (
            f"{live_blocks}",
            f"{cost.median:.2f}",
            f"{cost.spread:.0%}",
            f"{cost.ratio_to(smallest).median:.2f}",
        )
        for live_blocks, cost in found.items()
    ]
    head = ("live blocks", "free + alloc, µs", "spread", f"ratio to {LIVE_BLOCKS[0]}")
    return table(head, rows, markdown=markdown)


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True, help="Rounds of each heap.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(*, rounds: int, markdown: bool, json_file: Path | None) -> None:
    """Show what a free and an alloc cost as the number of live blocks grows."""
    found = measure(PureHeap, rounds)
    click.echo(curve(found, markdown=markdown))
    if json_file:
        costs = {live_blocks: cost.values for live_blocks, cost in found.items()}
        json_file.write_text(json.dumps({"machine": machine(), "free_and_alloc_us": costs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
