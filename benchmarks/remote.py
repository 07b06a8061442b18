"""What a board on another machine costs, over loopback: a call, a flush, and bytes up and down.

    python -m benchmarks.remote [--mib N] [--keys]

Starts a board and its own relay. Each figure is the best of several, since what is measured shares the CPUs with
the relay, the core and whatever else runs; a network adds its own time for the same bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from arm_client import (
    HB_SYS_MEM_CACHE_INVALIDATE,
    hbSysFlushMem,
    hbSysMem,
    hbSysRegisterMem,
    hbSysUnregisterMem,
    last_error,
)
from arm_client.client import Board, connect, private_board
from arm_client.session import session as sessions
from hbrt.remote import keys as curve_keys

ROUNDS = 7
CALLS = 200


def best_of(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Least seconds that ``work`` took."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def measure(near: Board, board: Board, mib: int) -> None:
    """Print a table; ``near`` is the same board next to it."""
    calls = sorted(board.ping() for _ in range(CALLS))
    print(f"{'a call, no memory in use, p50':44} {calls[CALLS // 2] * 1e6:9.0f} µs")
    array = board.empty(mib << 20, np.uint8)
    values = np.random.default_rng(0).integers(0, 256, mib << 20, np.uint8)
    buffer = array.board_buffer
    if buffer is None:
        raise TypeError("an array of a board has a buffer")

    def push() -> None:
        np.add(values, 1, out=values)
        array[:] = values
        start = time.perf_counter()
        buffer.clean()
        pushes.append(time.perf_counter() - start)

    pushes: list[float] = []
    best_of(push)
    print(f"{f'{mib} MiB that this process wrote, up':44} {mib / min(pushes):9.0f} MiB/s")
    print(f"{f'a call with {mib} MiB in use, none changed':44} {best_of(board.ping) * 1e3 / mib:9.3f} ms/MiB")
    near_buffer = near.alloc(mib << 20)
    far_mem = hbSysMem(phyAddr=near_buffer.phy_addr, memSize=near_buffer.size_bytes)
    _good(hbSysRegisterMem(far_mem))
    pulls: list[float] = []

    def pull() -> None:
        np.add(values, 1, out=values)
        near_buffer.view()[:] = values.data
        start = time.perf_counter()
        _good(hbSysFlushMem(far_mem, HB_SYS_MEM_CACHE_INVALIDATE))
        pulls.append(time.perf_counter() - start)

    best_of(pull)
    print(f"{f'{mib} MiB that changed on the board, down':44} {mib / min(pulls):9.0f} MiB/s")
    _good(hbSysUnregisterMem(far_mem))


def _good(status: int) -> None:
    if status:
        raise RuntimeError(f"{status}: {last_error()}")


def main() -> None:
    """Start a board and its relay, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--keys", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, private_board() as near:
        command = [sys.executable, "-m", "dsp_server.relay", "--board", str(near.path), "--listen", "tcp://127.0.0.1:0"]
        if options.keys:
            keys = Path(directory) / "keys"
            curve_keys.make_server(keys)
            os.environ["HBRT_KEYS"] = str(curve_keys.add_client(keys, "bench"))
            command += ["--keys", str(keys)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as relay:
            address = (relay.stdout or sys.stdin).readline().partition("listens at ")[2].partition(";")[0]
            with connect(address) as board:
                before = sessions.set_default(board.session)
                measure(near, board, options.mib)
                sessions.set_default(before)
            relay.terminate()


if __name__ == "__main__":
    main()
