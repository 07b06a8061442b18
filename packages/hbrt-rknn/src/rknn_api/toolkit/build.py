"""Build a loaded model for export: normalize, quantize, describe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from hbrt.models.spec.graph import Graph
from hbrt.models.spec.graph_edits import graph_inputs
from rknn_api.calls import path_of
from rknn_api.container import GRAPH, TYPES, Container, Metadata, TensorInfo
from rknn_api.errors import RknnError, invalid_model, invalid_parameter
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import GraphRunner
from rknn_api.toolkit.accuracy import fused, kept_values
from rknn_api.toolkit.config import Config, Shapes
from rknn_api.toolkit.dataset import Wanted, read, samples
from rknn_api.toolkit.quantize import Ranges, quantized, ranges_of
from rknn_api.toolkit.source import Normalization, normalized, shape_of, shapes_of, with_types
from rknn_api.toolkit.sparsity import Sparse, with_masks

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_BYTES = (1 << 32) - 1  # as counted by rknn_tensor_attr
_WEIGHT = 64
"""remove_weight omits tensors with at least this many elements: smaller ones determine shapes."""


@dataclass(frozen=True)
class Prepared:
    """An unquantized model, ready to be quantized.

    Attributes:
        model: The model with built-in normalization and value types.
        plain: The same without inferred types, which onnxruntime does not always accept.
        inputs: The processing of each input.
        config: How it is converted.
        ops: The program's ops.
    """

    model: ModelProto
    plain: ModelProto
    inputs: list[Normalization]
    config: Config
    ops: CustomOps

    @cached_property
    def sparse(self) -> Sparse | None:
        """The model with masks on its weights; None if the config does not request them."""
        return None if self.config.sparse is None else with_masks(self.model, self.config.sparse)

    @property
    def to_quantize(self) -> ModelProto:
        """The model to quantize."""
        return self.model if self.sparse is None else self.sparse.model

    @property
    def sets(self) -> tuple[Shapes, ...]:
        """Sets of shapes of the inputs, the largest first."""
        return self.config.dynamic_input or (tuple(shapes_of(self.model)),)

    def wanted(self, which: int = 0) -> list[Wanted]:
        """How inputs are read from files for a set of shapes; a dataset uses the first, largest set."""
        flags = self.config.is_bgr
        return [
            Wanted(shape, _dtype(value), flags[at] if at < len(flags) else flags[0] if len(flags) == 1 else False)
            for at, (value, shape) in enumerate(zip(graph_inputs(self.model.graph), self.sets[which], strict=True))
        ]

    def samples(self, dataset: str | Path | None) -> Iterable[list[NDArray[Any]]]:
        """Arrays of each sample of a dataset; a model without inputs has one sample, without arrays, and needs none.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: no dataset was given, or it does not fit, which is detected when it is
                read.
        """
        if not self.inputs:
            return [[]]
        if dataset is None:
            raise invalid_parameter("do_quantization needs a dataset: a text file with one sample's path per line.")
        return samples(path_of(dataset, "dataset"), self.wanted())

    def ranges(self, dataset: str | Path | None) -> dict[str, tuple[float, float]]:
        """Range of each activation over a dataset.

        Raises:
            RknnError: the dataset cannot be read or does not fit; the model cannot be run.
        """
        levels = (1 << 16 if "a16" in self.config.quantized_dtype else 1 << 8) - 1
        return ranges_of(self.to_quantize, self.ops, self.samples(dataset), self.config.quantized_algorithm, levels)


@dataclass(frozen=True)
class Built:
    """The result of ``build``.

    Attributes:
        container: The model to export.
        graph: Its graph.
        golden: The same model with real numbers.
        ranges: Ranges of the activations; empty for a model that is not quantized.
    """

    container: Container
    graph: ModelProto
    golden: ModelProto
    ranges: Ranges = field(default_factory=dict)


def prepare(model: ModelProto, config: Config, ops: CustomOps) -> Prepared:
    """Prepare a model for quantization.

    Raises:
        RknnError: mean and deviation do not fit it; its types cannot be inferred.
    """
    ready, inputs = normalized(model, config)
    typed = with_types(ready, ops)
    _declare_beside_ops(ready, typed, ops)
    return Prepared(typed, ready, inputs, config, ops)


def _declare_beside_ops(plain: ModelProto, typed: ModelProto, ops: CustomOps) -> None:
    """Keep the types of the inputs and outputs of the program's ops: C callbacks have no other source for them."""
    names = {name for node in plain.graph.node if node.op_type in ops for name in (*node.input, *node.output)}
    types = {value.name: value for value in (*typed.graph.value_info, *typed.graph.output)}
    known = {value.name: value for value in (*plain.graph.value_info, *plain.graph.input, *plain.graph.output)}
    for name in names & types.keys():
        (known[name] if name in known else plain.graph.value_info.add()).CopyFrom(types[name])


