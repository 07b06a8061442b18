"""Quantize a model with onnxruntime's static quantizer: QuantizeLinear, DequantizeLinear.

The ranges are computed here, since onnxruntime cannot run the program's own ops in a model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationMethod, QuantType
from onnxruntime.quantization.calibrate import TensorData, TensorsData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

from hbrt.borders.interrupts import let_out
from hbrt.models.errors import one_line
from hbrt.models.spec.graph_edits import graph_inputs, with_outputs
from rknn_api.container import NORMALIZED
from rknn_api.errors import invalid_model, invalid_parameter
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import GraphRunner
from rknn_api.toolkit.config import Config
from rknn_api.toolkit.histogram import Histogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ranges = Mapping[str, tuple[float, float]]
_MIN_OPSET = 10  # from QuantizeLinear
_WEIGHTED = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": -1}
"""By operator with weights, the dimension of its output channels."""
_OTHER_REAL = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
_BEST = {"mmse": Histogram.least_squares, "kl_divergence": Histogram.least_divergence}


def activations(model: ModelProto) -> list[str]:
    """Names of the float32 values computed by nodes or passed by programs, in graph order."""
    graph = model.graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)}
    names = [value.name for value in graph_inputs(graph)]
    names += [name for node in graph.node if node.op_type != "Constant" for name in node.output if name]
    return [name for name in names if types.get(name) == TensorProto.FLOAT]


def ranges_of(
    model: ModelProto, ops: CustomOps, samples: Iterable[Sequence[NDArray[Any]]], algorithm: str, levels: int = 255
) -> dict[str, tuple[float, float]]:
    """Range of each activation over a dataset.

    Args:
        model: Unquantized, with the types of its values.
        ops: The program's ops.
        samples: Arrays for the inputs, in the graph's layout.
        algorithm: "normal": the minimum and maximum; "kl_divergence" and "mmse": the range with the smallest loss, by
            entropy and by mean square.
        levels: Steps of the quantized numbers.

    Returns:
        The ranges; values that are not finite on some sample, or that have no elements, have no range.

    Raises:
        RknnError: RKNN_ERR_FAIL: the model cannot be run; RKNN_ERR_PARAM_INVALID: an input is not finite, as given or
            normalized.
    """
    names = activations(model)
    given = [value.name for value in graph_inputs(model.graph)]
    runner = GraphRunner(with_outputs(model, names), "the model", ops)
    edges = {*given, *(node.output[0] for node in model.graph.node if node.name.startswith(NORMALIZED))}
    endless: set[str] = set()
    found: dict[str, tuple[float, float]] = {}
    histograms: dict[str, Histogram] = {}
    try:
        for number, arrays in enumerate(samples, 1):
            feeds = dict(zip(given, arrays, strict=True))
            values = {**feeds, **runner.run(feeds)}
            seen = {name: values[name] for name in names if values[name].size and values[name].dtype == np.float32}
            for name, array in seen.items():
                low, high = float(array.min()), float(array.max())
                if not np.isfinite([low, high]).all():
                    if name not in edges:
                        endless.add(name)
                        continue
                    raise invalid_parameter(
                        f"The value {name!r} is {low} to {high} on sample {number} of the dataset, which is not a "
                        "range. "
                        "Check that sample, and mean_values and std_values."
                    )
                before = found.get(name, (low, high))
                found[name] = (min(low, before[0]), max(high, before[1]))
                if algorithm in _BEST:
                    histograms.setdefault(name, Histogram()).add(array)
    finally:
        runner.close()
    found |= {name: _BEST[algorithm](histogram, *found[name], levels) for name, histogram in histograms.items()}
    return {name: found[name] for name in names if name in found and name not in endless}


def quantized(model: ModelProto, config: Config, ranges: Ranges, exclude: Sequence[str] = ()) -> ModelProto:
    """The model with QuantizeLinear and DequantizeLinear around the quantized parts.

    Args:
        model: Unquantized, with the types of its values; not changed.
        config: Specifies the types, and whether weights have a scale per channel.
        ranges: Of the activations. Nodes that read or compute a value without a range stay in real numbers.
        exclude: Names of further nodes that do.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: onnxruntime cannot quantize it, and why.

    Source: onnxruntime documentation, Quantize ONNX Models,
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    if _opset(model) < _MIN_OPSET:
        raise invalid_model(
            f"The model has operator set {_opset(model)}, but integers need {_MIN_OPSET} or later: convert it with "
            "onnx.version_converter.convert_version, or export it again."
        )
    copy = with_initializers(model)
    _flatten_biases(copy)
    if config.quantized_dtype == "w4a16":
        return with_weights_of_four_bits(copy, config, exclude)
    is_wide = config.quantized_dtype in {"w8a16", "w16a16i"}
    tensors = {
        name: TensorData(lowest=np.array(low, np.float32), highest=np.array(high, np.float32))
        for name, (low, high) in ranges.items()
    }
    options = {
        "ActivationSymmetric": is_wide,
        "WeightSymmetric": True,
        # ONNX has a scale per channel from 13 on, and 16 bits from 21 on; onnxruntime's own operators had both before.
        "UseQDQContribOps": _opset(model) < (21 if is_wide else 13),
    }
    own = [node.name for node in copy.graph.node if node.name.startswith(NORMALIZED)]
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # it warns about each tensor without a range
    try:
        quantizer = QDQQuantizer(
            copy,
            config.per_channel,
            False,
            QuantType.QInt16 if config.quantized_dtype == "w16a16i" else QuantType.QInt8,
            QuantType.QInt16 if is_wide else QuantType.QInt8,
            TensorsData(CalibrationMethod.MinMax, tensors),
            [],
            [*own, *exclude, *_beside(copy, without_ranges(copy, ranges)), *_making(copy, biased_by_row(copy))],
            sorted({*QLinearOpsRegistry, *QDQRegistry}),
            options,
        )
        quantizer.quantize_model()
        quantizer.model.topological_sort()
    except Exception as error:
        let_out(error)
        text = f"{type(error).__name__}: {one_line(error)}"
        raise invalid_model(
            f"onnxruntime cannot quantize {_culprit(copy, error)}: {text}. Keep it in real numbers with "
            "hybrid_quantization_step1, or change it."
        ) from error
    finally:
        logger.setLevel(level)
    made: ModelProto = quantizer.model.model
    return made


