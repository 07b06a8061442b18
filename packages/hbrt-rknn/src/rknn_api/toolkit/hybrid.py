"""Hybrid quantization in two steps: a file between them lists the layers that stay in real numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from hbrt.borders import yaml_text
from hbrt.models.errors import GraphError, one_line
from hbrt.models.loading.model_file import read_file
from hbrt.models.spec.graph import Graph
from rknn_api.container import NORMALIZED
from rknn_api.errors import RknnError, invalid_model, invalid_parameter
from rknn_api.platforms import platform_of
from rknn_api.run.runner import refused
from rknn_api.toolkit.accuracy import analyze, kept_values, merged
from rknn_api.toolkit.build import Built, Prepared
from rknn_api.toolkit.config import Config
from rknn_api.toolkit.source import Normalization

if TYPE_CHECKING:
    from onnx import ModelProto


class Stored(NamedTuple):
    """The contents of the first step's files besides the model."""

    inputs: list[Normalization]
    ranges: dict[str, tuple[float, float]]
    batch: int
    float_layers: list[str]
    config: Config


def write(stem: Path, built: Built, config: Config, float_layers: Iterable[str]) -> list[Path]:
    """Write the three files next to ``stem``; returns their paths.

    Raises:
        OSError: one cannot be written.
    """
    model, data, cfg = (stem.with_name(f"{stem.name}{end}") for end in (".model", ".data", ".quantization.cfg"))
    model.write_bytes(built.golden.SerializeToString())
    metadata = built.container.metadata
    inputs = [[list(one.mean), list(one.std), _normalized_name(built.golden, one.name)] for one in metadata.inputs]
    beside = {
        "inputs": inputs,
        "ranges": built.ranges,
        "rknn_batch_size": metadata.rknn_batch_size,
        "config": stored(config),
    }
    data.write_text(json.dumps(beside), encoding="utf-8")
    text = {
        "custom_quantize_layers": dict.fromkeys(float_layers, "float16"),
        "quantize_parameters": {
            name: {"min": [low], "max": [high], "dtype": metadata.quantized_dtype}
            for name, (low, high) in built.ranges.items()
        },
    }
    cfg.write_text(yaml.safe_dump(text, sort_keys=False, indent=4), encoding="utf-8")  # scripts look for four spaces
    return [model, data, cfg]


