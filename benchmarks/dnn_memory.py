"""Whether inferences leave memory flat: a tiny model, a million times, on a private board.

    python -m benchmarks.dnn_memory [--count 1000000]

Every kind of task takes part: plain ones, chains, callbacks, releases of what still waits, a model that is loaded and
released again. The memory that is this process's alone is checked twenty times; the last line says by how many bytes
an inference it grew from the first quarter to the end.
"""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

import click
import numpy as np

import arm_client as hb
from benchmarks._board_model import BoardModel, check
from benchmarks._models import tiny

LOOKS = 20
MAX_BYTES = 1.0  # an inference; what leaks leaks more
ODD = 100  # one round in this many is of the other kinds
RELOAD = 5000


def private_bytes() -> int:
    """Memory of this process alone: not the board's, nor what is mapped from files, which others may map as well."""
    fields = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in fields if line.startswith(("Anonymous:", "Swap:")))


def odd_round(model: BoardModel) -> int:
    """A chain with a callback, and a task that is released at once; how many inferences that was."""
    called = threading.Event()
    ctrl, task = hb.hbDNNInferCtrlParam.from_buffer_copy(model.ctrl), hb.hbDNNTaskHandle_t()
    ctrl.more = 1
    check(hb.hbDNNInfer(task, model.outputs, model.inputs, model.handle, ctrl))
    check(hb.hbDNNInfer(task, model.outputs, model.inputs, model.handle, model.ctrl))
    check(hb.hbDNNSetTaskDoneCb(task, lambda *_: called.set(), None))
    check(hb.hbDNNWaitTaskDone(task, 0))
    called.wait()
    check(hb.hbDNNReleaseTask(task))
    task = hb.hbDNNTaskHandle_t()
    check(hb.hbDNNInfer(task, model.outputs, model.inputs, model.handle, model.ctrl))
    check(hb.hbDNNReleaseTask(task))
    return 3


def infer(model: BoardModel, count: int) -> None:
    """So many inferences, of every kind."""
    done = 0
    while done < count:
        if done % ODD == 0:
            done += odd_round(model)
        else:
            check(model.run())
            done += 1
        if done % RELOAD == 0:
            with BoardModel(tiny()) as other:
                other([np.ones((1, 4), np.float32)])


def growth(count: int, *, show: bool) -> float:
    """Bytes an inference that this process grew by, from the first quarter to the end."""
    looks = []
    with BoardModel(tiny()) as model:
        model([np.ones((1, 4), np.float32)])
        for look in range(LOOKS):
            infer(model, count // LOOKS)
            gc.collect()
            looks.append(private_bytes())
            if show:
                print(f"{(look + 1) * (count // LOOKS):>10} inferences: {looks[-1] / 2**20:.2f} MiB", flush=True)
    first = LOOKS // 4
    return (looks[-1] - looks[first - 1]) / (count / LOOKS * (LOOKS - first))


@click.command()
@click.option("--count", default=1_000_000, show_default=True, help="Inferences.")
def main(*, count: int) -> None:
    """Infer with a tiny model again and again, and look at the memory."""
    grown = growth(count, show=True)
    is_flat = grown <= MAX_BYTES
    print(f"{grown:.3f} bytes an inference from the first quarter on: {'flat' if is_flat else 'it grows'}")
    sys.exit(not is_flat)


if __name__ == "__main__":
    main()