def with_weights_of_four_bits(model: ModelProto, config: Config, exclude: Sequence[str]) -> ModelProto:
    """The model with four-bit weights before a DequantizeLinear; activations stay in real numbers.

    Emulator: each four-bit number takes a byte. Operator sets below 13 have one scale for all channels.
    """
    graph = model.graph
    tensors = {one.name: one for one in graph.initializer if one.data_type == TensorProto.FLOAT and len(one.dims) > 1}
    made, replaced = [], set()
    for node in [one for one in graph.node if one.op_type in _WEIGHTED and one.name not in exclude]:
        weight = tensors.get(node.input[1]) if len(node.input) > 1 else None
        if weight is None:
            continue
        array, axis = numpy_helper.to_array(weight), _WEIGHTED[node.op_type] % len(weight.dims)
        if node.op_type == "Gemm" and any(one.name == "transB" and one.i for one in node.attribute):
            axis = 0
        is_by_channel = config.per_channel and _opset(model) >= 13
        others = tuple(at for at in range(array.ndim) if at != axis) if is_by_channel else None
        scale = np.maximum(np.abs(array).max(axis=others, keepdims=True) / 7, np.finfo(np.float32).tiny)
        name, real = f"{node.output[0]}_weight", f"{node.output[0]}_weight_real"
        stored = np.clip(np.rint(array / scale), -8, 7).astype(np.int8)
        scales = scale.reshape(-1 if is_by_channel else ()).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(stored, name))
        graph.initializer.append(numpy_helper.from_array(scales, f"{name}_scale"))
        attributes: dict[str, Any] = {"axis": axis} if is_by_channel else {}
        made.append(helper.make_node("DequantizeLinear", [name, f"{name}_scale"], [real], name=real, **attributes))
        node.input[1] = real
        replaced.add(weight.name)
    nodes = [*made, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in graph.node for name in node.input}
    for tensor in [one for one in graph.initializer if one.name in replaced - used]:
        graph.initializer.remove(tensor)
    return model