def read(model: Path, data: Path, cfg: Path) -> tuple[ModelProto, Stored]:
    """Read the three files.

    Raises:
        RknnError: one cannot be read, or names a layer that is not in the model.
    """
    try:
        proto = read_file(model).proto
    except GraphError as error:
        raise refused(error) from None
    try:
        beside = json.loads(data.read_text(encoding="utf-8"))
        text = _mapping(yaml_text.load(cfg.read_text(encoding="utf-8")))
        ranges = {name: (float(low), float(high)) for name, (low, high) in beside["ranges"].items()}
        inputs = [Normalization(tuple(mean), tuple(std), name) for mean, std, name in beside["inputs"]]
        batch = int(beside["rknn_batch_size"])
        config = config_of(beside["config"])
        changed = _mapping(text.get("quantize_parameters"))
        ranges |= {name: (float(one["min"][0]), float(one["max"][0])) for name, one in changed.items()}
        layers = _mapping(text.get("custom_quantize_layers"))
    except RecursionError:
        raise invalid_model(f"{data} cannot be read: its JSON is nested too deeply.") from None
    except (RknnError, OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise invalid_model(
            f"{data} and {cfg} cannot be read: {type(error).__name__}: {one_line(error)}. Write them by "
            "hybrid_quantization_step1."
        ) from None
    known = {name for node in proto.graph.node for name in node.output} | {value.name for value in proto.graph.input}
    for name, (low, high) in ranges.items():
        if name not in known or not -inf < low <= high < inf:
            raise invalid_parameter(
                f"{cfg}: quantize_parameters has {name!r} from {low} to {high}; use the name of a value, and numbers "
                "with the smaller one first."
            )
    by_name = {name: node.name for node in proto.graph.node for name in (node.name, *node.output)}
    for name, dtype in layers.items():
        if name not in by_name or dtype != "float16":
            raise invalid_parameter(
                f"{cfg}: custom_quantize_layers has {name!r}: {dtype!r}; use the name of a node or of its output, "
                "and 'float16'."
            )
    return proto, Stored(inputs, ranges, batch, [by_name[name] for name in layers], config)


def stored(config: Config) -> dict[str, Any]:
    """A configuration as stored in JSON."""
    return {one.name: getattr(config, one.name) for one in fields(config)} | {"platform": config.platform.name}


def config_of(read: Mapping[str, Any]) -> Config:
    """The configuration from which ``stored`` made it."""
    return Config(**{**_tuples(read), "platform": platform_of(read["platform"])})


def _tuples(read: Any) -> Any:
    """Convert JSON values for a Config: lists become tuples."""
    if isinstance(read, dict):
        return {name: _tuples(value) for name, value in read.items()}
    return tuple(map(_tuples, read)) if isinstance(read, list) else read


def _mapping(read: Any) -> dict[str, Any]:
    """A file's entry under a name; an empty entry is an empty mapping."""
    if read is not None and not isinstance(read, dict):
        raise ValueError(f"{read!r} found where 'name: value' is expected")
    return read or {}


def between(model: ModelProto, pairs: Sequence[Sequence[str]]) -> list[str]:
    """Names of the values computed by nodes on the paths from one value to another, for each pair.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: a pair names an unknown value, or no path connects them.
    """
    graph = Graph(model)
    found: list[str] = []
    for pair in pairs:
        if len(pair) != 2 or any(name not in graph.producers and name not in graph.inputs for name in pair):
            raise invalid_parameter(
                f"Invalid pair {list(pair)} in custom_hybrid: must be [first value, last value] of the model."
            )
        first, last = pair
        after = _reached(graph, first)
        before = [at for at in after if last in graph.nodes[at].output or _leads_to(graph, at, last)]
        if not before:
            raise invalid_parameter(f"custom_hybrid: no path from {first!r} to {last!r}.")
        found += [graph.nodes[at].output[0] for at in before]
    return list(dict.fromkeys(found))


def _reached(graph: Graph, name: str) -> list[int]:
    """The nodes that read a value, and the node that computes it."""
    todo = [name]
    found = [graph.producers[name]] if name in graph.producers else []
    while todo:
        for at in graph.consumers.get(todo.pop(), ()):
            if at not in found:
                found.append(at)
                todo += graph.nodes[at].output
    return sorted(found)


def _leads_to(graph: Graph, at: int, last: str) -> bool:
    end = graph.producers.get(last)
    return any(end in _reached(graph, name) for name in graph.nodes[at].output)


def proposed(prepared: Prepared, built: Built, dataset: str | Path, count: int) -> list[str]:
    """Outputs of the layers whose own error exceeds the config's threshold, on the first samples of a dataset.

    Raises:
        RknnError: the dataset or the model cannot be read or run.
    """
    found: dict[str, None] = {}
    config = prepared.config
    makers, kept = {name: node for node in built.golden.graph.node for name in node.output}, kept_values(built.graph)
    for arrays in islice(prepared.samples(dataset), max(1, count)):
        feeds = {info.name: array for info, array in zip(built.container.metadata.inputs, arrays, strict=True)}
        layers, _, _ = analyze(built.golden, built.graph, prepared.ops, feeds)
        for one in layers:
            if one.single is not None and not (one.single.cos >= config.min_cos and one.single.euc <= config.max_euc):
                found |= dict.fromkeys(merged(makers, one.name, kept))
    return list(found)


def _normalized_name(model: ModelProto, name: str) -> str:
    """The name of an input after its mean and deviation."""
    for node in model.graph.node:
        if node.name.startswith(NORMALIZED) and node.input[0] == name:
            name = node.output[0]
    return name
