"""What a CV op costs on the board, over calling OpenCV directly on the same arrays.

    python -m benchmarks.cv [--rounds N] [--size WxH ...] [--op NAME ...] [--regime one|free|both] [--json FILE]

Both read and write the same arrays in device memory, on one thread, and keep what OpenCV frees (see
dsp_server/ops/cv/opencv.py): OpenCV in this process, and the op through a remote call whose parameters are filled
already. They take turns block by block, each block some 30 ms of the same call over and over, as a program would make
it; which comes first changes from round to round. Of a block counts the median call, and a ratio is the median of the
ratios within a round.

All is measured twice: with every process on one CPU, where a ratio is what the remote call costs; and free to run on
every CPU, where a caller or a core that sleeps must be woken on another one.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from arm_client.client import private_board
from benchmarks._cv_cases import Arrays, Case, Maker, case_of, cases
from benchmarks._measure import (
    Rounds,
    machine,
    pinned,
    private_directory,
    raise_on_sigterm,
    table,
    usable_cpus,
)
from benchmarks._report import Goal
from dsp_server.ops.cv.opencv import cv2  # with the core's settings: threads, and memory that is kept

SIZES = ((64, 64), (640, 480), (1920, 1080))
JUDGED = (1920, 1080)
LIMIT, LONG_US = 1.05, 1000.0
ROUND_S = 0.03
LEAST_CALLS, MOST_CALLS = 7, 200
REGIMES = {"one": "All processes on one CPU", "free": "Free to run on every CPU"}


def block_us(action: Callable[[], object], times: int) -> float:
    """Return the median of so many calls in a row, in microseconds; the first one, which warms up, does not count."""
    action()
    took = []
    for _ in range(times):
        before_ns = time.perf_counter_ns()
        action()
        took.append(time.perf_counter_ns() - before_ns)
    return statistics.median(took) / 1e3


@dataclass(frozen=True)
class Measured:
    """What one op took at one size."""

    op: str
    size: tuple[int, int]
    regime: str
    board_us: Rounds
    direct_us: Rounds

    @property
    def ratio(self) -> float:
        """Board over direct, round by round."""
        return self.board_us.ratio_to(self.direct_us).median


def measure(op: str, case: Case, size: tuple[int, int], regime: str, rounds: int) -> Measured:
    """Take turns block by block."""
    once_us = block_us(case.directly, 3)
    times = max(LEAST_CALLS, min(MOST_CALLS, int(ROUND_S * 1e6 / once_us)))
    board_us: list[float] = []
    direct_us: list[float] = []
    for index in range(rounds):
        turns = [(case.directly, direct_us), (case.on_board, board_us)]
        for action, into in turns if index % 2 else reversed(turns):
            into.append(block_us(action, times))
    return Measured(op, size, regime, Rounds(tuple(board_us)), Rounds(tuple(direct_us)))


def judge(found: Sequence[Measured]) -> list[Goal]:
    """The goal is for ops that take a millisecond or more at 1920 x 1080."""
    return [
        Goal(
            f"{one.op} at 1920x1080 <= {LIMIT:g}x OpenCV directly [{REGIMES[one.regime]}]",
            one.ratio,
            LIMIT,
            one.ratio <= LIMIT,
        )
        for one in found
        if one.size == JUDGED and one.direct_us.median > LONG_US
    ]


def as_table(found: Sequence[Measured], *, markdown: bool) -> str:
    """One row an op; for each size OpenCV's own time, the board's, and their ratio."""
    sizes = list(dict.fromkeys(one.size for one in found))
    by_key = {(one.op, one.size): one for one in found}
    head = ["median call, us"]
    for width, height in sizes:
        head += [f"OpenCV {width}x{height}", "board", "ratio"]
    rows = []
    for op in dict.fromkeys(one.op for one in found):
        cells = [op]
        for size in sizes:
            one = by_key[op, size]
            cells += [f"{one.direct_us.median:,.0f}", f"{one.board_us.median:,.0f}", f"{one.ratio:.2f}"]
        rows.append(cells)
    return table(head, rows, markdown=markdown)


def to_size(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> list[tuple[int, int]]:
    """Callback of --size."""
    try:
        return [(int(width), int(height)) for width, height in (value.split("x") for value in values)] or list(SIZES)
    except ValueError:
        raise click.BadParameter("a size is written as 640x480.") from None


@click.command()
@click.option("--rounds", default=25, show_default=True, help="How often each takes its turn.")
@click.option("--size", "sizes", multiple=True, callback=to_size, help="Only these sizes, such as 640x480.")
@click.option("--op", "ops", multiple=True, type=click.Choice(sorted(cases())), help="Only these ops.")
@click.option("--regime", type=click.Choice([*REGIMES, "both"]), default="both", show_default=True)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(
    *,
    rounds: int,
    sizes: list[tuple[int, int]],
    ops: tuple[str, ...],
    regime: str,
    markdown: bool,
    json_file: Path | None,
) -> None:
    """Measure what the CV ops cost over calling OpenCV directly."""
    raise_on_sigterm()
    makers = {op: make for op, make in cases().items() if not ops or op in ops}
    found: list[Measured] = []
    with private_directory() as directory:
        os.environ["HBRT_HOME"] = str(directory)
        for name in REGIMES if regime == "both" else (regime,):
            with pinned({min(usable_cpus())} if name == "one" else usable_cpus()):
                found += measure_all(makers, sizes, name, rounds)
            print(f"{REGIMES[name]}:", "", sep="\n")
            print(as_table([one for one in found if one.regime == name], markdown=markdown), "", sep="\n")
    verdict = judge(found)
    print(*verdict, sep="\n")
    if verdict:
        print(f"goals met: {sum(goal.is_met for goal in verdict)} of {len(verdict)}")
    if json_file:
        report = {
            "machine": machine(),
            "opencv": cv2.__version__,
            "us": [
                {
                    "op": one.op,
                    "size": one.size,
                    "regime": one.regime,
                    "board": one.board_us.values,
                    "direct": one.direct_us.values,
                }
                for one in found
            ],
            "goals": [asdict(goal) for goal in verdict],
        }
        json_file.write_text(json.dumps(report, indent=1) + "\n")


def measure_all(makers: dict[str, Maker], sizes: list[tuple[int, int]], regime: str, rounds: int) -> list[Measured]:
    """Every op at every size, on a board of its own, whose processes run where this one may."""
    found = []
    with private_board(cores=1) as board:
        for width, height in sizes:
            arrays = Arrays(board, width, height)
            for op, make in makers.items():
                found.append(measure(op, case_of(make, arrays), (width, height), regime, rounds))
            del arrays
    return found


if __name__ == "__main__":
    sys.exit(main())