def built(
    prepared: Prepared, name: str, ranges: Ranges | None, *, batch: int = 1, exclude: Sequence[str] = ()
) -> Built:
    """Quantize a model and describe it.

    Args:
        prepared: The model.
        name: Its name.
        ranges: Ranges of its activations; None to leave it unquantized.
        batch: Images per run.
        exclude: Names of nodes that stay in real numbers.

    Raises:
        RknnError: it cannot be quantized, run, or made for the platform.
    """
    config = prepared.config
    graph = prepared.plain if ranges is None else quantized(prepared.to_quantize, config, ranges, exclude)
    if batch > 1:
        _check_batch(prepared, batch)
    outputs = _output_shapes(graph, prepared)
    metadata = Metadata(
        target_platform=config.platform.name,
        inputs=tuple(
            _input(graph, value, shape, batch, one)
            for value, shape, one in zip(graph_inputs(graph.graph), prepared.sets[0], prepared.inputs, strict=True)
        ),
        outputs=tuple(
            _output(graph, value, shape, batch) for value, shape in zip(graph.graph.output, outputs[0], strict=True)
        ),
        name=name,
        quantized_dtype="" if ranges is None else config.quantized_dtype,
        rknn_batch_size=batch,
        dynamic_input=config.dynamic_input,
        dynamic_output=tuple(outputs) if config.dynamic_input else (),
        custom_string=config.custom_string,
        custom_ops=tuple(sorted({node.op_type for node in graph.graph.node if node.op_type in prepared.ops})),
        remove_weight=config.remove_weight,
        optimization_level=config.optimization_level,
        extra={"single_core_mode": config.single_core_mode, "fused": _fused(prepared.model, graph)},
    )
    return Built(Container(metadata, {GRAPH: graph.SerializeToString()}), graph, prepared.model, ranges or {})


def _fused(golden: ModelProto, graph: ModelProto) -> dict[str, str]:
    """Op types of the layers into which the quantizer merged others, by the name of their nodes' outputs."""
    makers = {name: node for node in golden.graph.node for name in node.output}
    kept = kept_values(graph)
    # A node of the quantized graph computes a golden value under its name, or, for an output of the model, another
    # name.
    stored = {node.output[0]: node.input[0] for node in graph.graph.node if node.op_type == "QuantizeLinear"}
    made = {
        name: stored.get(node.input[0], name) if node.op_type == "DequantizeLinear" else name
        for node in graph.graph.node
        for name in node.output
    }
    labels = {name: fused(makers, name, kept) for name in makers if name in kept}
    return {made.get(name, name): label for name, label in labels.items() if label != makers[name].op_type}


def without_weights(container: Container) -> Container:
    """The model for export with remove_weight: tensors keep their names and sizes, but not their elements."""
    model = container.proto()
    for tensor in model.graph.initializer:
        if int(np.prod(tensor.dims, dtype=np.int64)) >= _WEIGHT:
            for name in ("raw_data", "float_data", "int32_data", "int64_data"):
                tensor.ClearField(name)
    return replace(container, sections={**container.sections, GRAPH: model.SerializeToString()})


def _check_batch(prepared: Prepared, batch: int) -> None:
    config = prepared.config
    why = ""
    if config.dynamic_input:
        why = "and dynamic_input is given; a model can have several shapes or several images, not both"
    elif not config.platform.has_general_api:
        why = f"and {config.platform.name} runs one image at a time"
    elif any(shape[:1] != (1,) for shape in prepared.sets[0]):
        why = f"and the inputs have the shapes {[list(shape) for shape in prepared.sets[0]]}: their first size is not 1"
    if why:
        raise invalid_parameter(f"rknn_batch_size is {batch}, {why}.")


