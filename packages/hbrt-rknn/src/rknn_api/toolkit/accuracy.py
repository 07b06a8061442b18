"""The error of the quantized model relative to the real-number one, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from hbrt.borders.printable import printable
from hbrt.models.spec.graph_edits import graph_inputs, with_outputs
from rknn_api.container import NORMALIZED
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import GraphRunner
from rknn_api.toolkit.quantize import activations

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values = Mapping[str, "NDArray[Any]"]

_HEAD = """\
# Errors of each layer of the quantized model, as it is simulated here, against the model of real numbers (golden).
#   entire: both models ran whole, so that a layer has the errors of those before it as well.
#   single: the layer was given the golden inputs, so that the error is its own.
#   cos: cosine of the angle between both results, 1 when they are alike. euc: Euclidean distance.
"""


class Error(NamedTuple):
    """The difference between two results: the cosine of the angle between them, and their Euclidean distance."""

    cos: float
    euc: float


class LayerError(NamedTuple):
    """A layer: its op type, its output value, and its errors; ``single`` is None if it has no error of its own."""

    op_type: str
    name: str
    entire: Error
    single: Error | None


def error_between(one: NDArray[Any], other: NDArray[Any]) -> Error:
    """The distance between two arrays of the same shape, in float64; arrays with NaN or infinity are never equal."""
    a, b = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return Error(float("nan"), float("nan"))
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    cos = float(a @ b) / lengths if lengths else float(not a.any() and not b.any())
    return Error(min(1.0, cos), float(np.linalg.norm(a - b)))


def values_of(model: ModelProto, ops: CustomOps, feeds: Values, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """A model's results for these values.

    Raises:
        RknnError: it cannot be run.
    """
    runner = GraphRunner(with_outputs(model, names), "the model", ops)
    try:
        return runner.run({value.name: feeds[value.name] for value in graph_inputs(model.graph)})
    finally:
        runner.close()


def analyze(
    golden: ModelProto, quantized: ModelProto, ops: CustomOps, feeds: Values, runs: CustomOps | None = None
) -> tuple[list[LayerError], dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Compare both models at each layer.

    Args:
        golden: The real-number model, with the types of its values.
        quantized: The same with QuantizeLinear and DequantizeLinear.
        ops: The program's ops.
        feeds: Arrays for the inputs.
        runs: The ops of the quantized model; the same if None.

    Returns:
        The layers in the order of the golden graph; each value in the golden model; and in the quantized one.

    Raises:
        RknnError: a model cannot be run.

    Source: RKNN-Toolkit2 API Reference (2.3.2), accuracy_analysis, https://github.com/airockchip/rknn-toolkit2
    """
    named = activations(golden)
    kept = kept_values(quantized)
    pairs = {name: kept[name] for name in named if name in kept}
    wanted = dict(feeds) | values_of(golden, ops, feeds, named)
    runs = ops if runs is None else runs
    made = values_of(quantized, runs, feeds, list(dict.fromkeys(pairs.values())))
    found = {name: made.get(last, wanted[name]) for name, last in pairs.items()}
    alone = _singles(quantized, pairs, runs, wanted)
    by_value = {name: node for node in golden.graph.node for name in node.output}
    layers = []
    for name in pairs:
        node = by_value.get(name)
        if node is not None and node.name.startswith(NORMALIZED):
            continue
        single = error_between(alone[name], wanted[name]) if name in alone else None
        layers.append(LayerError(fused(by_value, name, pairs), name, error_between(found[name], wanted[name]), single))
    return layers, {name: wanted[name] for name in named}, found


def fused(makers: Mapping[str, NodeProto], name: str, kept: Mapping[str, str]) -> str:
    """The op types that compute a value, including earlier ones whose results the quantized model does not keep."""
    return "".join(makers[one].op_type for one in merged(makers, name, kept)) or "Input"


def merged(makers: Mapping[str, NodeProto], name: str, kept: Mapping[str, str]) -> list[str]:
    """A layer's output value, after those that the quantized model does not keep; None for an input."""
    node = makers.get(name)
    if node is None:
        return []
    before = node.input[0] if node.input else ""
    is_fused = before in makers and before not in kept and not makers[before].name.startswith(NORMALIZED)
    return [*(merged(makers, before, kept) if is_fused else ()), name]


