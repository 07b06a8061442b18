"""What RKNN's runtime costs over bare onnxruntime, and what three NPU cores give.

    python -m benchmarks.rknn [--quick] [--markdown] [--json FILE]

Both sides take turns within each round. RKNN is RKNNLite.inference; bare is ``session.run`` in the program's threads.
The images of a batch end together, so a batch gains less than contexts that continue; two bare processes that take half
of a batch each show how much less. The board is private to this program.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import Rounds, p50_us, p50s_us
from benchmarks._models import Bare, Line, command, throughput, tiny
from samples.dnn.build_mobilenet import build

BATCH = 6
TARGET = "rk3588"
_bare: list[Bare] = []  # of a process of the pool


@contextmanager
def loaded(model: Path, cores: int, batch: int = 1) -> Iterator[Callable[[Sequence[NDArray[Any]]], NDArray[Any]]]:
    """A model of onnx, built for the chip and loaded; what runs it once and returns its first output.

    Args:
        model: The file.
        cores: Mask of the NPU cores.
        batch: Images of a run.
    """
    from rknn.api import RKNN
    from rknnlite.api import RKNNLite

    toolkit, lite = RKNN(verbose=False), RKNNLite()
    path = model.with_suffix(f".{batch}.rknn")
    toolkit.config(target_platform=TARGET)
    steps: tuple[Callable[[], int], ...] = (
        lambda: toolkit.load_onnx(str(model)),
        lambda: toolkit.build(do_quantization=False, rknn_batch_size=batch),
        lambda: toolkit.export_rknn(str(path)),
        lambda: lite.load_rknn(str(path)),
        lambda: lite.init_runtime(core_mask=cores),
    )
    for step in steps:
        if step():
            sys.exit(f"A step failed: {toolkit.last_error or lite.last_error}")
    toolkit.release()

    def run(inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        outputs = lite.inference(inputs, data_format="nhwc")
        if outputs is None:
            sys.exit(str(lite.last_error))
        found: NDArray[Any] = outputs[0]
        return found

    try:
        yield run
    finally:
        lite.release()


def more_than_bare(
    model: Path, given: NDArray[Any], feed: NDArray[Any], rounds: int, count: int
) -> tuple[Rounds, Rounds]:
    """Microseconds of a run of one image: bare, and on an NPU core, which must give the same numbers."""
    bare = Bare(model.read_bytes(), feed)
    with loaded(model, 1) as run:
        np.testing.assert_array_equal(run([given]), bare())
        pairs = [p50s_us([bare, lambda: run([given])], count) for _ in range(rounds)]
    theirs, ours = (Rounds(tuple(values)) for values in zip(*pairs, strict=True))
    return theirs, ours


def batches(model: Path, images: NDArray[Any], rounds: int, count: int) -> tuple[Rounds, Rounds]:
    """How many times as fast a batch is in two bare processes as in one, and on three NPU cores as on one."""
    feed = np.ascontiguousarray(images[:1].transpose(0, 3, 1, 2))
    ours, theirs = [], []
    with (
        loaded(model, 1, BATCH) as one,
        loaded(model, 7, BATCH) as three,
        ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), _load_bare, (model, feed)) as bares,
    ):
        np.testing.assert_array_equal(one([images]), three([images]))
        list(bares.map(_run_bare, [1, 1]))
        for _ in range(rounds):
            ours.append(p50_us(lambda: one([images]), count) / p50_us(lambda: three([images]), count))
            alone = p50_us(lambda: list(bares.map(_run_bare, [BATCH])), count)
            theirs.append(alone / p50_us(lambda: list(bares.map(_run_bare, [BATCH // 2] * 2)), count))
    return Rounds(tuple(theirs)), Rounds(tuple(ours))


def _load_bare(model: Path, feed: NDArray[Any]) -> None:
    _bare.append(Bare(model.read_bytes(), feed))


def _run_bare(count: int) -> None:
    for _ in range(count):
        _bare[0]()


def three_cores(model: Path, picture: NDArray[Any], feed: NDArray[Any], rounds: int, seconds: float) -> list[Line]:
    """As ``throughput``, of three contexts on an NPU core each."""
    with ExitStack() as stack:
        contexts = [stack.enter_context(loaded(model, 1 << core)) for core in range(3)]
        runs = [lambda run=run: run([picture]) for run in contexts]
        return throughput([Bare(model.read_bytes(), feed) for _ in runs], runs, rounds, seconds, "NPU cores")


def measure(*, quick: bool) -> list[Line]:
    """All lines."""
    os.environ.setdefault("HBRT_PROFILE", TARGET)
    rounds = 5 if quick else 15
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="hbb-") as name:
        small = Path(name) / "tiny.onnx"
        small.write_bytes(tiny())
        mobilenet = build(Path(name))
        numbers = rng.random((1, 4), np.float32)
        images = rng.random((BATCH, 224, 224, 3), np.float32)
        bare, board = more_than_bare(small, numbers, numbers, rounds, 500)
        more = board.less(bare)
        feed = np.ascontiguousarray(images[:1].transpose(0, 3, 1, 2))
        bare_net, board_net = more_than_bare(mobilenet, images[:1], feed, rounds, 20)
        ratio = board_net.ratio_to(bare_net)
        cores = three_cores(mobilenet, images[:1], feed, rounds, 0.5 if quick else 1.0)
        theirs, ours = batches(mobilenet, images, rounds, 3 if quick else 5)
    return [
        Line("tiny model takes longer by", more.median, more.spread, "µs", 150),
        Line("MobileNetV1 224 takes longer by", (ratio.median - 1) * 100, ratio.spread, "%", 5),
        *cores,
        Line(f"a batch of {BATCH} in two bare processes, times as fast as in one", theirs.median, theirs.spread, "x"),
        Line(f"a batch of {BATCH} on three NPU cores, times as fast as on one", ours.median, ours.spread, "x"),
    ]


main = command(measure, "Compare RKNN with bare onnxruntime.")


if __name__ == "__main__":
    main()
