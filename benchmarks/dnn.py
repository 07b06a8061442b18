"""What hbDNN costs over bare onnxruntime, a layer on the DSP over one inside, and what the second BPU core gives.

    python -m benchmarks.dnn [--quick] [--markdown] [--json FILE]

Both sides have the same session options and take turns within each round, so that the noise of a shared machine hits
both; a number is the median of the rounds. hbDNN is hbDNNInfer, hbDNNWaitTaskDone and hbDNNReleaseTask; bare is
``session.run`` in the program's thread. The board is private to this program. ``HBRT_BPU=inline`` runs the models in
the program, and not on the board's BPU cores.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import onnxruntime as ort
import psutil
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import arm_client as hb
from arm_client import dnn
from arm_client.dnn.layers.plugins_dsp_nn import DspSoftmax
from benchmarks._board_model import BoardModel, check
from benchmarks._measure import Rounds, machine, table
from hbrt.models.run.ort_session import session_options
from samples.dnn.build_mobilenet import build

SOFTMAX_LAYERS = 4
SOFTMAX_SIZE = 1000
FREE_CPUS = 1.8  # from here on two cores are held to their goal


@dataclass(frozen=True)
class Line:
    """One measured quantity.

    Attributes:
        text: What was measured.
        value: Median of the rounds.
        spread: Distance of the best from the worst round, as a fraction of the median.
        unit: Of the value.
        limit: What it is held to; None for what is only told.
        is_most: Whether the limit is the most it may be; else the least.
    """

    text: str
    value: float
    spread: float
    unit: str
    limit: float | None = None
    is_most: bool = True

    @property
    def verdict(self) -> str:
        """Whether the limit is kept."""
        if self.limit is None:
            return ""
        is_met = self.value <= self.limit if self.is_most else self.value >= self.limit
        return f"{'<=' if self.is_most else '>='} {self.limit:g}: {'met' if is_met else 'missed'}"


def tiny() -> bytes:
    """Twice the positive part, of four numbers."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "r"], ["y"])]
    return _model(nodes, [1, 4])


def softmaxes() -> bytes:
    """Layers of Softmax with a Relu between, so that each is a segment of its own when it leaves onnxruntime."""
    nodes, at = [], "x"
    for layer in range(SOFTMAX_LAYERS):
        nodes += [
            helper.make_node("Relu", [at], [f"r{layer}"]),
            helper.make_node("Softmax", [f"r{layer}"], [f"s{layer}"]),
        ]
        at = f"s{layer}"
    nodes.append(helper.make_node("Relu", [at], ["y"]))
    return _model(nodes, [1, SOFTMAX_SIZE])


