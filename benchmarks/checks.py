"""What a check costs an op: boards with one check each, and one without, take turns in every round.

    python -m benchmarks.checks [--rounds N] [--calls N] [--json FILE]
    python -m benchmarks.checks --clean 1000000

Rows are the packaged NN ops, whose frames move the tiles; one on cached memory, of which the CPU writes and reads every
byte and which it flushes; and an op that starts and waits for each copy itself.

With ``--clean`` nothing is measured: the same ops are called that many times under all checks, and each finding is one
too many.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from arm_client.client import Board
from arm_client.session.session import Session
from benchmarks._checks_image import DOUBLE_CMD
from benchmarks._measure import Rounds, machine, p50_us, private_directory, raise_on_sigterm, table
from benchmarks._report import Goal
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import BoardPaths
from hbrt.findings.record import finding_of
from hbrt.findings.text import counted, line_of
from hbrt.nn_types import hbDSPDequantizeParam, hbDSPQuantizeParam, hbDSPSoftmaxParam

IMAGE = Path(__file__).with_name("_checks_image.py")
OFF = "off"
ALL_CHECKS = "all"
CHECKS = (OFF, "dma", "memory", "coherence")
LIMITS = {"dma": 3.0, "memory": 3.0, "coherence": 10.0}
"""Of the packaged ops, in times without a check."""
BY_HAND = "copies by hand"
SOFTMAX_CMD, QUANTIZE_CMD, DEQUANTIZE_CMD = 0x400, 0x401, 0x402
COUNTS = (1_000, 1_000_000)


def start(check: str, directory: Path, stack: ExitStack) -> Board:
    """A board under a check, and a client of it."""
    os.environ["HBRT_CHECK"] = "tell" if check == OFF else check
    launched = launch(DaemonConfig(str(directory / check), str(IMAGE), 1, 256 << 20, is_private=True))
    del os.environ["HBRT_CHECK"]
    session = Session(BoardPaths(directory / check))
    session.users = 1

    def end() -> None:
        board.close()
        os.close(launched.lifeline)
        os.waitpid(launched.pid, 0)

    board = Board(session)
    stack.callback(end)
    return board


def calls(board: Board, count: int) -> dict[str, Callable[[], object]]:
    """Return calls of the ops on ``count`` elements, by name."""
    real = board.alloc(4 * count)
    real.view()[:] = np.random.default_rng(1).standard_normal(count).astype(np.float32).tobytes()
    whole, out = board.alloc(count), board.alloc(4 * count)
    whole.view()[:] = bytes(count)
    common: dict[str, Any] = {"axis": -1, "quanti_type": 2, "scale": 0.05, "tensor_type": 8}
    quantize = hbDSPQuantizeParam(**common, input=real.phy_addr)
    dequantize = hbDSPDequantizeParam(**common, input=whole.phy_addr)
    for param in (quantize, dequantize):
        param.set_shape((count,))
    softmax = hbDSPSoftmaxParam(data_size=4 * count, input=real.phy_addr)
    values = np.random.default_rng(2).standard_normal(count).astype(np.float32)
    cached = [board.alloc(4 * count, cached=True) for _ in range(2)]
    x, y = (buffer.array(np.float32, count) for buffer in cached)
    on_cached = hbDSPSoftmaxParam(data_size=x.nbytes, input=x.phy_addr)

    def flushed() -> float:
        x[:] = values
        cached[0].clean()
        board.call(SOFTMAX_CMD, on_cached, y)
        cached[1].invalidate()
        return float(y.sum())

    return {
        f"softmax of {count:,}": lambda: board.call(SOFTMAX_CMD, softmax, out),
        f"softmax of {count:,}, cached": flushed,
        f"quantize of {count:,}": lambda: board.call(QUANTIZE_CMD, quantize, whole),
        f"dequantize of {count:,}": lambda: board.call(DEQUANTIZE_CMD, dequantize, out),
        f"{BY_HAND} of {count:,}": lambda: board.call(DOUBLE_CMD, real, out),
    }


def measure(rounds: int, times: int) -> dict[str, dict[str, Rounds]]:
    """Median time of each op under each check in each round, in microseconds."""
    with private_directory() as directory, ExitStack() as stack:
        boards = {check: start(check, directory, stack) for check in CHECKS}
        actions = {
            check: {name: call for count in COUNTS for name, call in calls(board, count).items()}
            for check, board in boards.items()
        }
        found: dict[str, dict[str, list[float]]] = {op: {check: [] for check in CHECKS} for op in actions[OFF]}
        for number in range(rounds + 1):
            for op, by_check in found.items():
                for check, values in by_check.items():
                    taken = p50_us(actions[check][op], times)
                    if number:  # the first round warms up
                        values.append(taken)
    return {op: {check: Rounds(tuple(one)) for check, one in by_check.items()} for op, by_check in found.items()}


def clean(count: int, actions: Callable[[Board, int], dict[str, Callable[[], object]]] = calls) -> list[str]:
    """Call ops in turns under all checks; return the findings, which correct ops do not have.

    Args:
        count: Calls in all.
        actions: Makes the calls, by name, from a board and a number of elements.
    """
    with private_directory() as directory, ExitStack() as stack:
        board = start(ALL_CHECKS, directory, stack)
        ops = list(actions(board, COUNTS[0]).values())
        for number in range(count):
            ops[number % len(ops)]()
        return [line_of(finding_of(one)) for one in board.status()["findings"]]


def judge(found: dict[str, dict[str, Rounds]]) -> list[Goal]:
    """Compare, round by round."""
    verdict = []
    for op, by_check in found.items():
        for check, times in by_check.items():
            if check != OFF and not op.startswith(BY_HAND):
                ratio = times.ratio_to(by_check[OFF]).median
                most = LIMITS[check]
                verdict.append(Goal(f"{op} under {check} <= {most:g}x without", ratio, most, ratio <= most))
    return verdict


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option(
    "--calls", "times", type=click.IntRange(min=1), default=20, show_default=True, help="Of an op in a round."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write all values into this file.")
@click.option(
    "--clean", "clean_calls", type=click.IntRange(min=1), help="Calls under all checks, without a measurement."
)
def main(rounds: int, times: int, json_file: Path | None, clean_calls: int | None) -> None:
    """Measure what the checks cost, or see that they find nothing in correct calls."""
    raise_on_sigterm()
    if clean_calls is not None:
        begin = time.monotonic()
        told = clean(clean_calls)
        took = f"{time.monotonic() - begin:.0f} s"
        click.echo(
            "\n".join(
                [*told, f"{clean_calls:,} correct calls under all checks: {counted(len(told), 'finding')}, in {took}."]
            )
        )
        raise SystemExit(bool(told))
    found = measure(rounds, times)
    rows = []
    for op, by_check in found.items():
        ratios = (f"{by_check[check].ratio_to(by_check[OFF]).median:.2f}" for check in CHECKS[1:])
        rows.append((op, f"{by_check[OFF].median:,.0f}", *ratios))
    click.echo(table(("one call", "off, µs", *(f"{check} / off" for check in CHECKS[1:])), rows))
    verdict = judge(found)
    for goal in verdict:
        if not goal.is_met:
            click.echo(f"goal: {goal.text}: {goal.value:.2f} ... missed")
    if json_file is not None:
        values = {op: {check: one.values for check, one in by_check.items()} for op, by_check in found.items()}
        json_file.write_text(json.dumps({"machine": machine(), "us": values}, indent=2), encoding="utf-8")
    raise SystemExit(any(not goal.is_met for goal in verdict))


if __name__ == "__main__":
    main()
