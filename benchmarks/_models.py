"""What the benchmarks of models share: small models, bare onnxruntime, throughput, and the table of lines."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper

from benchmarks._measure import Rounds, machine, table
from hbrt.models.run.ort_session import session_options

FREE_CPUS = 1.8  # from here on two cores are held to their goal
GOALS = {"BPU cores": 1.6, "NPU cores": 1.9}  # of throughput, on two CPUs


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
    return model_of(nodes, [1, 4])


def model_of(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    weights: Sequence[TensorProto] = (),
    output: Sequence[int | str] | None = None,
) -> bytes:
    """A model of the nodes, from x to y."""
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


def throughput(
    bares: Sequence[Callable[[], object]], runs: Sequence[Callable[[], object]], rounds: int, seconds: float, what: str
) -> list[Line]:
    """How many times the throughput of one model several have, each in a thread: bare ones, and ones on cores.

    Args:
        bares: Each runs its own in bare onnxruntime.
        runs: Each runs its own on its own core.
        rounds: How often.
        seconds: Of one measurement.
        what: The cores, for the text.

    Returns:
        The CPUs that the bare threads got, and both throughputs. With less than FREE_CPUS no goal is set for the cores.
    """
    ours, theirs, cpus = [], [], []
    for _ in range(rounds):
        ours.append(per_second(runs, seconds) / per_second(runs[:1], seconds))
        wall, used = time.perf_counter(), time.process_time()
        together = per_second(bares, seconds)
        cpus.append((time.process_time() - used) / (time.perf_counter() - wall))
        theirs.append(together / per_second(bares[:1], seconds))
    free, bare, found = (Rounds(tuple(values)) for values in (cpus, theirs, ours))
    limit = GOALS[what] if free.median >= FREE_CPUS else None
    several = f"{len(runs)} MobileNets"
    return [
        Line(f"{several} in bare threads, CPUs that were free for them", free.median, free.spread, ""),
        Line(f"{several} in bare threads, throughput", bare.median, bare.spread, "x"),
        Line(f"{several} on {what}, throughput", found.median, found.spread, "x", limit, is_most=False),
    ]


def command(measure: Callable[..., list[Line]], summary: str) -> click.Command:
    """The command line of a benchmark of models; its exit code tells whether every goal is met.

    Args:
        measure: Takes ``quick``, and returns the lines.
        summary: What it says of itself.
    """

    @click.command(help=summary)
    @click.option("--quick", is_flag=True, help="A third of the rounds.")
    @click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
    @click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the numbers here.")
    def main(*, quick: bool, markdown: bool, file: Path | None) -> None:
        about = machine()
        lines = measure(quick=quick)
        print(_text(lines, about, markdown=markdown))
        if file:
            written = {"machine": about, "lines": [asdict(line) for line in lines]}
            file.write_text(json.dumps(written, indent=1) + "\n")
        sys.exit(any("missed" in line.verdict for line in lines))

    return main


def _text(lines: Sequence[Line], about: Mapping[str, Any], *, markdown: bool) -> str:
    rows = [[line.text, f"{line.value:.2f} {line.unit}".rstrip(), f"{line.spread:.0%}", line.verdict] for line in lines]
    where = (
        f"{about['cpu']}, {about['cpus']} CPUs, Python {about['python']}, onnxruntime {ort.__version__}, "
        f"{session_options().intra_op_num_threads} thread(s) a session; load before the run: {about['load_1min']}."
    )
    return f"{where}\n\n{table(['quantity', 'median', 'spread', 'goal'], rows, markdown=markdown)}"
