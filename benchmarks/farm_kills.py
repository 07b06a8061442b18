"""Kills a farm's boards, processes and driver at random, and looks at the results: each item there once.

``python -m benchmarks.farm_kills --seconds 300`` starts ``hbrt farm map`` again whenever its driver was killed, and
lets the last one come to its end.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq

IMAGE = """
import time
import numpy as np
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def square(input, output, tm):
    x, y = np.frombuffer(input, np.float32), np.frombuffer(output, np.float32)
    np.multiply(x, x, out=y)
    time.sleep(0.02)
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, square, 0)
    hb_dsp_start()
"""
TITLES = {"board": "hbrt daemon of board private-", "worker": "ray::Worker", "core": "hbrt core "}


def victims(title: str, home: str) -> list[psutil.Process]:
    """Processes of this farm by their title."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        told, environment = " ".join(process.info["cmdline"] or ()), process.info["environ"] or {}
        if told.startswith(title) and environment.get("HBRT_HOME") == home:
            found.append(process)
    return found


def kill(
    start: Callable[[], subprocess.Popen[bytes]], rng: random.Random, seconds: float, home: str
) -> tuple[dict[str, int], int]:
    """Kill for so long; returns how many of what, and the exit code of the last driver."""
    killed = dict.fromkeys([*TITLES, "driver"], 0)
    driver, until = start(), time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(rng.uniform(0.5, 4))
        if driver.poll() is not None:
            print(f"The verb ended by itself with {driver.returncode}, before its time.")
            break
        what = rng.choice([*TITLES, *TITLES, "driver"])
        if what == "driver":
            driver.kill()
            driver.wait()
            driver = start()
        elif found := victims(TITLES[what], home):
            rng.choice(found).kill()
        else:
            continue
        killed[what] += 1
    return killed, driver.wait()


def main() -> int:
    """Kill for so long, then look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hbrt-kills-", dir="/tmp") as folder:
        here = Path(folder)
        (here / "frames").mkdir()
        for index in range(given.items):
            np.save(here / f"frames/{index:06}.npy", np.full(16, index, np.float32))
        (here / "image.py").write_text(IMAGE)
        environment = {**os.environ, "HBRT_HOME": str(here / "home"), "HBRT_DDR": "64M"}
        arguments = ["-m", "hbrt", "farm", "map", "0x1000", "--image", "image.py", "--over", "frames", "--out", "out"]

        def start() -> subprocess.Popen[bytes]:
            with (here / "log").open("ab") as log:
                return subprocess.Popen([sys.executable, *arguments], cwd=here, env=environment, stdout=log, stderr=log)

        killed, code = kill(start, random.Random(given.seed), given.seconds, environment["HBRT_HOME"])
        table = pq.read_table(here / "out/results.parquet")
        statuses = collections.Counter(table["status"].to_pylist())
        is_right = table["index"].to_pylist() == list(range(given.items))
        tried = collections.Counter(table["attempts"].to_pylist())
        print(f"killed: {killed}; the last driver's exit code: {code}")
        print(f"{table.num_rows} of {given.items} items, {dict(statuses)}, attempts {dict(tried)}")
        print("each item is there once, in order" if is_right else "ITEMS ARE MISSING OR TWICE")
        for row in [one for one in table.to_pylist() if one["status"] != "good"][:3]:
            print(row["item"], row["status"], row["text"][:300])
        if code not in {0, 1}:
            print((here / "log").read_text()[-2000:])
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
