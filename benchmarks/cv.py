"""What a CV op costs on the board, over calling OpenCV directly on the same arrays.

    python -m benchmarks.cv [--boards N] [--rounds N] [--size WxH ...] [--op NAME ...] [--regime one|two|both]
        [--json FILE]

Both read and write the same arrays in device memory, on one thread, and keep what OpenCV frees (see
dsp_server/ops/cv/opencv.py): OpenCV in a process, and the op through a remote call of the same process whose parameters
are filled already. They take turns block by block, each block about 30 ms of the same call over and over, as a program
would make it; which comes first changes from round to round. Of a block counts the median call.

How fast OpenCV is in a process also depends on where the kernel has put the memory that it works in, for as long as
the process lives: of six processes that call cv2.cornerHarris on the same arrays, with no board at all, one is 5%
faster and another 3% slower than the others. So all is measured on several boards, each with a new caller and a new
core, and the CPUs change places from board to board. A ratio is the median over the rounds of all boards.

All is measured twice: with caller and core on one CPU, where a ratio is what the remote call costs; and with a CPU for
each, as the scheduler places them on an idle machine, where one that sleeps must be woken from the other. OpenCV here
runs on the core's CPU, so that both ways compute on the same one: of two virtual CPUs, one is often a third slower for
a while, because of what else the machine does.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import click

from arm_client.client import private_board
from benchmarks._cv_cases import Arrays, Case, case_of, cases
from benchmarks._measure import (
    Rounds,
    end_with_parent,
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
MIN_CALLS, MAX_CALLS = 7, 200
REGIMES = {"one": "Caller and core on one CPU", "two": "Caller and core on a CPU each"}


def block_us(action: Callable[[], object], times: int) -> float:
    """Return the median time of ``times`` calls in a row, in microseconds; a first call warms up."""
    action()
    took = []
    for _ in range(times):
        before_ns = time.perf_counter_ns()
        action()
        took.append(time.perf_counter_ns() - before_ns)
    return statistics.median(took) / 1e3


@dataclass
class Measured:
    """What one op took at one size in one regime; one value a round of each board."""

    op: str
    size: tuple[int, int]
    regime: str
    on_board: list[float] = field(default_factory=list)
    direct: list[float] = field(default_factory=list)

    @property
    def board_us(self) -> Rounds:
        """Through a remote call."""
        return Rounds(tuple(self.on_board))

    @property
    def direct_us(self) -> Rounds:
        """OpenCV in the caller."""
        return Rounds(tuple(self.direct))

    @property
    def ratio(self) -> float:
        """Board over direct, round by round."""
        return self.board_us.ratio_to(self.direct_us).median

    def add(self, case: Case, rounds: int, caller_cpu: int, core_cpu: int) -> None:
        """Take turns block by block."""
        once_us = block_us(case.directly, 3)
        times = max(MIN_CALLS, min(MAX_CALLS, int(ROUND_S * 1e6 / once_us)))
        for index in range(rounds):
            turns = [(case.directly, self.direct, core_cpu), (case.on_board, self.on_board, caller_cpu)]
            for action, into, cpu in turns if index % 2 else reversed(turns):
                os.sched_setaffinity(0, {cpu})
                into.append(block_us(action, times))


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
    head = ["median call, µs"]
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
@click.option("--boards", default=12, show_default=True, help="How many boards, each with its own caller.")
@click.option("--rounds", default=4, show_default=True, help="How often each takes its turn on a board.")
@click.option("--size", "sizes", multiple=True, callback=to_size, help="Only these sizes, such as 640x480.")
@click.option("--op", "ops", multiple=True, type=click.Choice(sorted(cases())), help="Only these ops.")
@click.option("--regime", type=click.Choice([*REGIMES, "both"]), default="both", show_default=True)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(
    *,
    boards: int,
    rounds: int,
    sizes: list[tuple[int, int]],
    ops: tuple[str, ...],
    regime: str,
    markdown: bool,
    json_file: Path | None,
) -> None:
    """Measure what the CV ops cost over calling OpenCV directly."""
    raise_on_sigterm()
    found: list[Measured] = []
    with private_directory() as directory:
        os.environ["HBRT_HOME"] = str(directory)
        for name in REGIMES if regime == "both" else (regime,):
            if name == "two" and len(usable_cpus()) == 1:
                print(f"{REGIMES[name]}: not measured, this process may use one CPU.")
                continue
            found += measure_all(ops or tuple(cases()), sizes, name, boards, rounds)
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


def measure_all(
    ops: tuple[str, ...], sizes: list[tuple[int, int]], regime: str, boards: int, rounds: int
) -> list[Measured]:
    """Measure every op at every size, on ``boards`` boards."""
    found = [Measured(op, size, regime) for size in sizes for op in ops]
    cpus = sorted(usable_cpus())
    for index in range(boards):
        caller_cpu = cpus[index % len(cpus)]
        core_cpu = caller_cpu if regime == "one" else cpus[(index + 1) % len(cpus)]
        with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as caller:
            found = caller.submit(measure_on_one_board, found, rounds, caller_cpu, core_cpu).result()
    return found


def measure_on_one_board(found: list[Measured], rounds: int, caller_cpu: int, core_cpu: int) -> list[Measured]:
    """Add ``rounds`` rounds of each, on its own board."""
    raise_on_sigterm()
    makers = cases()
    with pinned({caller_cpu, core_cpu}), private_board(cores=1) as board:
        os.sched_setaffinity(board.status()["cores"][0]["pid"], {core_cpu})
        for size in dict.fromkeys(one.size for one in found):
            arrays = Arrays(board, *size)
            for one in found:
                if one.size == size:
                    one.add(case_of(makers[one.op], arrays), rounds, caller_cpu, core_cpu)
            del arrays
    return found


if __name__ == "__main__":
    sys.exit(main())
