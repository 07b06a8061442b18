"""What a FastRPC call costs beside hbDSPRpc: an op that does nothing, and a method that does nothing, take turns.

    python -m benchmarks.fastrpc [--rounds N] [--calls N] [--json FILE]

Rows are hbDSPRpc with its wait and release; an invocation with four registered buffers, and with a weight buffer of 16
MB among them; one whose buffers are copied; and a stub of Python. Ratios are to hbDSPRpc in the same round.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import arm_client as hb
import fastrpc
from benchmarks._fastrpc_image import OP_CMD, PASS
from benchmarks._measure import Rounds, machine, p50_us, table
from fastrpc import Interface, remote_arg, remote_handle64
from fastrpc.wire.scalars import make

IMAGE = Path(__file__).with_name("_fastrpc_image.py")
WORD = make(2, 3, 1)
OWN, SHARED = "hbDSPRpc, wait, release", "remote_handle64_invoke, 4 registered buffers of 1 KiB"
MOST = 1.5
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
    bench = Bench()
    plain = np.zeros(KIB, np.uint8)
    return {
        OWN: own_call(),
        SHARED: invocation(handle, small),
        "the same with 16 MB of registered weights": invocation(
            handle, [*small[:2], (memory + WEIGHTS_BYTES, WEIGHTS_BYTES), small[3]]
        ),
        "the same, 4 buffers of 1 KiB copied": invocation(handle, [(ctypes.addressof(one), KIB) for one in outside]),
        "a stub of Python, 3 registered sequences": lambda: bench.call(PASS, x, w, y),
        "a stub of Python, 3 copied sequences": lambda: bench.call(PASS, plain, plain, np.zeros(KIB, np.uint8)),
    }


@click.command()
@click.option("--rounds", default=9, show_default=True)
@click.option("--calls", default=1000, show_default=True, help="Calls of a row in a round.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path))
def main(rounds: int, calls: int, file: Path | None) -> None:
    """Measure, and print; exit code 1 when a call with four registered buffers takes more than 1.5 times hbDSPRpc."""
    os.environ["HBRT_IMAGE"], os.environ["HBRT_CORES"] = str(IMAGE), "1"
    rows = actions()
    taken: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(rounds + 1):
        for name, action in rows.items():
            value = p50_us(action, calls)
            if number:  # the first round warms up
                taken[name].append(value)
    found = {name: Rounds(tuple(values)) for name, values in taken.items()}
    ratios = {name: one.ratio_to(found[OWN]).median for name, one in found.items()}
    cells = [[name, f"{one.median:.1f} us", f"{ratios[name]:.2f}"] for name, one in found.items()]
    print(table(["call", "p50", "of hbDSPRpc"], cells))
    print(fastrpc.statistics())
    if file is not None:
        file.write_text(json.dumps({"machine": machine(), "us": taken, "ratios": ratios}, indent=1))
    raise SystemExit(int(ratios[SHARED] > MOST))


if __name__ == "__main__":
    main()
