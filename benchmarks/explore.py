"""Races that ``hbrt explore`` finds: how many runs and seconds each of samples/races takes, on this machine.

``python -m benchmarks.explore`` prints a table. Exit code 1: one is not found within its runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from arm_client.commands.explore.command import runs_memory
from arm_client.commands.explore.search import Runner, runs_of
from hbrt.samples_dir import samples_dir

RUN_SECONDS = 60.0


def main() -> int:
    """Find each race."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="at most, for each race (default: 500)")
    runs = parser.parse_args().runs
    races = samples_dir() / "races"
    os.environ |= {"HBRT_IMAGE": str(races / "image.py"), "HBRT_CHECK": "fail"}
    missed = 0
    print(f"{'race':30} {'runs':>5} {'seconds':>8}  steps of the run")
    with runs_memory() as board:
        for file in sorted(races.glob("*.py")):
            if file.stem == "image":
                continue
            start = time.monotonic()
            with Runner(str(file), (), RUN_SECONDS, board) as runner:
                failed = next((run for _, run in runs_of(runner.run_all, 0, runs, {}) if run.code), None)
                took = time.monotonic() - start
                missed += failed is None
                steps = "not found" if failed is None else failed.step_count
                print(f"{file.stem:30} {runner.runs:5} {took:8.1f}  {steps}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
