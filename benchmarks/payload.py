"""Whether the cost of a call depends on how much it is about, which it must not: only addresses travel.

    python -m benchmarks.payload [--rounds N] [--json FILE]

Two comparisons, each in rounds that take turns: an op that does nothing, called on 64 MiB and on 64 bytes;
and ``np.add`` of 64 MiB by an op, against the same call on the same arrays in this process. (On ordinary
arrays it may be faster: for those numpy asks for huge pages.) For one CPU, run it under ``taskset -c 0``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks._measure import Rounds, machine, p50_us, private_directory, raise_on_sigterm, table
from benchmarks._peers.board import ADD_CMD, NOOP_CMD, running_board
from benchmarks._report import Goal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

SMALL_BYTES, LARGE_BYTES = 64, 64 << 20
NOOPS_A_ROUND = 300
NOOP_LIMIT, ADD_LIMIT = 1.2, 1.05


def alternate(actions: dict[str, Callable[[], object]], rounds: int, times: int) -> dict[str, Rounds]:
    """Take turns; return the median time of each action in each round, in microseconds."""
    for action in actions.values():  # page faults of both processes, and the caches of the interpreter
        p50_us(action, 3)
    found: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            found[name].append(p50_us(action, times))
    return {name: Rounds(tuple(values)) for name, values in found.items()}


def measure_noop(rounds: int) -> dict[str, Rounds]:
    """Call the op that does nothing on a small and on a large block."""
    from benchmarks._peers import emulator

    control = emulator.control(NOOP_CMD)
    reply = emulator.allocate(SMALL_BYTES)
    small, large = emulator.allocate(SMALL_BYTES), emulator.allocate(LARGE_BYTES)
    actions: dict[str, Callable[[], object]] = {
        "no-op on 64 B": lambda: emulator.call(small, reply, control),
        "no-op on 64 MiB": lambda: emulator.call(large, large, control),
    }
    found = alternate(actions, rounds, NOOPS_A_ROUND)
    for block in (reply, small, large):
        emulator.free(block)
    return found


def measure_add(rounds: int) -> dict[str, Rounds]:
    """Add two arrays of 64 MiB here and on the board, and see that the sums are the same."""
    import numpy as np

    from arm_client import connect

    count = LARGE_BYTES // 4
    random = np.random.default_rng(1)
    with connect() as board:
        first, second, total = (board.empty((count,), np.float32) for _ in range(3))
        first[:], second[:] = random.random((2, count), dtype=np.float32)
        plain_first, plain_second = np.array(first), np.array(second)
        plain_total = np.empty(count, np.float32)
        request = board.empty((4,), np.uint64)
        request[:] = (first.phy_addr, second.phy_addr, total.phy_addr, LARGE_BYTES)
        actions: dict[str, Callable[[], object]] = {
            "np.add in this process": lambda: np.add(first, second, out=total),
            "np.add by an op": lambda: board.call(ADD_CMD, request, total),
            "np.add, ordinary arrays": lambda: np.add(plain_first, plain_second, out=plain_total),
        }
        found = alternate(actions, rounds, times=3)
        total[:] = 0
        board.call(ADD_CMD, request, total)
        if not np.array_equal(total, plain_total):
            raise ValueError("The sum that the op wrote differs from numpy's.")
    return found


def judge(times: dict[str, Rounds]) -> list[Goal]:
    """Compare, round by round."""
    noop = times["no-op on 64 MiB"].ratio_to(times["no-op on 64 B"]).median
    add = times["np.add by an op"].ratio_to(times["np.add in this process"]).median
    return [
        Goal(f"no-op on 64 MiB <= {NOOP_LIMIT:g}x no-op on 64 B", noop, NOOP_LIMIT, noop <= NOOP_LIMIT),
        Goal(f"np.add by an op <= {ADD_LIMIT:g}x np.add in this process", add, ADD_LIMIT, add <= ADD_LIMIT),
    ]


@click.command()
@click.option("--rounds", default=15, show_default=True, help="How often each takes its turn.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(*, rounds: int, markdown: bool, json_file: Path | None) -> None:
    """Measure whether the cost of a call depends on the size of its memory."""
    raise_on_sigterm()
    with private_directory() as directory:
        os.environ |= {"HBRT_HOME": str(directory), "HBRT_BOARD": "bench", "HBRT_AUTOSTART": "0"}
        with running_board("bench", cores=1):
            times = measure_noop(rounds) | measure_add(rounds)
    verdict = judge(times)
    rows = [[name, f"{found.median:,.1f}", f"{found.spread:.0%}"] for name, found in times.items()]
    print(table(["median time of a call", "µs", "spread"], rows, markdown=markdown), "", *verdict, sep="\n")
    if json_file:
        report = {
            "machine": machine(),
            "us": {name: found.values for name, found in times.items()},
            "goals": [asdict(goal) for goal in verdict],
        }
        json_file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