def kept_values(model: ModelProto) -> dict[str, str]:
    """Where each value of the golden model is in the quantized one: dequantized if it is quantized."""
    graph = model.graph
    found = {name: name for node in graph.node for name in node.output}
    found |= {value.name: value.name for value in graph_inputs(graph)}
    by_input = {node.input[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    for node in graph.node:
        if node.op_type != "QuantizeLinear" or (after := by_input.get(node.output[0])) is None:
            continue
        source = node.input[0]
        found[source] = after.output[0]
        # The quantizer renames an output of the model, and gives its name to the dequantized value.
        found[after.output[0]] = after.output[0]
    return found


def _singles(model: ModelProto, pairs: Mapping[str, str], ops: CustomOps, golden: Values) -> dict[str, NDArray[Any]]:
    """Each layer's outputs for golden inputs: the values it reads are golden, the values it computes are checked."""
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    given = {value.name for value in graph_inputs(graph)}
    last = {after: name for name, after in pairs.items()}
    quantizes = {node.output[0]: node for node in graph.node if node.op_type == "QuantizeLinear"}
    made = {name for node in graph.node for name in node.output}
    fed: dict[str, str] = {}
    for node in graph.node:
        is_of_pair = node.op_type == "QuantizeLinear" or (
            node.op_type == "DequantizeLinear" and node.input[0] in quantizes
        )
        if is_of_pair:
            continue
        for at, name in enumerate(node.input):
            source = last.get(name, name)
            if name in made and name not in given and source in golden:
                fed[source] = f"{source}_golden"
                node.input[at] = _requantized(copy, quantizes, name, fed[source])
    for name, value in fed.items():
        graph.input.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, golden[name].shape))
    names = [after for name, after in pairs.items() if after in made and name not in given]
    del graph.output[:]
    graph.output.extend(ValueInfoProto(name=name) for name in dict.fromkeys(names))
    graph.ClearField("value_info")
    _sort(copy)
    feeds = {value: golden[name] for name, value in fed.items()} | {name: golden[name] for name in given}
    runner = GraphRunner(copy, "the layers", ops)
    try:
        results = runner.run({value.name: np.ascontiguousarray(feeds[value.name]) for value in graph_inputs(graph)})
    finally:
        runner.close()
    return {name: results[after] for name, after in pairs.items() if after in results}


def _requantized(model: ModelProto, quantizes: Mapping[str, Any], name: str, value: str) -> str:
    """A golden value as a node reads it: through its own quantize-dequantize pair if its input was dequantized."""
    graph = model.graph
    after = next((node for node in graph.node if name in node.output and node.op_type == "DequantizeLinear"), None)
    before = quantizes.get(after.input[0]) if after is not None else None
    if after is None or before is None:
        return value
    result = f"{value}_dequantized_{name}"
    if not any(result in node.output for node in graph.node):
        for source, read, made in ((before, value, f"{result}_stored"), (after, f"{result}_stored", result)):
            node = graph.node.add()
            node.CopyFrom(source)
            node.name, node.input[0], node.output[0] = f"{source.name}_{made}", read, made
    return result


def _sort(model: ModelProto) -> None:
    """Sort nodes after those whose values they read: the added pairs are at the end."""
    nodes = list(model.graph.node)
    made = {name for node in nodes for name in node.output}
    done: set[str] = set()
    order = []
    while nodes:
        ready = [node for node in nodes if all(name not in made or name in done for name in node.input)]
        order += ready
        done |= {name for node in ready for name in node.output}
        taken = {id(node) for node in ready}
        nodes = [node for node in nodes if id(node) not in taken]
    copies = [type(node).FromString(node.SerializeToString()) for node in order]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def table(layers: Sequence[LayerError]) -> str:
    """The text of error_analysis.txt."""
    names = [f"[{layer.op_type}] {printable(layer.name)}" for layer in layers]
    width = max([len("layer_name"), *map(len, names)])
    lines = [
        f"{'layer_name':<{width}}  {'simulator_error':^44}",
        f"{'':<{width}}  {'entire':^21}  {'single':^21}",
        f"{'':<{width}}  {'cos':>9} {'euc':>11}  {'cos':>9} {'euc':>11}",
        "-" * (width + 46),
    ]
    for name, layer in zip(names, layers, strict=True):
        single = f"{layer.single.cos:9.5f} {layer.single.euc:11.4f}" if layer.single else f"{'-':>9} {'-':>11}"
        lines.append(f"{name:<{width}}  {layer.entire.cos:9.5f} {layer.entire.euc:11.4f}  {single}")
    return _HEAD + "\n".join(lines) + "\n"
