"""A farm against one board: the cost of an item compared with the same calls, and the gain from a second board.

``python -m benchmarks.farm --quick`` takes a minute on an idle machine. What an item costs is CPU time, of this process
and of the board's, whatever else runs; what a second board brings is a ratio of seconds, and needs idle CPUs.
``--simulate 1000`` goes beyond this machine: a discrete-event model of up to that many boards, whose service times and
overheads are CPU times measured in the same run.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from arm_client.client import private_board
from hbrt.types import HB_DSP_RPC_CMD_PING
from hbrt_farm import Farm
from hbrt_farm.engine import engine

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


def cpu_of_an_item(items: int) -> tuple[float, float, float]:
    """CPU seconds of a tiny item: this process's on a farm of one board, the board's process's, and alone."""
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
        mine = time.process_time() - start
    return mine / items, (theirs[-1] - theirs[0]) / items, alone / items


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


class Idler:
    """An actor that sleeps, or answers at once."""

    def sleep(self, seconds: float) -> None:
        """Keep all that is asked after this waiting."""
        time.sleep(seconds)


def cpu_of_a_wait(pending: int, rounds: int = 100) -> tuple[float, float]:
    """Return the CPU seconds of a wait for one of ``pending`` answers, and the shortest round trip in seconds."""
    with engine(2, None) as ray:
        actor = ray.remote(num_cpus=1)(Idler)
        asleep, awake = actor.remote(), actor.remote()
        ray.get(awake.sleep.remote(0))
        answers = [asleep.sleep.remote(1e6) for _ in range(pending)]
        ready, trips = awake.sleep.remote(0), []
        for _ in range(rounds):
            start = time.perf_counter()
            ray.get(awake.sleep.remote(0))
            trips.append(time.perf_counter() - start)
        ray.get(ready)
        spent = time.process_time()
        for _ in range(rounds):
            ray.wait([*answers, ready], num_returns=1)
        return (time.process_time() - spent) / rounds, min(trips)


def simulate(most: int, file: Path | None) -> None:
    """Print what the model predicts for up to ``most`` boards."""
    from benchmarks._farm_model import Model, Overheads, plot

    mine, theirs, alone = cpu_of_an_item(2_000)
    (few_s, trip_s), (many_s, _) = cpu_of_a_wait(1), cpu_of_a_wait(2_000)
    with private_board(ddr_bytes=64 << 20) as board:
        service_s = []
        for item in range(40):
            start = time.process_time()
            compute(board, item)
            service_s.append(time.process_time() - start)
    added = Overheads(mine - few_s, few_s, max(0.0, many_s - few_s) / 2_000, max(0.0, theirs - alone), trip_s / 2)
    print("Measured here, CPU times but for the way:")
    print(f"  driver {added.item * 1e3:.3f} ms per item, {added.wait * 1e3:.3f} ms per wait")
    print(
        f"  {added.pending * 1e6:.3f} µs more of it for each item under way; "
        f"a board {added.worker * 1e3:.3f} ms per item;"
    )
    print(f"  the way to a board {added.transit * 1e3:.3f} ms; an item {statistics.median(service_s) * 1e3:.1f} ms")
    print("Simulated:")
    print("   item  boards   items/s  times one  of ideal  driver busy")
    sizes = sorted({min(size, most) for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, most)})
    curves = {}
    for scale in (0.1, 1, 10):
        runs = [Model(boards, [scale * one for one in service_s], added).run() for boards in sizes]
        curves[f"items of {ITEM_S * scale * 1e3:.0f} ms"] = runs
        for run in runs:
            gain = run.rate / runs[0].rate
            shares = f"{gain / run.boards:8.0%}  {run.busy:11.0%}"
            print(f"{ITEM_S * scale * 1e3:4.0f} ms  {run.boards:6}  {run.rate:8.1f}  {gain:9.1f}  {shares}")
    if file is not None:
        plot(curves, file)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer items")
    parser.add_argument("--simulate", type=int, metavar="BOARDS", help="simulate up to this many boards instead")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="with --simulate: a picture of it, as PNG")
    given = parser.parse_args()
    if given.simulate:
        simulate(max(1, given.simulate), given.plot)
        return 0
    is_quick = given.quick
    items, rounds, many = (40, 3, 5_000) if is_quick else (200, 5, 100_000)
    mine, theirs, alone = cpu_of_an_item(2_000)
    spent = mine + theirs
    more = spent - alone
    print(f"a tiny item: {spent * 1e3:.2f} ms of CPU on a farm, {alone * 1e3:.2f} ms alone")
    print(f"that is {more * 1e3:.2f} ms more, {more / ITEM_S:.1%} of an item of 50 ms (goal: 2 ms, 5%)")
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