def _flatten_biases(model: ModelProto) -> None:
    """Expand Gemm biases to one number per column, which onnxruntime's quantizer requires although ONNX does not."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node, bias in _biases(model):
        is_turned = any(one.name == "transB" and one.i for one in node.attribute)
        if (weight := constants.get(node.input[1])) is not None and _is_a_row(bias):
            columns = weight.dims[0 if is_turned else 1]
            name = node.input[2] = f"{node.output[0]}_bias"
            row = np.broadcast_to(numpy_helper.to_array(bias).reshape(-1), columns)
            model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(row), name))


def _biases(model: ModelProto) -> list[tuple[NodeProto, TensorProto]]:
    """The Gemm nodes with a constant bias, and the bias."""
    made = [(node.output[0], _constant(node.attribute[0])) for node in model.graph.node if node.op_type == "Constant"]
    constants = {name: tensor for name, tensor in made if tensor is not None}
    constants |= {tensor.name: tensor for tensor in model.graph.initializer}
    gemms = [node for node in model.graph.node if node.op_type == "Gemm" and len(node.input) > 2]
    return [(node, constants[node.input[2]]) for node in gemms if node.input[2] in constants]


def _is_a_row(bias: TensorProto) -> bool:
    return all(size == 1 for size in bias.dims[:-1])


def biased_by_row(model: ModelProto) -> list[str]:
    """Names of Gemm values that cannot be quantized, since their bias differs from row to row."""
    return [node.output[0] for node, bias in _biases(model) if not _is_a_row(bias)]


def _culprit(model: ModelProto, error: BaseException) -> str:
    """The node whose quantization failed, found in the variables of the error's stack frames."""
    found = "the model"
    readers = {name: node for node in reversed(model.graph.node) for name in (*node.input, *node.output)}
    frame = error.__traceback__
    while frame is not None:
        for value in frame.tb_frame.f_locals.values():
            node = getattr(value, "node", value)
            node = readers.get(node) if isinstance(node, str) else node
            if isinstance(node, NodeProto):
                found = f"the {node.op_type} {node.name or node.output[0]!r}"
        frame = frame.tb_next
    return found


def with_initializers(model: ModelProto) -> ModelProto:
    """A copy whose constants are initializers, as onnxruntime's quantizer requires for weights."""
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    for node in [one for one in graph.node if one.op_type == "Constant"]:
        tensor = _constant(node.attribute[0])
        if tensor is not None:
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
            graph.node.remove(node)
    return copy


def _constant(attribute: AttributeProto) -> TensorProto | None:
    """The value of a Constant; None for strings and sparse tensors."""
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        tensor = TensorProto()
        tensor.CopyFrom(value)
        return tensor
    dtype = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    return numpy_helper.from_array(np.array(value, dtype[attribute.name])) if attribute.name in dtype else None


def without_ranges(model: ModelProto, ranges: Ranges) -> list[str]:
    """Names of real-number values that cannot be quantized: not finite on the dataset, or not float32."""
    graph = model.graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)}
    kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    found = [name for name in activations(model) if name not in ranges]
    found += [name for name, kind in kinds.items() if kind in _OTHER_REAL]
    floats = [tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT]
    return found + [tensor.name for tensor in floats if not np.isfinite(numpy_helper.to_array(tensor)).all()]


def _beside(model: ModelProto, names: Iterable[str]) -> list[str]:
    """Names of the nodes that read or make a value."""
    found = set(names)
    return [node.name for node in model.graph.node if found.intersection((*node.input, *node.output))]


def _making(model: ModelProto, names: Sequence[str]) -> list[str]:
    return [node.name for node in model.graph.node if set(names).intersection(node.output)]


def _opset(model: ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), default=1)
