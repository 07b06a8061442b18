"""A FastRPC call compared with hbDSPRpc: an op that does nothing, and a method that does nothing, take turns.

    python -m benchmarks.fastrpc [--rounds N] [--calls N] [--json FILE]

Rows are hbDSPRpc with its wait and release; an invocation with four registered buffers, and with a weight buffer of 16
MB among them; one whose buffers are copied; and a stub of Python. Ratios are to hbDSPRpc in the same round. The
image is in Python, in C, and the same in C as Hexagon code, which QEMU runs.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import arm_client as hb
import fastrpc
from arm_client.commands.run.pictures import missing_for
from benchmarks._images.calls import OP_CMD, PASS
from benchmarks._measure import Rounds, machine, p50_us, table
from fastrpc import Interface, remote_arg, remote_handle64
from fastrpc.wire.scalars import make

IMAGE = Path(__file__).parent / "_images" / "calls.py"  # next to this file, "fastrpc" would be this file
WORD = make(2, 3, 1)
OWN, SHARED = "hbDSPRpc, wait, release", "remote_handle64_invoke, 4 registered buffers of 1 KiB"
MAX_NATIVE, MAX_HEXAGON = 1.3, 3.0
KIB, WEIGHTS_BYTES = 1024, 16 << 20


class Bench(Interface):
    """The stub."""

    INTERFACE = "bench"


def checked(code: int) -> None:
    """Fail for a code other than 0."""
    if code:
        raise click.ClickException(f"{fastrpc.last_error() or hb.last_error()} [{code}]")


def own_call() -> Callable[[], None]:
    """The call of the op."""
    given, back = hb.hbSysMem(), hb.hbSysMem()
    checked(hb.hbSysAllocMem(given, KIB))
    checked(hb.hbSysAllocMem(back, KIB))
    ctrl, task = hb.hbDSPRpcCtrlParam(), hb.hbDSPTask_t()
    hb.HB_DSP_INITIALIZE_RPC_CTRL_PARAM(ctrl)
    ctrl.rpcCmd = OP_CMD

    def call() -> None:
        checked(hb.hbDSPRpc(task, given, back, ctrl))
        checked(hb.hbDSPWaitTaskDone(task, 0))
        checked(hb.hbDSPReleaseTask(task))

    return call


def invocation(handle: remote_handle64, places: list[tuple[int, int]]) -> Callable[[], None]:
    """An invocation with these buffers."""
    arguments = (remote_arg * len(places))()
    for one, (address, size) in zip(arguments, places, strict=True):
        one.buf.pv, one.buf.nLen = address, size
    return lambda: checked(fastrpc.remote_handle64_invoke(handle, WORD, arguments))


def actions() -> dict[str, Callable[[], object]]:
    """The rows, on the process's board."""
    handle = remote_handle64()
    checked(fastrpc.remote_handle64_open("file:///libraw_skel.so?raw_skel_handle_invoke&_dom=cdsp", handle))
    memory = fastrpc.rpcmem_alloc(fastrpc.RPCMEM_HEAP_ID_SYSTEM, fastrpc.RPCMEM_DEFAULT_FLAGS, 2 * WEIGHTS_BYTES)
    small = [(memory + at * KIB, KIB) for at in range(4)]
    outside = [ctypes.create_string_buffer(KIB) for _ in range(4)]
    x, w, y = (fastrpc.empty(KIB) for _ in range(3))
    plain = np.zeros(KIB, np.uint8)
    rows: dict[str, Callable[[], object]] = {
        OWN: own_call(),
        SHARED: invocation(handle, small),
        "the same with 16 MB of registered weights": invocation(
            handle, [*small[:2], (memory + WEIGHTS_BYTES, WEIGHTS_BYTES), small[3]]
        ),
        "the same, 4 buffers of 1 KiB copied": invocation(handle, [(ctypes.addressof(one), KIB) for one in outside]),
    }
    if os.environ["HBRT_IMAGE"] == str(IMAGE):
        bench = Bench()
        rows |= {
            "a stub of Python, 3 registered sequences": lambda: bench.call(PASS, x, w, y),
            "a stub of Python, 3 copied sequences": lambda: bench.call(PASS, plain, plain, np.zeros(KIB, np.uint8)),
        }
    return rows


def measured(rounds: int, calls: int) -> dict[str, list[float]]:
    """Microseconds of each row in each round, on the board of HBRT_IMAGE."""
    rows = actions()
    taken: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(rounds + 1):
        for name, action in rows.items():
            value = p50_us(action, calls)
            if number:  # the first round warms up
                taken[name].append(value)
    print(fastrpc.statistics(), file=sys.stderr)
    return taken


def images(folder: str) -> dict[str, Path]:
    """The images by their names: in Python, and in C as code of this machine and, where it can be had, of a Hexagon."""
    found = {"Python": IMAGE}
    for target in ("native",) if missing_for("hexagon") else ("native", "hexagon"):
        found[target] = Path(folder, f"{target}.so")
        line = ["cc", "--dsp", "--target", target, str(IMAGE.with_suffix(".c")), "-o", str(found[target])]
        subprocess.run([sys.executable, "-m", "hbrt", *line], check=True)
    return found


@click.command()
@click.option("--rounds", default=9, show_default=True)
@click.option("--calls", default=1000, show_default=True, help="Calls of a row in a round.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--one", is_flag=True, hidden=True, help="Measure on HBRT_IMAGE alone, and print JSON.")
def main(rounds: int, calls: int, file: Path | None, *, one: bool) -> None:
    """Measure with each image, and print; exit code 1 when a call with four registered buffers takes too long.

    That is 1.3 times hbDSPRpc with the native image in C, and 3 times that with the same as Hexagon code.
    """
    if one:
        print(json.dumps(measured(rounds, calls)))
        return
    ratios: dict[str, dict[str, float]] = {}
    taken: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in images(folder).items():
            environment = {**os.environ, "HBRT_IMAGE": str(path), "HBRT_CORES": "1"}
            line = [sys.executable, "-m", "benchmarks.fastrpc", "--one", "--rounds", str(rounds), "--calls", str(calls)]
            done = subprocess.run(line, check=True, stdout=subprocess.PIPE, env=environment)
            taken[name] = json.loads(done.stdout)
            found = {row: Rounds(tuple(values)) for row, values in taken[name].items()}
            ratios[name] = {row: value.ratio_to(found[OWN]).median for row, value in found.items()}
            cells = [[row, f"{value.median:.1f} µs", f"{ratios[name][row]:.2f}"] for row, value in found.items()]
            print(table([f"call, image: {name}", "p50", "of hbDSPRpc"], cells))
    is_slow = ratios["native"][SHARED] > MAX_NATIVE
    if "hexagon" in taken:
        by_qemu = min(taken["hexagon"][SHARED]) / min(taken["native"][SHARED])
        print(f"{SHARED}: Hexagon code takes {by_qemu:.2f} times native code.")
        is_slow |= by_qemu > MAX_HEXAGON
    if file is not None:
        file.write_text(json.dumps({"machine": machine(), "us": taken, "ratios": ratios}, indent=1))
    raise SystemExit(int(is_slow))


if __name__ == "__main__":
    main()
