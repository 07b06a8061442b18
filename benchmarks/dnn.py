"""What hbDNN costs over bare onnxruntime, a layer on the DSP over one inside, and what the second BPU core gives.

    python -m benchmarks.dnn [--quick] [--markdown] [--json FILE]

Both sides have the same session options and take turns, call by call, so that the noise of a shared machine hits both;
a number is the median of the rounds. hbDNN is hbDNNInfer, hbDNNWaitTaskDone and hbDNNReleaseTask; bare is
``session.run`` in the program's thread. The board is private to this program. ``HBRT_BPU=inline`` runs the models in
the program, and not on the board's BPU cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import arm_client as hb
from arm_client import dnn
from arm_client.dnn.layers.plugins_dsp_nn import DspSoftmax
from benchmarks._board_model import BoardModel, check
from benchmarks._measure import Rounds, p50_us, p50s_us
from benchmarks._models import Bare, Line, command, model_of, throughput, tiny
from samples.dnn.build_mobilenet import build

SOFTMAX_LAYERS = 4
SOFTMAX_SIZE = 1000


def softmaxes() -> bytes:
    """Layers of Softmax with a Relu between, so that each is its own segment when it leaves onnxruntime."""
    nodes, at = [], "x"
    for layer in range(SOFTMAX_LAYERS):
        nodes += [
            helper.make_node("Relu", [at], [f"r{layer}"]),
            helper.make_node("Softmax", [f"r{layer}"], [f"s{layer}"]),
        ]
        at = f"s{layer}"
    nodes.append(helper.make_node("Relu", [at], ["y"]))
    return model_of(nodes, [1, SOFTMAX_SIZE])


def product(rows: int | str) -> bytes:
    """A product of (rows, 256) with a constant matrix, then Relu; ``rows`` is a number, or a name for an open size."""
    weights = np.random.default_rng(1).normal(0, 0.1, (256, 256)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    return model_of(nodes, [rows, 256], [numpy_helper.from_array(weights, "w")])


def convolutions() -> bytes:
    """Three convolutions over a picture of open sizes."""
    rng, nodes, weights, names = np.random.default_rng(1), [], [], ("x", "a", "b", "y")
    for at, depth in enumerate((3, 16, 16)):
        values = rng.normal(0, 0.1, (16, depth, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{at}"))
        nodes.append(helper.make_node("Conv", [names[at], f"w{at}"], [names[at + 1]], pads=[1] * 4))
    return model_of(nodes, [1, 3, "h", "w"], weights, [1, 16, "h", "w"])


def on_board(model: bytes, feed: NDArray[Any], core: int = 0) -> tuple[BoardModel, Callable[[], object]]:
    """A model on the board with its input in place, and what runs it once."""
    loaded = BoardModel(model)
    loaded.ctrl.bpuCoreId = core
    loaded([feed])
    return loaded, lambda: check(loaded.run())


def overhead(name: str, model: bytes, feed: NDArray[Any], rounds: int, count: int) -> tuple[Rounds, Rounds]:
    """Microseconds of a run: bare, and on the board, which must give the same numbers."""
    bare = Bare(model, feed)
    loaded, run = on_board(model, feed)
    with loaded:
        np.testing.assert_array_equal(loaded([feed])[0], bare.output, err_msg=name)
        pairs = [p50s_us([bare, run], count) for _ in range(rounds)]
    theirs, ours = (Rounds(tuple(values)) for values in zip(*pairs, strict=True))
    return theirs, ours


def from_python(model: bytes, feed: NDArray[Any], rounds: int, count: int) -> Rounds:
    """Microseconds that a call of ``dnn.load``'s model takes longer than ``session.run``."""
    bare = Bare(model, feed)
    (loaded,) = dnn.load(model)
    np.testing.assert_array_equal(loaded(feed)[0], bare.output)
    pairs = [p50s_us([bare, lambda: loaded(feed)], count) for _ in range(rounds)]
    return Rounds(tuple(ours - theirs for theirs, ours in pairs))


def several_inputs(rounds: int, count: int) -> Rounds:
    """Microseconds of a call of a small model of three inputs."""
    names = ["a", "b", "c"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16]) for name in (*names, "y")]
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "net", values[:3], values[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (loaded,) = dnn.load(model.SerializeToString())
    feeds = [np.full((1, 16), number, np.float32) for number in range(len(names))]
    np.testing.assert_array_equal(loaded(*feeds)[0], sum(feeds))
    return Rounds(tuple(p50_us(lambda: loaded(*feeds), count) for _ in range(rounds)))


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
            inside = p50_us(run, count)
            check(hb.hbDNNRegisterLayerCreator("Softmax", DspSoftmax))
            try:
                for _ in range(5):
                    run()
                more.append((p50_us(run, count) - inside) / SOFTMAX_LAYERS)
            finally:
                check(hb.hbDNNUnregisterLayerCreator("Softmax"))
            for _ in range(5):
                run()
    return Rounds(tuple(more))


def measure(*, quick: bool) -> list[Line]:
    """All lines."""
    rounds = 5 if quick else 15
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="hbb-") as name:
        mobilenet = build(Path(name)).read_bytes()
    picture = rng.random((1, 3, 224, 224), np.float32)
    lines = []
    bare, board = overhead("tiny", tiny(), rng.random((1, 4), np.float32), rounds, 500)
    more = board.less(bare)
    lines += [
        Line("tiny model, bare onnxruntime", bare.median, bare.spread, "µs"),
        Line("tiny model, hbDNN", board.median, board.spread, "µs"),
        Line("tiny model, hbDNN takes longer by", more.median, more.spread, "µs", 150),
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
            Line(f"model of {what} sizes, called from Python, takes longer by", more.median, more.spread, "µs", 150)
        )
    shapes = alternating_shapes(rounds, 40)
    lines.append(Line("model of open sizes, two shapes alternate, CPU time", shapes.median, shapes.spread, "x", 1.2))
    forward = several_inputs(rounds, 300)
    lines.append(Line("small model of three inputs, forward from Python", forward.median, forward.spread, "µs", 400))
    softmax = softmax_layers(rounds, 200)
    text = f"Softmax of {SOFTMAX_SIZE} on the DSP takes longer by, a layer"
    lines.append(Line(text, softmax.median, softmax.spread, "µs", 100))
    boards = [on_board(mobilenet, picture, core) for core in (1, 2)]
    bares = [Bare(mobilenet, picture) for _ in boards]
    try:
        lines += throughput(bares, [run for _, run in boards], rounds, 0.5 if quick else 1.0, "BPU cores")
    finally:
        for loaded, _ in boards:
            loaded.__exit__()
    return lines


main = command(measure, "Compare hbDNN with bare onnxruntime.")


if __name__ == "__main__":
    main()