def _output_shapes(graph: ModelProto, prepared: Prepared) -> list[Shapes]:
    """Shapes of the outputs for each set: as inferred, or from a run on zeros; -1 if the data decides."""
    is_dynamic = bool(prepared.config.dynamic_input)
    inferred = tuple(shape_of(value) for value in prepared.model.graph.output)
    if not is_dynamic and all(min(shape, default=0) >= 0 for shape in inferred):
        return [inferred]
    runner = GraphRunner(graph, "the model", prepared.ops)
    found = []
    try:
        for shapes in prepared.sets:
            feeds = {
                value.name: np.zeros(shape, _dtype(value))
                for value, shape in zip(graph_inputs(graph.graph), shapes, strict=True)
            }
            made = runner.run(feeds)
            found.append(tuple(made[value.name].shape for value in graph.graph.output))
    except RknnError as error:
        if not is_dynamic:
            return [inferred]
        raise invalid_model(
            f"The model cannot be run with the shapes of dynamic_input, {prepared.sets}: it may have a constant shape. "
            f"{error.text}"
        ) from None
    finally:
        runner.close()
    return found


def _dtype(value: ValueInfoProto) -> np.dtype[Any]:
    return helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)


def _input(
    model: ModelProto, value: ValueInfoProto, shape: tuple[int, ...], batch: int, one: Normalization
) -> TensorInfo:
    info = _described(value, shape, batch)
    graph = Graph(model)
    for at in graph.consumers.get(one.name, ()):
        node = graph.nodes[at]
        if node.op_type == "QuantizeLinear" and (rule := _rule(graph, node.input)) is not None:
            scale, zero, stored = rule
            info = replace(info, stored=stored, scale=scale, zero_point=zero, stored_name=node.output[0])
            break
    return replace(info, mean=one.mean, std=one.std)


def _output(model: ModelProto, value: ValueInfoProto, shape: tuple[int, ...], batch: int) -> TensorInfo:
    info = _described(value, shape, batch)
    graph = Graph(model)
    at = graph.producers.get(value.name)
    if at is None or graph.nodes[at].op_type != "DequantizeLinear":
        return info
    rule = _rule(graph, graph.nodes[at].input)
    if rule is None:
        return info
    scale, zero, stored = rule
    return replace(info, stored=stored, scale=scale, zero_point=zero, stored_name=graph.nodes[at].input[0])


def _described(value: ValueInfoProto, shape: tuple[int, ...], batch: int) -> TensorInfo:
    if not value.type.tensor_type.elem_type:
        raise invalid_model(f"{value.name!r} is not a tensor; inputs and outputs of a model must be numeric.")
    dtype, element_bytes = _dtype(value).name, _dtype(value).itemsize
    if dtype not in TYPES:
        raise invalid_model(f"{value.name!r} is of {dtype}; inputs and outputs must be numeric.")
    if (size := prod(shape) * element_bytes * batch) > _MAX_BYTES:
        raise invalid_parameter(
            f"{value.name!r} of {list(shape)} has {size} bytes; a tensor must have less than 4 GiB."
        )
    stored = "float16" if value.type.tensor_type.elem_type == TensorProto.FLOAT else dtype
    return TensorInfo(value.name, shape, dtype, stored, layout="NCHW" if len(shape) == 4 else "UNDEFINED")


def _rule(graph: Graph, inputs: Iterable[str]) -> tuple[float, int, str] | None:
    """Scale, zero point and type of a per-tensor QuantizeLinear or DequantizeLinear."""
    names = list(inputs)
    scale = graph.constant(names[1])
    zero = graph.constant(names[2]) if len(names) > 2 else None
    if scale is None or scale.size != 1 or zero is None:
        return None
    return float(scale.reshape(())), int(zero.reshape(())), zero.dtype.name


def sample_arrays(prepared: Prepared, inputs: Any) -> list[NDArray[Any]]:
    """Arrays for the model's inputs, from files; .npy files fit any set of shapes.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: their number differs from the number of inputs, or one does not fit.
    """
    wanted = prepared.wanted()
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(one, (str, Path)) for one in inputs):
        raise invalid_parameter("inputs must be a list with the path of a picture or an .npy file for each input.")
    if len(inputs) != len(wanted):
        raise invalid_parameter(f"{len(inputs)} inputs were given, but the model has {len(wanted)}.")
    refused: RknnError | None = None
    for at in range(len(prepared.sets)):
        try:
            return [read(Path(given), one) for given, one in zip(inputs, prepared.wanted(at), strict=True)]
        except RknnError as error:
            refused = refused or error
    assert refused is not None  # noqa: S101 - there is a set, and it was rejected
    raise refused