def product(rows: int | str) -> bytes:
    """A product of (rows, 256) with a constant matrix, then Relu; ``rows`` is a number, or a name for an open size."""
    weights = np.random.default_rng(1).normal(0, 0.1, (256, 256)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    return _model(nodes, [rows, 256], [numpy_helper.from_array(weights, "w")])


def convolutions() -> bytes:
    """Three convolutions over a picture of open sizes."""
    rng, nodes, weights, names = np.random.default_rng(1), [], [], ("x", "a", "b", "y")
    for at, depth in enumerate((3, 16, 16)):
        values = rng.normal(0, 0.1, (16, depth, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{at}"))
        nodes.append(helper.make_node("Conv", [names[at], f"w{at}"], [names[at + 1]], pads=[1] * 4))
    return _model(nodes, [1, 3, "h", "w"], weights, [1, 16, "h", "w"])


def _model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    weights: Sequence[TensorProto] = (),
    output: Sequence[int | str] | None = None,
) -> bytes:
    sizes = (("x", shape), ("y", output or shape))
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, of) for name, of in sizes]
    graph = helper.make_graph(list(nodes), "net", values[:1], values[1:], list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return bytes(model.SerializeToString())


class Bare:
    """A model in bare onnxruntime."""

    def __init__(self, model: bytes, feed: NDArray[Any]) -> None:
        self._session = ort.InferenceSession(model, session_options(), providers=["CPUExecutionProvider"])
        self._names = [value.name for value in self._session.get_outputs()]
        self._feeds = {self._session.get_inputs()[0].name: feed}
        self.output = self()

    def __call__(self) -> NDArray[Any]:
        """Run once; the first output."""
        found: NDArray[Any] = self._session.run(self._names, self._feeds)[0]
        return found


def on_board(model: bytes, feed: NDArray[Any], core: int = 0) -> tuple[BoardModel, Callable[[], object]]:
    """A model on the board with its input in place, and what runs it once."""
    loaded = BoardModel(model)
    loaded.ctrl.bpuCoreId = core
    loaded([feed])
    return loaded, lambda: check(loaded.run())


def times_us(run: Callable[[], object], count: int) -> float:
    """The median time of a run, in microseconds."""
    taken = []
    for _ in range(count):
        start = time.perf_counter_ns()
        run()
        taken.append(time.perf_counter_ns() - start)
    return statistics.median(taken) / 1000


def overhead(name: str, model: bytes, feed: NDArray[Any], rounds: int, count: int) -> tuple[Rounds, Rounds]:
    """Microseconds of a run: bare, and on the board, which must give the same numbers."""
    bare = Bare(model, feed)
    loaded, run = on_board(model, feed)
    with loaded:
        np.testing.assert_array_equal(loaded([feed])[0], bare.output, err_msg=name)
        pairs = [(times_us(bare, count), times_us(run, count)) for _ in range(rounds)]
    ours, theirs = Rounds(tuple(pair[1] for pair in pairs)), Rounds(tuple(pair[0] for pair in pairs))
    return theirs, ours


def from_python(model: bytes, feed: NDArray[Any], rounds: int, count: int) -> Rounds:
    """Microseconds that a call of ``dnn.load``'s model takes longer than ``session.run``."""
    bare = Bare(model, feed)
    (loaded,) = dnn.load(model)
    np.testing.assert_array_equal(loaded(feed)[0], bare.output)
    return Rounds(tuple(times_us(lambda: loaded(feed), count) - times_us(bare, count) for _ in range(rounds)))


def used_cpu_s() -> float:
    """CPU time of this process and of those that it has started: the board's cores among them."""
    mine = psutil.Process()
    times = [process.cpu_times() for process in (mine, *mine.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def alternating_shapes(rounds: int, count: int) -> Rounds:
    """CPU time of a model of open sizes whose two shapes alternate, by that of bare onnxruntime."""
    model, rng = convolutions(), np.random.default_rng(1)
    feeds = [rng.random((1, 3, height, 200), np.float32) for height in (160, 240)]
    bares = [Bare(model, feed) for feed in feeds]
    (loaded,) = dnn.load(model)

    def cpu_s(run: Callable[[int], object]) -> float:
        start = used_cpu_s()
        for at in range(count):
            run(at % 2)
        return used_cpu_s() - start

    return Rounds(tuple(cpu_s(lambda at: loaded(feeds[at])) / cpu_s(lambda at: bares[at]()) for _ in range(rounds)))


def softmax_layers(rounds: int, count: int) -> Rounds:
    """Microseconds that a Softmax takes longer on the DSP than inside onnxruntime, both through hbDNN."""
    feed = np.random.default_rng(1).random((1, SOFTMAX_SIZE), np.float32)
    loaded, run = on_board(softmaxes(), feed)
    more = []
    with loaded:
        for _ in range(rounds):
            inside = times_us(run, count)
            check(hb.hbDNNRegisterLayerCreator("Softmax", DspSoftmax))
            try:
                for _ in range(5):
                    run()
                more.append((times_us(run, count) - inside) / SOFTMAX_LAYERS)
            finally:
                check(hb.hbDNNUnregisterLayerCreator("Softmax"))
            for _ in range(5):
                run()
    return Rounds(tuple(more))


def per_second(runs: Sequence[Callable[[], object]], seconds: float) -> float:
    """Runs a second of all threads together, one a callable."""
    counts = [0] * len(runs)
    until = time.perf_counter() + seconds

    def work(at: int) -> None:
        while time.perf_counter() < until:
            runs[at]()
            counts[at] += 1

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(runs))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def two_cores(model: bytes, feed: NDArray[Any], rounds: int, seconds: float) -> tuple[Rounds, Rounds, Rounds]:
    """How many times the throughput of one model two models have: on two BPU cores, and in two bare threads.

    The third value says how many CPUs the two bare threads got: less than two, and nothing can be said of the others.
    """
    bares = [Bare(model, feed) for _ in range(2)]
    boards = [on_board(model, feed, core) for core in (1, 2)]
    runs = [run for _, run in boards]
    try:
        ours, theirs, cpus = [], [], []
        for _ in range(rounds):
            ours.append(per_second(runs, seconds) / per_second(runs[:1], seconds))
            wall, used = time.perf_counter(), time.process_time()
            both = per_second(bares, seconds)
            cpus.append((time.process_time() - used) / (time.perf_counter() - wall))
            theirs.append(both / per_second(bares[:1], seconds))
    finally:
        for loaded, _ in boards:
            loaded.__exit__()
    return Rounds(tuple(ours)), Rounds(tuple(theirs)), Rounds(tuple(cpus))


def measure(*, quick: bool) -> list[Line]:
    """All lines."""
    rounds = 5 if quick else 15
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="hbb-") as name:
        mobilenet = build(Path(name)).read_bytes()
    picture = rng.random((1, 3, 224, 224), np.float32)
    lines = []
    bare, board = overhead("tiny", tiny(), rng.random((1, 4), np.float32), rounds, 500)
    more = Rounds(tuple(mine - theirs for mine, theirs in zip(board.values, bare.values, strict=True)))
    lines += [
        Line("tiny model, bare onnxruntime", bare.median, bare.spread, "us"),
        Line("tiny model, hbDNN", board.median, board.spread, "us"),
        Line("tiny model, hbDNN takes longer by", more.median, more.spread, "us", 150),
    ]
    bare, board = overhead("MobileNetV1 224", mobilenet, picture, rounds, 20)
    ratio = board.ratio_to(bare)
    lines += [
        Line("MobileNetV1 224, bare onnxruntime", bare.median / 1000, bare.spread, "ms"),
        Line("MobileNetV1 224, hbDNN", board.median / 1000, board.spread, "ms"),
        Line("MobileNetV1 224, hbDNN takes longer by", (ratio.median - 1) * 100, ratio.spread, "%", 5),
    ]
    rows = rng.random((16, 256), np.float32)
    for what, sizes in (("fixed", 16), ("open", "n")):
        more = from_python(product(sizes), rows, rounds, 300)
        lines.append(
            Line(f"model of {what} sizes, called from Python, takes longer by", more.median, more.spread, "us", 150)
        )
    shapes = alternating_shapes(rounds, 40)
    lines.append(Line("model of open sizes, two shapes alternate, CPU time", shapes.median, shapes.spread, "x", 1.2))
    softmax = softmax_layers(rounds, 200)
    text = f"Softmax of {SOFTMAX_SIZE} on the DSP takes longer by, a layer"
    lines.append(Line(text, softmax.median, softmax.spread, "us", 100))
    ours, theirs, cpus = two_cores(mobilenet, picture, rounds, 0.5 if quick else 1.0)
    limit = 1.6 if cpus.median >= FREE_CPUS else None
    lines += [
        Line("two MobileNets in two bare threads, CPUs that were free for them", cpus.median, cpus.spread, ""),
        Line("two MobileNets in two bare threads, throughput", theirs.median, theirs.spread, "x"),
        Line("two MobileNets on two BPU cores, throughput", ours.median, ours.spread, "x", limit, is_most=False),
    ]
    return lines


@click.command()
@click.option("--quick", is_flag=True, help="A third of the rounds.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the numbers here.")
def main(*, quick: bool, markdown: bool, json_file: Path | None) -> None:
    """Measure hbDNN beside bare onnxruntime."""
    about = machine()
    lines = measure(quick=quick)
    rows = [[line.text, f"{line.value:.2f} {line.unit}".rstrip(), f"{line.spread:.0%}", line.verdict] for line in lines]
    print(
        f"{about['cpu']}, {about['cpus']} CPUs, Python {about['python']}, onnxruntime {ort.__version__}, "
        f"{session_options().intra_op_num_threads} thread(s) a session; load before the run: {about['load_1min']}.\n"
    )
    print(table(["quantity", "median", "spread", "goal"], rows, markdown=markdown))
    if json_file:
        json_file.write_text(json.dumps({"machine": about, "lines": [asdict(line) for line in lines]}, indent=1) + "\n")
    sys.exit(any("missed" in line.verdict for line in lines))


if __name__ == "__main__":
    main()
