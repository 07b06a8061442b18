"""A farm against one board: what an item costs beside the same calls, and what a second board brings, on this machine.

``python -m benchmarks.farm --quick`` takes a minute on an idle machine. What an item costs is CPU time, of this process
and of the board's, whatever else runs; what a second board brings is a ratio of seconds, and needs idle CPUs.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from arm_client.client import private_board
from arm_client.farm import Farm
from hbrt.types import HB_DSP_RPC_CMD_PING

ITEM_S = 0.05  # of CPU


def compute(board: Any, _item: int) -> None:
    """Fifty milliseconds of CPU, and a call."""
    until = time.thread_time() + ITEM_S
    while time.thread_time() < until:
        pass
    board.call(HB_DSP_RPC_CMD_PING)


def tiny(board: Any, _item: int) -> tuple[int, float]:
    """One call; returns the process and its CPU time until now."""
    board.call(HB_DSP_RPC_CMD_PING)
    return os.getpid(), time.process_time()


def cpu_of_an_item(items: int) -> tuple[float, float]:
    """CPU seconds of a tiny item on a farm of one board, this process's and the board's, and alone."""
    with private_board(ddr_bytes=64 << 20) as board:
        tiny(board, 0)
        start = time.process_time()
        for item in range(items):
            tiny(board, item)
        alone = time.process_time() - start
    with Farm(1, ddr_bytes=64 << 20) as farm:
        list(farm.map(tiny, range(10)))
        start = time.process_time()
        theirs = [result.value[1] for result in farm.map(tiny, range(items))]
        spent = time.process_time() - start + theirs[-1] - theirs[0]
    return spent / items, alone / items


def seconds_on(boards: int, function: Callable[[Any, Any], Any], items: int) -> float:
    """Seconds that a farm with warm boards takes for items."""
    with Farm(boards, ddr_bytes=64 << 20) as farm:
        list(farm.map(function, range(4 * boards)))
        start = time.perf_counter()
        for _ in farm.map(function, range(items)):
            pass
        return time.perf_counter() - start


def growth(items: int) -> Iterator[float]:
    """Largest memory of this process in MiB after each tenth of many tiny items."""
    with Farm(2, ddr_bytes=64 << 20) as farm:
        for result in farm.map(tiny, range(items)):
            if (result.index + 1) % (items // 10) == 0:
                yield resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer items")
    is_quick = parser.parse_args().quick
    items, rounds, many = (40, 3, 5_000) if is_quick else (200, 5, 100_000)
    spent, alone = cpu_of_an_item(2_000)
    more = spent - alone
    print(f"a tiny item: {spent * 1e3:.2f} ms of CPU on a farm, {alone * 1e3:.2f} ms alone")
    print(f"that is {more * 1e3:.2f} ms more, {more / ITEM_S:.1%} of an item of 50 ms (goal: 2 ms, 5 %)")
    gains = []
    for _ in range(rounds):
        one, two = seconds_on(1, compute, items), seconds_on(2, compute, items)
        gains.append(one / two)
        print(f"{items} items of 50 ms of CPU: farm of 1 {one:.2f} s, farm of 2 {two:.2f} s")
    print(f"2 boards bring {statistics.median(gains):.2f} times one (goal: 1.8 on 2 idle CPUs)")
    sizes = list(growth(many))
    print(f"{many} tiny items: {sizes[0]:.0f} MiB after a tenth of them, {sizes[-1]:.0f} MiB at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
