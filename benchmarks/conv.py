"""What iDMA by tiles costs an op in C: a 3x3 convolution over int8 at 1080p, as an op and as a plain call.

    python -m benchmarks.conv [--rounds N] [--calls N] [--markdown] [--json FILE]

Both run one loop, ``conv_rows`` of conv.h, built with the same flags, on the same memory: the op brings rows into TCM
by iDMA, ping and pong, and takes results out; the plain call computes the picture in place, in this process. The time
of the op is that of the whole remote call.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from arm_client.client import private_board
from benchmarks._measure import Rounds, machine, p50_us, pinned, private_directory, raise_on_sigterm, table, usable_cpus
from benchmarks._report import Goal

WIDTH, ROWS = 1920, 1080
CMD, SHIFT = 0x1000, 4
LIMIT = 1.1
FLAGS = ["-O3", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
FOLDER = Path(__file__).parent
PLAIN = """#include "conv.h"
void conv(const int8_t *source, int8_t *out, uint32_t width, uint32_t rows, const int8_t *weights) {
  conv_rows(source, width + 2, out, width, width, rows, weights);
}
"""


class Param(ctypes.Structure):
    """``conv_param`` of conv.h."""

    _fields_ = (
        ("source", ctypes.c_uint64),
        ("width", ctypes.c_uint32),
        ("rows", ctypes.c_uint32),
        ("weights", ctypes.c_int8 * 16),
    )


def build(directory: Path) -> tuple[Path, ctypes.CDLL]:
    """The image, and the plain function."""
    image, plain = directory / "conv_image.so", directory / "plain.so"
    source = directory / "plain.c"
    source.write_text(PLAIN)
    for given, made in ((FOLDER / "conv_image.c", image), (source, plain)):
        command = [sys.executable, "-m", "hbrt", "cc", "--dsp", *FLAGS, f"-I{FOLDER}", str(given), "-o", str(made)]
        subprocess.run(command, check=True)
    library = ctypes.CDLL(str(plain))
    library.conv.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]
    library.conv.restype = None
    return image, library


def measure(rounds: int, times: int) -> dict[str, Rounds]:
    """Take turns in every round, and see that both results are the same and right."""
    random = np.random.default_rng(1)
    with private_directory() as directory:
        image, library = build(directory)
        with private_board(image, cores=1) as board:
            source = board.empty((ROWS + 2, WIDTH + 2), np.int8)
            by_op, by_call = (board.empty((ROWS, WIDTH), np.int8) for _ in range(2))
            source[:] = random.integers(-128, 128, source.shape, np.int8)
            weights = random.integers(-8, 8, 16, np.int8)
            param = Param(source.phy_addr, WIDTH, ROWS, (ctypes.c_int8 * 16)(*weights.tolist()))
            block = board.empty(ctypes.sizeof(param), np.uint8)
            block[:] = np.frombuffer(bytes(param), np.uint8)
            arguments = (source.ctypes.data, by_call.ctypes.data, WIDTH, ROWS, weights.ctypes.data)
            actions = {
                "an op, by tiles": lambda: board.call(CMD, block, by_op),
                "in process": lambda: library.conv(*arguments),
            }
            found: dict[str, list[float]] = {name: [] for name in actions}
            for _ in range(rounds):
                for name, action in actions.items():
                    found[name].append(p50_us(action, times))
            check(source, weights, by_op)
            check(source, weights, by_call)
    return {name: Rounds(tuple(values)) for name, values in found.items()}


def check(source: np.ndarray, weights: np.ndarray, found: np.ndarray) -> None:
    """Compare with numpy."""
    wide = source.astype(np.int32)
    total = sum(
        int(weights[3 * row + column]) * wide[row : row + ROWS, column : column + WIDTH]
        for row in range(3)
        for column in range(3)
    )
    if not np.array_equal(np.clip(total >> SHIFT, -128, 127), found):
        raise ValueError("A convolution differs from numpy's.")


@click.command()
@click.option("--rounds", default=9, show_default=True, help="How often each takes its turn.")
@click.option("--calls", default=20, show_default=True, help="Calls of one turn.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every round here.")
def main(*, rounds: int, calls: int, markdown: bool, json_file: Path | None) -> None:
    """Measure a 3x3 convolution over int8 at 1080p, as an op in C and as a plain call."""
    raise_on_sigterm()
    regimes = {"one CPU": {min(usable_cpus())}, "free": usable_cpus()}
    rows, goals, report = [], [], {}
    os.environ |= {"HBRT_BOARD": "conv"}
    for regime, cpus in regimes.items():
        with pinned(cpus):
            found = measure(rounds, calls)
        ratio = found["an op, by tiles"].ratio_to(found["in process"])
        limit = f"{regime}: the op <= {LIMIT:g}x the same loop in process"
        goals.append(Goal(limit, ratio.median, LIMIT, ratio.median <= LIMIT))
        for name, one in found.items():
            factor = one.ratio_to(found["in process"]).median
            rows.append([regime, name, f"{one.median:,.0f}", f"{factor:.2f}x", f"{one.spread:.0%}"])
        report[regime] = {name: one.values for name, one in found.items()}
    head = ["processes", "3x3, int8, 1920 x 1080", "µs", "ratio", "spread"]
    print(table(head, rows, markdown=markdown), "", *goals, sep="\n")
    if json_file:
        document = {"machine": machine(), "us": report, "goals": [asdict(goal) for goal in goals]}
        json_file.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
